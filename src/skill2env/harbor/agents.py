"""Agents that run scripts: cheats, mutants and scripted solvers. No model, no installation.

`ScriptAgent` differs from Harbor's Oracle in that the script is not the task's own solution and that nothing of it
stays in the container: a verifier that looks around must not be able to tell who was there.
"""

from pathlib import Path
from typing import Any, override

from harbor.agents.base import BaseAgent
from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.options import AgentOptions
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from harbor.models.trial.paths import EnvironmentPaths
from harbor.utils.env import resolve_env_vars
from harbor.utils.scripts import quote_shell_arg
from pydantic import Field

SCRIPT_AGENT = "skill2env.harbor.agents:ScriptAgent"
"""Import path, as ``run_trial`` and ``harbor run -a`` take it."""

OUTPUT_FILE = "script.txt"
"""Name of the log below the trial's ``agent/``."""


class ScriptOptions(AgentOptions):
    """Options of `ScriptAgent`."""

    source: str
    """A script, or a folder that holds one and its helpers; a path on the host."""
    entry: str = "solve.sh"
    """Script to run, relative to `source` when that is a folder."""
    target: str = "/solution"
    """Where the files lie in the container while the script runs."""
    keep: bool = False
    """Leave the files at `target` when the script has ended."""
    env: dict[str, str] = Field(default_factory=dict[str, str])
    """Variables of the script, as ``[solution.env]`` gives them to the reference solution."""
    times: int = 1
    """Run it so many times, as long as it exits with 0."""
    limit_sec: int = 0
    """Kill the script after so many seconds (its exit code is 137 then); 0 for the agent's own limit."""


class ScriptAgent(BaseAgent):
    """Uploads a script, runs it as the task's agent user, and removes it again."""

    options_model = ScriptOptions
    options: ScriptOptions
    capabilities = AgentCapabilities(skills=True)  # a script may look for them like anything else

    @staticmethod
    @override
    def name() -> str:
        return "skill2env-script"

    @override
    def version(self) -> str:
        return "1.0.0"

    @override
    async def setup(self, environment: BaseEnvironment) -> None:
        """Nothing to prepare: files are uploaded when the work begins, so that a health check sees a clean image."""

    @override
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        """Run the script; its exit code is stored in ``exit-code.txt`` when it is not 0, as the Oracle does.

        Raises:
            FileNotFoundError: the script does not exist on the host.
        """
        options = self.options
        source = Path(options.source)
        entry = source / options.entry if source.is_dir() else source
        if not entry.is_file():
            raise FileNotFoundError(f"script not found: {entry}")
        if source.is_dir():
            await environment.upload_dir(source_dir=source, target_dir=options.target)
            script = f"{options.target}/{options.entry}"
        else:
            script = f"{options.target}/{source.name}"
            await environment.upload_file(source_path=source, target_path=script)
        target = self._quoted(environment, options.target)
        await environment.exec(
            f"chmod -R a+rX {target} && chmod a+x {self._quoted(environment, script)}", user="root"
        )
        log = str(EnvironmentPaths.for_os(environment.os).agent_dir / OUTPUT_FILE)
        limit = f"timeout -s KILL {options.limit_sec} " if options.limit_sec else ""
        command = " && ".join([f"{limit}{self._quoted(environment, script)}"] * options.times)
        result = await environment.exec(
            f"({command}) > {log} 2>&1",
            env={"DEBIAN_FRONTEND": "noninteractive", **resolve_env_vars(options.env)},
        )
        await self._finish(environment, log, result.return_code)
        if not options.keep:
            await environment.exec(f"rm -rf -- {target}", user="root")

    async def _finish(self, environment: BaseEnvironment, log: str, return_code: int) -> None:
        if not environment.is_path_mounted(log, self.logs_dir / OUTPUT_FILE):
            try:
                await environment.download_file(source_path=log, target_path=self.logs_dir / OUTPUT_FILE)
            except Exception as error:
                self.logger.warning(f"the script's output cannot be fetched: {error}")
        if return_code != 0:
            (self.logs_dir / "exit-code.txt").write_text(str(return_code), encoding="utf-8")

    @staticmethod
    def _quoted(environment: BaseEnvironment, path: Any) -> str:
        return quote_shell_arg(path, environment.os)
