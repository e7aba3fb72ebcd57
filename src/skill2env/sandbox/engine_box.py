"""One running container of an engine, with the interface of `Sandbox`: commands, files, limits, and its end.

Covers: no network unless asked, limits on memory, processors and processes by the engine as far as it can (the others
are left away and reported), a watch over what is written, time limits that kill everything a command started, output
floods, and removal whatever happens. The engine's own defaults stand between the container and the machine. Does not
cover: user namespaces and a system-call filter of ours (the engine has its own), and what an image without ``sh`` or
``tar`` would need.
"""

import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self, override

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.command import KILLED, OUTPUT_LIMIT_BYTES
from skill2env.sandbox.conditions import NotApplicable
from skill2env.sandbox.engine import Engine, EngineError
from skill2env.sandbox.engine_command import EngineCommand, passed
from skill2env.sandbox.engine_guest import EngineGuest
from skill2env.sandbox.engine_limits import possible
from skill2env.sandbox.engine_spec import EngineSpec, run_options
from skill2env.sandbox.engine_sweep import sweep_once
from skill2env.sandbox.limits import Enforced
from skill2env.sandbox.streams import Pipes

WATCH_SEC = 5.0
_MIB = 2**20
_START_TIMEOUT_SEC = 120.0
_PULL_TIMEOUT_SEC = 1800.0

_KILL_ALL = "kill -9 -1"


class EngineBox(EngineGuest):
    """A context manager around one container. `stop` is idempotent and removes it, started or not.

    Raises (on entering):
        InfraError: the engine cannot start it; the hint says what to do.
    """

    def __init__(self, engine: Engine, spec: EngineSpec) -> None:
        self.engine = engine
        self.spec = spec
        self.name = f"skill2env-{uuid.uuid4().hex[:16]}"
        """Of the container."""
        self.breach = ""
        """The limit for which everything inside was killed last, in words."""
        self.several_users = True
        self.enforced = Enforced()
        """Which limits are hard, watched or absent; filled when started."""
        self._life = threading.RLock()
        self._ended = threading.Event()
        self._started = False
        self._stopped = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """Start the container.

        Raises:
            InfraError: see the class.
        """
        sweep_once(self.engine)
        with self._life:
            if self._stopped:
                raise InfraError(
                    Boundary.SANDBOX, "the container was stopped before it started", transient=False
                )
            limits, self.enforced = possible(self.engine, self.spec.limits)
            spec = replace(self.spec, limits=limits)
            self._started = True
            timeout = _PULL_TIMEOUT_SEC if self.spec.pull else _START_TIMEOUT_SEC
            try:
                self.engine.call("run", *run_options(self.engine, spec, self.name), timeout_sec=timeout)
            except EngineError as error:
                raise self._start_error(error) from error
            if self.spec.limits.storage_mb is not None:
                threading.Thread(target=self._watch, name="engine-watch", daemon=True).start()

    def _start_error(self, error: EngineError) -> InfraError:
        told = error.told.lower()
        if "because it is inside /proc" in told:
            named = error.told.partition('rootfs at "')[2].partition('"')[0]
            return NotApplicable(f"{named or 'a file below /proc'} cannot be changed here")
        if "cgroup" in told or "cpu-period" in told or "memory limit" in told:
            return InfraError(
                Boundary.SANDBOX,
                f"{self.engine.name} cannot enforce the limits of the task here: {error.told.strip()[-500:]}",
                hint="Run as root, with delegated control groups, or allow it with --allow-unlimited.",
                transient=False,
            )
        return error.infra("starting a container")

    def stop(self, *, keep: str = "") -> Path | None:
        """Kill everything inside and remove the container. A later call does nothing.

        Args:
            keep: commit what was written to an image of this name below ``skill2env/kept`` first.
        """
        self._ended.set()
        with self._life:
            if self._stopped or not self._started:
                self._stopped = True
                return None
            self._stopped = True
            if keep:
                with_name = "".join(char if char.isalnum() else "-" for char in keep.lower()).strip("-")
                self._try("commit", self.name, f"skill2env/kept:{with_name}")
            self._try("rm", "--force", "--volumes", self.name)
        return None

    def _try(self, *arguments: str) -> None:
        """One call whose failure changes nothing for the caller: what is left over is swept by the next process."""
        try:
            self.engine.call(*arguments)
        except (EngineError, InfraError):
            return

    def running(self) -> bool:
        """Whether the engine says that the container runs."""
        try:
            return self.engine.call("inspect", "--format", "{{.State.Running}}", self.name) == "true"
        except (EngineError, InfraError):
            return False

    def _watch(self) -> None:
        """Look every few seconds at what was written; too much of it ends everything inside."""
        limit = (self.spec.limits.storage_mb or 0) * _MIB
        while not self._ended.wait(WATCH_SEC):
            try:
                told = self.engine.call(
                    "container", "inspect", "--size", "--format", "{{.SizeRw}}", self.name
                )
            except (EngineError, InfraError):
                continue
            if told.isdigit() and int(told) > limit:
                self.breach = f"more than {self.spec.limits.storage_mb} MiB were written"
                self._try("exec", "--user", "0", self.name, "sh", "-c", _KILL_ALL)

    # ------------------------------------------------------------------------------------------ commands

    @override
    def start_command(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        user: str | int | None = None,
        stdin: bytes | None = None,
        output_limit: int = OUTPUT_LIMIT_BYTES,
        merge_stderr: bool = False,
    ) -> EngineCommand:
        """Start a command that another thread may kill; for the arguments see `exec`."""
        pipes = Pipes(stdin=stdin, merge_stderr=merge_stderr, limit=output_limit)
        return self._start(argv, pipes, cwd=cwd, env=env or {}, user=user, fed=stdin is not None)

    @override
    def _start(
        self,
        argv: Sequence[str],
        pipes: Pipes,
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        user: str | int | None = None,
        fed: bool = False,
    ) -> EngineCommand:
        who = "0" if user in (None, "", "root") else str(user)
        options, environment = passed(env or {})
        command = [*self.engine.program, "exec", "--user", who, "--workdir", cwd, *options]
        if fed:
            command.append("--interactive")
        return EngineCommand(self, [*command, self.name], argv, pipes, environment=environment, user=who)

    def ended(self, command: str) -> InfraError:
        """The error for a command under which the container ended."""
        return InfraError(Boundary.SANDBOX, f"the container ended while a command was running: {command}")

    def after_kill(self, code: int) -> str:
        """Why a command that was killed may have been, in words; empty when nobody knows."""
        if self.breach or code != KILLED or self.spec.limits.memory_mb is None:
            return self.breach
        try:
            told = self.engine.call("inspect", "--format", "{{.State.OOMKilled}}", self.name)
        except (EngineError, InfraError):
            return ""
        if told == "true":
            self.breach = f"more than {self.spec.limits.memory_mb} MiB of memory were used"
        return self.breach
