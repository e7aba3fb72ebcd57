"""What can be asked of a container, whatever runs it: the namespace sandbox or an engine."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, Self

from skill2env.sandbox import transfer
from skill2env.sandbox.command import OUTPUT_LIMIT_BYTES, ExecOutcome
from skill2env.sandbox.guest import PathKind


class Running(Protocol):
    """A command that runs. `wait` for it exactly once; `kill` may be called from any thread."""

    def kill(self) -> None:
        """Kill it with all its descendants; without effect when it has ended."""
        ...

    def wait(self, timeout_sec: float | None = None) -> ExecOutcome:
        """Move its input and output until it ends; after the time it is killed."""
        ...


class Box(Protocol):
    """One container. For what each method takes and raises see `Guest`, which has the same ones."""

    breach: str
    """The limit for which everything inside was killed last, in words; empty when none."""

    @property
    def several_users(self) -> bool:
        """True when commands inside can run as different users."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def start(self) -> None:
        """Start it; see `Sandbox.start`."""
        ...

    def stop(self, *, keep: str = "") -> Path | None:
        """End it and remove what it wrote; see `Sandbox.stop`."""
        ...

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
        """Run one command to its end."""
        ...

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
    ) -> Running:
        """Start a command that another thread may kill."""
        ...

    def put(self, source: Path, target: str, *, owner: str | None = None) -> None:
        """Copy a file or the content of a folder of the host to `target` inside."""
        ...

    def get(
        self, source: str, target: Path, *, limit_bytes: int = transfer.LIMIT_BYTES, links: bool = False
    ) -> None:
        """Copy a file or the content of a folder inside to `target` on the host."""
        ...

    def make_folders(self, folders: Mapping[str, int | None]) -> None:
        """Make folders inside where they are missing: {path: mode to set, None to set none}."""
        ...

    def empty_folders(self, folders: Sequence[str]) -> None:
        """Make folders inside empty, and writable by everybody."""
        ...

    def kind(self, path: str) -> PathKind:
        """What a path inside leads to."""
        ...
