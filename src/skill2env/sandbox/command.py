"""A command that runs inside a sandbox, and how it ended."""

from dataclasses import dataclass
from typing import Protocol

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.channel import Channel
from skill2env.sandbox.streams import Pending, Pipes

TIMED_OUT = 124
KILLED = 137
LOG_TAIL_BYTES = 20_000
_KILL_GRACE_SEC = 5.0


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


class Command:
    """A command that runs. `wait` for it exactly once; `kill` may be called from any thread."""

    def __init__(self, keeper: Keeper, channel: Channel, ident: int, pending: Pending, pipes: Pipes) -> None:
        self._keeper = keeper
        self._channel = channel
        self._ident = ident
        self._pending = pending
        self._pipes = pipes

    def kill(self) -> None:
        """Kill the command and everything that descends from it; without effect when it has ended."""
        self._channel.kill(self._ident)

    def wait(self, timeout_sec: float | None = None) -> ExecOutcome:
        """Move its input and output until it ends.

        Args:
            timeout_sec: after this it is killed; None for no limit.

        Raises:
            InfraError: the sandbox ended under the command.
        """
        pipes, pending = self._pipes, self._pending
        try:
            with pipes:
                timed_out = pipes.pump(pending, timeout_sec)
                if timed_out:
                    self.kill()
                    if pipes.pump(pending, _KILL_GRACE_SEC):
                        self._keeper.abandon("its first process does not answer any more")
                return self._outcome(timed_out)
        except BaseException:
            self.kill()
            raise
        finally:
            self._channel.forget(self._ident)

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
