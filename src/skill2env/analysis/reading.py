"""Any folder of Harbor tasks, read without trust and without end: every oddity is noted and none is fatal.

Links are not followed, pipes are not opened, big files are shortened, bytes that are no UTF-8 are replaced. task.toml
is read as plain TOML and not through Harbor's models, because tasks of other schema versions count too.
"""

import os
import stat
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Any

from skill2env.analysis.languages import LANGUAGES
from skill2env.analysis.records import PARTS, Corpus, Notes, TaskRecord
from skill2env.domains import load_classifier
from skill2env.errors import UserError
from skill2env.records import Domain, Severity

FILE_LIMIT = 256 * 1024
"""Bytes of one file that are read."""
DATA_LIMIT = 16 * 1024
"""Bytes of one file of data below tests/, environment/ or solution/ that count; programs count up to `FILE_LIMIT`."""
PART_LIMIT = 512 * 1024
"""Bytes of one part of a task (tests, solution, world) that are read."""
KNOWN_SCHEMAS = ("1.0", "1.1", "1.2", "1.3", "1.4")
"""Versions of task.toml whose form is known."""

_DOMAINS = frozenset(domain.value for domain in Domain)
_MARKS = ("task.toml", "instruction.md", "tests/test.sh", "environment/Dockerfile")
_NESTING = 4
_CONFIG_LIMIT = 1024 * 1024
_RUBRIC = "tests/rubric.md"
_METADATA = "skill2env"


def read_corpus(
    folder: Path, *, name: str = "", domains: bool = True, parts: Sequence[str] = PARTS
) -> Corpus:
    """Read a dataset, or any folder that holds Harbor tasks somewhere.

    Args:
        folder: searched four levels deep; hidden folders are left out.
        name: what to call it; the folder's name when empty.
        domains: guess the domain of tasks that state none from their words.
        parts: texts to read, of `PARTS`; the others stay empty, which saves time and memory.

    Returns:
        The tasks in the order of their paths. A folder without tasks gives a corpus without tasks and a note.

    Raises:
        UserError: the folder does not exist or is none.
    """
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "does not exist"
        raise UserError(f"{folder} {what}", hint="give a dataset or any folder of Harbor tasks")
    root, notes = folder.resolve(), Notes()
    wanted = frozenset(parts)
    tasks = [
        read_task(path, root, notes, domains=domains, wanted=wanted)
        for path in _task_folders(root, root, notes)
    ]
    if not tasks:
        notes.add("corpus-empty", "no task was found", where=".", severity=Severity.ERROR)
    for key, count in sorted(Counter(task.name for task in tasks).items()):
        if count > 1:
            notes.add("name-twice", f"{count} tasks are called {key}")
    return Corpus(name or root.name, tuple(tasks), tuple(notes.found))


def _task_folders(folder: Path, root: Path, notes: Notes, depth: int = _NESTING) -> Iterator[Path]:
    if any((folder / mark).exists() for mark in _MARKS):
        yield folder
        return
    if not depth:
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda item: item.name)
    except OSError as error:
        notes.add("folder-unreadable", f"cannot be listed: {error.strerror}", _relative(folder, root))
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
            yield from _task_folders(Path(entry.path), root, notes, depth - 1)


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path != root else "."


def read_task(
    folder: Path,
    root: Path,
    notes: Notes,
    *,
    domains: bool = True,
    wanted: AbstractSet[str] = frozenset(PARTS),
) -> TaskRecord:
    """Read one task folder.

    Args:
        folder: of the task.
        root: what its key is relative to.
        notes: takes what is odd.
        domains: see `read_corpus`.
        wanted: texts to read.
    """
    key = _relative(folder, root) if folder != root else folder.name
    files = sorted(_walk(folder, key, notes))
    tree = _config(folder, key, notes)
    parts = _Parts(folder, key, notes)
    readers: dict[str, Callable[[], str]] = {
        "instruction": lambda: parts.one("instruction.md") or parts.steps(files),
        "rubric": lambda: parts.one(_RUBRIC),
        "world": lambda: parts.many("environment/", files),
        "tests": lambda: parts.many("tests/", files, without=_RUBRIC),
        "solution": lambda: parts.many("solution/", files),
    }
    texts = {part: readers[part]() for part in PARTS if part in wanted}
    for part, text in texts.items():
        if part != "world" and not text.strip():
            notes.add(f"{part}-missing", f"there is no {part}, or it is empty", key)
    fields: dict[str, Any] = {"name": folder.name, **_facts(tree), **texts}
    record = TaskRecord(key=key, folder=folder, files=tuple(files), **fields)
    return _with_domain(record) if domains and not record.domain else record


def _with_domain(record: TaskRecord) -> TaskRecord:
    guess = load_classifier().classify(
        record.skill,
        f"{record.category} {' '.join(record.keywords)}",
        f"{record.instruction}\n{record.rubric}",
    )
    return replace(record, domain=guess.domain, guessed=bool(guess.domain))


def _walk(folder: Path, key: str, notes: Notes) -> Iterator[tuple[str, int]]:
    """Relative path and size of every regular file; links and devices are noted and left out."""
    stack = [(str(folder), "")]
    while stack:
        place, prefix = stack.pop()
        try:
            entries = list(os.scandir(place))
        except OSError as error:
            notes.add("folder-unreadable", f"cannot be listed: {error.strerror}", f"{key}/{prefix}")
            continue
        for entry in entries:
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                stack.append((entry.path, path + "/"))
            elif entry.is_file(follow_symlinks=False):
                yield path, entry.stat(follow_symlinks=False).st_size
            else:
                notes.add("no-plain-file", "a link, device or pipe is not read", f"{key}/{path}")


def read_bytes(path: str | Path, limit: int) -> bytes | None:
    """First `limit` + 1 bytes of a regular file, links not followed, pipes not waited for; None when there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        pieces: list[bytes] = []
        left = limit + 1
        while left and (piece := os.read(descriptor, left)):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)
    except OSError:
        return None
    finally:
        os.close(descriptor)


class _Parts:
    """The texts of one task."""

    def __init__(self, folder: Path, key: str, notes: Notes) -> None:
        self._folder, self._key, self._notes = str(folder), key, notes

    def one(self, path: str) -> str:
        data = read_bytes(f"{self._folder}/{path}", FILE_LIMIT)
        return self._text(path, data) if data is not None else ""

    def many(self, prefix: str, files: list[tuple[str, int]], without: str = "") -> str:
        """All text files below a folder; binary ones are left out."""
        texts: list[str] = []
        left = PART_LIMIT
        for path, _ in files:
            if not path.startswith(prefix) or path == without:
                continue
            if left <= 0:
                self._notes.add(
                    "part-shortened", f"only {PART_LIMIT} bytes are read", f"{self._key}/{prefix}"
                )
                break
            code = path.rsplit(".", 1)[-1].lower() in LANGUAGES or "." not in path.rsplit("/", 1)[-1]
            data = read_bytes(f"{self._folder}/{path}", FILE_LIMIT if code else DATA_LIMIT)
            if data is None or b"\0" in data[:4096]:
                continue
            texts.append(self._text(path, data) if code else data[:DATA_LIMIT].decode("utf-8", "replace"))
            left -= len(data)
        return "\n".join(texts)

    def steps(self, files: list[tuple[str, int]]) -> str:
        """Instructions of a task in several steps."""
        found = [path for path, _ in files if path.startswith("steps/") and path.endswith("/instruction.md")]
        return "\n".join(self.one(path) for path in found)

    def _text(self, path: str, data: bytes) -> str:
        where = f"{self._key}/{path}"
        if len(data) > FILE_LIMIT:
            self._notes.add("file-shortened", f"only the first {FILE_LIMIT} bytes are read", where)
            data = data[:FILE_LIMIT]
            while data and data[-1] & 0xC0 == 0x80:  # not through the middle of a character
                data = data[:-1]
            data = data[:-1] if data and data[-1] >= 0xC0 else data
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            self._notes.add("not-utf8", "bytes that are no UTF-8 are replaced", where)
            return data.decode("utf-8", errors="replace")


def _config(folder: Path, key: str, notes: Notes) -> Mapping[str, Any]:
    data = read_bytes(folder / "task.toml", _CONFIG_LIMIT)
    where = f"{key}/task.toml"
    if data is None or len(data) > _CONFIG_LIMIT:
        notes.add("config-missing", "task.toml is missing, no plain file or too long", where)
        return {}
    try:
        tree = tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        notes.add("config-unreadable", f"task.toml cannot be read: {str(error)[:120]}", where)
        return {}
    version = str(tree.get("schema_version", tree.get("version", "")))
    if version and version not in KNOWN_SCHEMAS:
        notes.add(
            "schema-other", f"schema version {version[:20]} is not known; what is understood counts", where
        )
    return tree


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _word(*values: Any) -> str:
    """The first that is text or a number and not empty."""
    for value in values:
        if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
            return str(value).strip()
    return ""


def _facts(tree: Mapping[str, Any]) -> dict[str, Any]:
    """What task.toml says, ours or anybody's; keys that others use for the same thing are known."""
    task, metadata = _table(tree.get("task")), _table(tree.get("metadata"))
    ours = _table(metadata.get(_METADATA))
    skill, author = _table(ours.get("skill")), _table(ours.get("author"))
    axes = {str(name): _word(value) for name, value in _table(ours.get("axes")).items() if _word(value)}
    stated = _word(ours.get("domain"), metadata.get("domain"), metadata.get("category"))
    keywords: Any = task.get("keywords") or metadata.get("tags") or metadata.get("keywords") or []
    facts: dict[str, Any] = {
        "name": _word(task.get("name"), metadata.get("name")),
        "skill": _word(
            skill.get("name"), metadata.get("skill"), metadata.get("skill_name"), metadata.get("source_skill")
        ),
        "skill_digest": _word(skill.get("digest"), metadata.get("skill_digest")),
        "workflow": _word(_table(ours.get("workflow")).get("name"), metadata.get("workflow")),
        "domain": stated if stated in _DOMAINS else "",
        "category": stated,
        "axes": axes,
        "licence": _word(skill.get("licence"), metadata.get("licence"), metadata.get("license")),
        "author": _word(author.get("name"), metadata.get("author_name")),
        "variant": _word(ours.get("variant")),
        "schema_version": _word(tree.get("schema_version"), tree.get("version")),
        "difficulty": _word(metadata.get("difficulty")),
        "keywords": tuple(map(str, keywords)) if isinstance(keywords, list) else (),  # pyright: ignore[reportUnknownArgumentType]
    }
    return {name: value for name, value in facts.items() if value}
