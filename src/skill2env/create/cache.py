"""Finished sessions, keyed by everything they were given, so that none is paid for twice."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pydantic import Field, ValidationError

from skill2env.authors.protocol import CreateReply, Refusal
from skill2env.authors.workspace import DEFAULT_LIMITS, TakenFile, collect
from skill2env.errors import Boundary, boundary
from skill2env.records import SHA256_PREFIX, Record
from skill2env.store.files import copy_tree, move_into_place, staged_folder, write_json


class SessionResult(Record):
    """What a session left: its reply and, where they may be taken, its files."""

    reply: CreateReply
    refusals: tuple[Refusal, ...] = ()
    """Files that must not be taken; the others are then worthless."""
    lines: dict[str, str] = Field(default_factory=dict[str, str])
    """Path -> mode and digest of every file of the session's task folder afterwards."""

    @property
    def files(self) -> dict[str, TakenFile]:
        """`lines`, parsed."""
        return {path: _parse(line) for path, line in sorted(self.lines.items())}


def _parse(line: str) -> TakenFile:
    mode, _, digest = line.partition(" ")
    return TakenFile(digest, mode == "0755")


def file_lines(files: Mapping[str, TakenFile]) -> dict[str, str]:
    """The form in which files cross disk."""
    return {path: taken.line() for path, taken in sorted(files.items())}


class PhaseCache(Protocol):
    """Keeps finished sessions."""

    def get(self, key: str, target: Path) -> SessionResult | None:
        """The session stored under `key`, its files written to the new folder `target`; None when there is none."""
        ...

    def put(self, key: str, result: SessionResult, files: Path) -> None:
        """Store a finished session; `files` is the folder that `result.lines` describes. Atomic."""
        ...


@dataclass(frozen=True, slots=True)
class _NoCache:
    def get(self, key: str, target: Path) -> SessionResult | None:  # noqa: ARG002
        return None

    def put(self, key: str, result: SessionResult, files: Path) -> None:
        pass


_KEPT = replace(
    DEFAULT_LIMITS,
    max_files=2 * DEFAULT_LIMITS.max_files,
    max_total_bytes=2 * DEFAULT_LIMITS.max_total_bytes,
)
"""Later sessions hold what they were given as well as what they may hand in."""
NO_CACHE: PhaseCache = _NoCache()
"""Keeps nothing."""


@dataclass(frozen=True, slots=True)
class FolderCache:
    """One folder a session: ``KEY/session.json`` and ``KEY/files/``."""

    root: Path

    def get(self, key: str, target: Path) -> SessionResult | None:
        """As the protocol says. A damaged entry counts as none and is replaced by the next `put`."""
        folder = self._folder(key)
        if not (folder / "session.json").is_file():
            return None
        with boundary(Boundary.STORAGE, f"reading the session {folder}"):
            text = (folder / "session.json").read_text(encoding="utf-8")
        try:
            result = SessionResult.model_validate_json(text)
        except ValidationError:
            return None
        taken = collect(folder / "files", target, _KEPT)
        return result if taken.files == result.files and not taken.refusals else None

    def put(self, key: str, result: SessionResult, files: Path) -> None:
        """As the protocol says.

        Raises:
            InfraError: boundary ``storage``.
        """
        with staged_folder(self.root) as staged:
            entry = staged / "entry"
            copy_tree(files, entry / "files") if files.is_dir() else (entry / "files").mkdir(parents=True)
            write_json(entry / "session.json", result.model_dump(mode="json"))
            move_into_place(entry, self._folder(key))

    def _folder(self, key: str) -> Path:
        return self.root / key.removeprefix(SHA256_PREFIX)
