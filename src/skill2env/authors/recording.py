"""Authoring sessions on disk: the format that `record` writes and `recorded` replays (docs/recordings.md).

A recording comes from strangers. Covers: links, special files and set-id bits anywhere in it, names and index entries
that leave the folder, files over the limits, damaged or enormous JSON. Nothing in it is executed or imported, and
nothing outside its folder is read. Does not cover: what its text says; that is judged like any author's text.
"""

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from skill2env.authors.protocol import Message, Refusal
from skill2env.authors.staging import read_inside
from skill2env.authors.workspace import name_problem
from skill2env.errors import UserError
from skill2env.records import AuthorIdentity, Axes, Phase, Record, Skipped, Usage, digest_bytes, digest_of

FORMAT = 1
INDEX_FILE = "recording.json"
PLAN_FILE = "plan.json"
SESSION_FILE = "session.json"
FILES_FOLDER = "files"
MAX_JSON_BYTES = 32 * 2**20
"""Of one JSON file; messages of a long session are large."""

_Name = Annotated[str, Field(pattern=r"^[a-z0-9]+(?:-[a-z0-9]+)*$", max_length=64)]


class RecordedSkill(Record):
    """Which skill the sessions were held on."""

    name: str
    slug: _Name
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class RecordedTask(Record):
    """One workflow and variant that has sessions; they lie in ``WORKFLOW/VARIANT/PHASE/``."""

    workflow: _Name
    variant: Annotated[int, Field(ge=0, le=9999)] = 0
    axes: Axes
    """What the sessions were written for; sampling anything else would make the provenance untrue."""


class RecordingIndex(Record):
    """``recording.json``."""

    schema_version: Literal[1] = FORMAT
    skill: RecordedSkill
    author: AuthorIdentity
    """Who held the sessions. The replaying author is ``recorded``, with this one's model."""
    tasks: tuple[RecordedTask, ...] = ()


class RecordedPlan(Record):
    """``plan.json``: the answer as text, or for recordings written by hand as a JSON list."""

    text: str = ""
    workflows: list[Any] | None = None
    skipped: Skipped | None = None
    usage: Usage = Usage()
    messages: tuple[Message, ...] = ()
    hosts: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """What was not stored because it held a key of the author, one sentence each."""

    def answer(self) -> str:
        """The planner's answer as text."""
        return self.text if self.workflows is None else json.dumps(self.workflows, ensure_ascii=False)


class RecordedSession(Record):
    """``session.json``. Everything has a default, so a session written by hand needs only its files."""

    skipped: Skipped | None = None
    refused: Refusal | None = None
    """The session's files were not taken when it was recorded, for this reason."""
    deleted: tuple[str, ...] = ()
    """Files that the session removed from what it was given."""
    usage: Usage = Usage()
    messages: tuple[Message, ...] = ()
    hosts: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """What was not stored because it held a key of the author, one sentence each."""


def phase_folder(phase: Phase, round_: int) -> str:
    """``contract``, ``contract-1`` (mended), ``solution``, ``repair-1`` ..."""
    return f"{phase.value}-{round_}" if round_ or phase is Phase.REPAIR else phase.value


@dataclass(frozen=True)
class Recording:
    """One folder with a readable index."""

    folder: Path
    index: RecordingIndex

    def task(self, workflow: str, variant: int) -> RecordedTask | None:
        """The index entry, or None."""
        wanted = (workflow, variant)
        return next((item for item in self.index.tasks if (item.workflow, item.variant) == wanted), None)

    def plan(self) -> RecordedPlan | None:
        """The planning session, or None when there is none.

        Raises:
            ValueError: it is there and damaged.
        """
        data = _read(self.folder, PLAN_FILE)
        return None if data is None else _parse(RecordedPlan, data, PLAN_FILE)

    def session(self, workflow: str, variant: int, phase: Phase, round_: int) -> RecordedSession | None:
        """One session of a task, or None when its folder is missing.

        Raises:
            ValueError: it is there and damaged.
        """
        path = f"{workflow}/{variant}/{phase_folder(phase, round_)}"
        if not is_plain_folder(self.folder, path):
            return None
        data = _read(self.folder, f"{path}/{SESSION_FILE}")
        return RecordedSession() if data is None else _parse(RecordedSession, data, f"{path}/{SESSION_FILE}")

    def files(self, workflow: str, variant: int, phase: Phase, round_: int) -> Path | None:
        """The folder with a session's files, or None when it has none."""
        path = f"{workflow}/{variant}/{phase_folder(phase, round_)}/{FILES_FOLDER}"
        return self.folder / path if is_plain_folder(self.folder, path) else None

    def left_out(self) -> tuple[str, ...]:
        """What is missing because it held a key of the author: path of the session and a sentence, sorted.

        Raises:
            ValueError: a session is damaged.
        """
        found: list[str] = []
        plan = self.plan()
        if plan is not None:
            found += [f"{PLAN_FILE}: {words}" for words in plan.left_out]
        for path in sorted(self.folder.glob(f"*/*/*/{SESSION_FILE}")):
            place = path.relative_to(self.folder).as_posix()
            data = _read(self.folder, place)
            session = RecordedSession() if data is None else _parse(RecordedSession, data, place)
            found += [f"{place}: {words}" for words in session.left_out]
        return tuple(found)

    @cached_property
    def digest(self) -> str:
        """Digest over everything in the folder: paths, kinds, bytes and executable bits."""
        return digest_of(dict(_tree(self.folder)))


def find_recordings(root: Path) -> tuple[Recording, ...]:
    """All recordings in `root`: itself, or its sub-folders, sorted by name.

    Raises:
        UserError: `root` is no folder, an index is damaged, or two recordings are of the same skill.
    """
    if not root.is_dir():
        raise UserError(f"no such folder of recordings: {root}", hint="docs/recordings.md shows the layout")
    folders = [root] if _is_file(root / INDEX_FILE) else sorted(_sub_folders(root))
    found = tuple(_load(folder) for folder in folders if _is_file(folder / INDEX_FILE))
    seen: dict[str, Path] = {}
    for recording in found:
        digest = recording.index.skill.digest
        if digest in seen:
            raise UserError(
                f"{seen[digest]} and {recording.folder} are recordings of the same skill",
                hint="move one of them elsewhere",
            )
        seen[digest] = recording.folder
    return found


def is_plain_folder(root: Path, path: str) -> bool:
    """Whether every segment of a relative path is a real folder, not a link to one, and has a plain name."""
    place = root
    for segment in path.split("/"):
        place = place / segment
        if name_problem(segment) or not _has_kind(place, stat.S_ISDIR):
            return False
    return True


def _load(folder: Path) -> Recording:
    try:
        data = _read(folder, INDEX_FILE)
        assert data is not None
        return Recording(folder, _parse(RecordingIndex, data, INDEX_FILE))
    except ValueError as error:
        raise UserError(
            f"damaged recording {folder}: {error}", hint="docs/recordings.md shows the format"
        ) from None


def _read(folder: Path, path: str) -> bytes | None:
    """A JSON file of a recording; None when it is missing."""
    try:
        return read_inside(folder, path, limit=MAX_JSON_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"{path} is not a plain file of at most {MAX_JSON_BYTES} bytes ({error})") from None


def _parse[R: Record](model: type[R], data: bytes, path: str) -> R:
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise ValueError(f"{path}: {where + ': ' if where else ''}{first['msg']}") from None


def _sub_folders(root: Path) -> Iterator[Path]:
    for entry in root.iterdir():
        if _has_kind(entry, stat.S_ISDIR):
            yield entry


def _is_file(path: Path) -> bool:
    return _has_kind(path, stat.S_ISREG)


def _has_kind(path: Path, kind: Any) -> bool:
    try:
        return bool(kind(path.lstat().st_mode))
    except (OSError, ValueError):
        return False


def _tree(folder: Path) -> Iterator[tuple[str, str]]:
    """Every entry and what is in it; links and special files by their kind, so that a change of any sort shows."""
    for parent, names, files in folder.walk():
        names.sort()
        for name in sorted((*names, *files)):
            path = parent / name
            shown = os.fsencode(path.relative_to(folder)).decode("utf-8", "backslashreplace")
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                yield shown, f"{mode & 0o100:o} {_content_digest(path)}"
            elif not stat.S_ISDIR(mode):
                target = str(path.readlink()) if stat.S_ISLNK(mode) else ""
                yield (
                    shown,
                    f"kind {stat.S_IFMT(mode):o} {target.encode('utf-8', 'backslashreplace').decode()}",
                )


def _content_digest(path: Path) -> str:
    """Digest of a file's bytes; of its size alone when it is too large to be replayed anyway, or unreadable."""
    size = path.lstat().st_size
    if size > MAX_JSON_BYTES:
        return f"size {size}"
    try:
        return digest_bytes(path.read_bytes())
    except OSError as error:
        return f"unreadable {error.errno}"
