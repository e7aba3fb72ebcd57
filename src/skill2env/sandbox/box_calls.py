"""Commands and files of our environments: Harbor's calls, handed on to a `Box` in threads."""

import contextlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, override

from harbor.environments.base import BaseEnvironment, EnvironmentPath, ExecResult
from harbor.models.task.config import NetworkMode

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.box import Box, Running
from skill2env.sandbox.collected import cut_rewards, fetch_without
from skill2env.sandbox.command import ExecOutcome
from skill2env.sandbox.guest import PathKind
from skill2env.sandbox.images import BuiltImage
from skill2env.sandbox.network import Network
from skill2env.sandbox.off_loop import off_loop
from skill2env.sandbox.transfer import LIMIT_BYTES

_LIMIT_WITH_EXCLUDED = 4 * LIMIT_BYTES
_ROOT = frozenset({"root", "0", 0})
ROOT_USERS = _ROOT | {None, ""}
"""The same where nobody is named."""


class BoxCalls(BaseEnvironment):
    """The part of an environment that needs a running box."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._box: Box | None = None
        self._network: Network | None = None
        self._network_life = contextlib.ExitStack()
        self.image: BuiltImage | None = None
        super().__init__(*args, **kwargs)

    @property
    def workdir(self) -> str:
        """Where commands run that name no folder."""
        return self.task_env_config.workdir or (self.image.config.workdir if self.image else "") or "/"

    def _running(self) -> Box:
        if self._box is None:
            raise InfraError(Boundary.SANDBOX, "the sandbox is not running", transient=False)
        return self._box

    def _usual_env(self) -> dict[str, str]:
        """Variables that every command has unless the image or the task sets them."""
        return {}

    def _is_given(self, path: str) -> bool:  # noqa: ARG002
        """Whether something was mounted there before the start, so that nothing is to be copied there."""
        return False

    def _network_env(self) -> dict[str, str]:
        network = self._network
        if network is None:
            return {}
        public = self._network_policy.network_mode == NetworkMode.PUBLIC
        return {**network.env, **(network.package_env if public else {})}

    # ---------------------------------------------------------------------------------------- commands

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a command line with bash; see the base class.

        Raises:
            RuntimeError: the time ran out; the command and all its descendants are dead.
            InfraError: the sandbox ended.
        """
        who = self._resolve_user(user)
        if who in _ROOT and await self._done_by_itself(command):
            return ExecResult(stdout="", stderr="", return_code=0)
        if who is None and self.image is not None:
            who = self.image.config.user or None
        done = await self._run(
            ["/bin/bash", "-c", command], user=who, cwd=cwd or self.workdir, env=env, timeout_sec=timeout_sec
        )
        if done.timed_out:
            raise RuntimeError(f"Command timed out after {timeout_sec} seconds")
        return ExecResult(
            stdout=done.stdout.decode(errors="replace"),
            stderr=done.stderr.decode(errors="replace"),
            return_code=done.return_code,
        )

    async def _done_by_itself(self, command: str) -> bool:  # noqa: ARG002
        """Whether a command of root's was small enough for the box to do it without a shell, and is done."""
        return False

    async def _run(
        self,
        argv: list[str],
        *,
        user: str | int | None,
        cwd: str,
        env: dict[str, str] | None = None,
        timeout_sec: float | None = None,
    ) -> ExecOutcome:
        box = self._running()
        if not box.several_users:
            user = None  # `_validate_users` has refused what this would make unsafe
        image_env = dict(self.image.config.env) if self.image else {}
        variables = {**self._usual_env(), **image_env, **self._network_env(), **(self._merge_env(env) or {})}
        started: list[Running] = []
        cancelled = threading.Event()

        def work() -> ExecOutcome:
            command = box.start_command(argv, cwd=cwd, env=variables, user=user)
            started.append(command)
            if cancelled.is_set():
                command.kill()
            return command.wait(timeout_sec)

        def kill(_thread: int) -> None:
            cancelled.set()
            for command in started:
                command.kill()

        return await off_loop(work, on_cancel=kill)

    # ---------------------------------------------------------------------------------------- files
    # What the base class does with a shell each time, process 1 does by itself: a third of a trial's commands.

    @override
    async def ensure_dirs(self, dirs: Sequence[EnvironmentPath], *, chmod: bool = True) -> ExecResult | None:
        if not dirs or not chmod:
            return await super().ensure_dirs(dirs, chmod=chmod)
        box, folders = self._running(), dict.fromkeys(map(str, dirs), 0o777)
        await off_loop(lambda: box.make_folders(folders))
        return ExecResult(stdout="", stderr="", return_code=0)

    @override
    async def empty_dirs(self, dirs: Sequence[EnvironmentPath], *, chmod: bool = True) -> ExecResult | None:
        if not dirs or not chmod:
            return await super().empty_dirs(dirs, chmod=chmod)
        box, folders = self._running(), list(map(str, dirs))
        await off_loop(lambda: box.empty_folders(folders))
        return ExecResult(stdout="", stderr="", return_code=0)

    @override
    async def is_dir(self, path: str, user: str | int | None = None) -> bool:
        if self._resolve_user(user) not in ROOT_USERS:
            return await super().is_dir(path, user=user)
        box = self._running()
        return await off_loop(lambda: box.kind(path)) is PathKind.FOLDER

    @override
    async def is_file(self, path: str, user: str | int | None = None) -> bool:
        if self._resolve_user(user) not in ROOT_USERS:
            return await super().is_file(path, user=user)
        box = self._running()
        return await off_loop(lambda: box.kind(path)) is PathKind.FILE

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        box = self._running()
        await off_loop(lambda: box.put(Path(source_path), target_path))

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        box = self._running()
        if self._is_given(target_dir):
            return
        await off_loop(lambda: box.put(Path(source_dir), target_dir))

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        box = self._running()
        target = Path(target_path)
        await off_loop(lambda: box.get(source_path, target))
        cut_rewards(target)

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        box = self._running()
        target = Path(target_dir)
        await off_loop(lambda: box.get(source_dir, target, links=True))
        cut_rewards(target)

    @override
    async def download_dir_with_exclusions(
        self, *, source_dir: str, target_dir: Path | str, exclude: list[str]
    ) -> None:
        # The base class unpacks an archive that the image's own tar made, and trusts its names, links and size.
        box, target = self._running(), Path(target_dir)

        def fetch(folder: Path) -> None:
            box.get(source_dir, folder, links=True, limit_bytes=_LIMIT_WITH_EXCLUDED)

        await off_loop(lambda: fetch_without(fetch, target, exclude))
