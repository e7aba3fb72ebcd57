"""A command that runs inside a sandbox, and how it ended."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, override

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.channel import Channel
from skill2env.sandbox.streams import Pending, Pipes

TIMED_OUT = 124
KILLED = 137
LOG_TAIL_BYTES = 20_000
OUTPUT_LIMIT_BYTES = 16 * 2**20
"""Bytes that are kept of each stream of a command, unless its caller says otherwise."""


class Keeper(Protocol):
    """What a command needs of the sandbox around it."""

    breach: str
    """The limit for which everything inside was killed last, in words."""

    def abandon(self, why: str) -> None:
        """End the sandbox and raise."""
        ...


@dataclass(frozen=True, slots=True)
class ExecOutcome:
    """How one command ended."""

    return_code: int
    """Exit code; 128 + signal when killed; 124 after a time-out; 127 when it could not be started."""
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    truncated: bool = False
    """True when output beyond the limit was thrown away."""
    breach: str = ""
    """The limit for which everything inside was killed while the command ran, in words; empty when none."""


def log_tail(data: bytes) -> str:
    """The end of an output, as text for an error."""
    return data[-LOG_TAIL_BYTES:].decode(errors="replace")


class Waiting(ABC):
    """A command that runs, whatever runs it. `wait` for it exactly once; `kill` may be called from any thread."""

    _AFTER_KILL_SEC = 5.0
    """How long its streams may stay open after it was killed."""

    def __init__(self, pending: Pending, pipes: Pipes) -> None:
        self._pending = pending
        self._pipes = pipes

    @abstractmethod
    def kill(self) -> None:
        """Kill the command and everything that descends from it; without effect when it has ended."""

    @abstractmethod
    def _outlived(self) -> None:
        """What to do when killing it did not end it."""

    @abstractmethod
    def _outcome(self, timed_out: bool) -> ExecOutcome:
        """How it ended; raises InfraError when that says nothing about the command."""

    @abstractmethod
    def _release(self) -> None:
        """Give up what was held for it."""

    def wait(self, timeout_sec: float | None = None) -> ExecOutcome:
        """Move its input and output until it ends.

        Args:
            timeout_sec: after this it is killed; None for no limit.

        Raises:
            InfraError: the container or sandbox ended under the command.
        """
        pipes, pending = self._pipes, self._pending
        try:
            with pipes:
                timed_out = pipes.pump(pending, timeout_sec)
                if timed_out:
                    self.kill()
                    if pipes.pump(pending, self._AFTER_KILL_SEC):
                        self._outlived()
                return self._outcome(timed_out)
        except BaseException:
            self.kill()
            raise
        finally:
            self._release()


class Command(Waiting):
    """A command in the namespace sandbox."""

    def __init__(self, keeper: Keeper, channel: Channel, ident: int, pending: Pending, pipes: Pipes) -> None:
        super().__init__(pending, pipes)
        self._keeper = keeper
        self._channel = channel
        self._ident = ident

    @override
    def kill(self) -> None:
        self._channel.kill(self._ident)

    @override
    def _outlived(self) -> None:
        self._keeper.abandon("its first process does not answer any more")

    @override
    def _release(self) -> None:
        self._channel.forget(self._ident)

    @override
    def _outcome(self, timed_out: bool) -> ExecOutcome:
        pipes, pending, breach = self._pipes, self._pending, self._keeper.breach
        if timed_out:
            return ExecOutcome(TIMED_OUT, pipes.stdout, pipes.stderr, True, pipes.truncated, breach)
        if pending.ended:
            raise InfraError(Boundary.SANDBOX, "the sandbox ended while a command was running")
        if pending.error is not None:
            return ExecOutcome(127, b"", pending.error.encode(errors="replace"))
        code = pending.code if pending.code is not None else 1
        stderr = pipes.stderr + (f"\n{breach}\n".encode() if breach and code == KILLED else b"")
        return ExecOutcome(code, pipes.stdout, stderr, False, pipes.truncated, breach)


class Executing(ABC):
    """What runs commands to their end, on top of starting them."""

    @abstractmethod
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
    ) -> Waiting:
        """Start a command that another thread may kill; for the arguments see `exec`."""

    def exec(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        user: str | int | None = None,
        stdin: bytes | None = None,
        timeout_sec: float | None = None,
        output_limit: int = OUTPUT_LIMIT_BYTES,
        merge_stderr: bool = False,
    ) -> ExecOutcome:
        """Run one command to its end.

        Args:
            argv: program and arguments; the program is looked up in the environment's PATH.
            cwd: absolute working directory inside.
            env: added to PATH and HOME.
            user: name from the sandbox's /etc/passwd or a uid, or ``user:group``; None for root.
            stdin: bytes to feed, None for an empty input.
            timeout_sec: after this it is killed with all its descendants; None for no limit.
            output_limit: bytes kept of each stream; the rest is read and thrown away.
            merge_stderr: send stderr to stdout.

        Raises:
            InfraError: the sandbox ended under the command.
            UserError: another user was asked for where there is only one.
            ValueError: a NUL character in an argument or a variable.
        """
        command = self.start_command(
            argv,
            cwd=cwd,
            env=env,
            user=user,
            stdin=stdin,
            output_limit=output_limit,
            merge_stderr=merge_stderr,
        )
        return command.wait(timeout_sec)
