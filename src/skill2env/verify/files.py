"""Gate `files`: what lies in the task folder, before anything in it is believed.

Sizes, names, kinds of entries, required files, encodings and characters that people cannot see. At level paper it only
looks for what must not be touched at all: a pipe would hold up whoever opens it for ever, and a link out of the task
would bring files of this machine into a container.
"""

import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from skill2env.verify.gate import GateContext, Hit, Level, Report, Stage, Subject
from skill2env.verify.reading import decode, read_file, walk

MACHINE_LIMIT = 4 * 2**30
FILE_LIMIT = 16 * 1024 * 1024
"""Largest file, in bytes."""
TASK_LIMIT = 64 * 1024 * 1024
"""Sum of all files, in bytes."""
COUNT_LIMIT = 5000
"""Entries of a task folder."""
NAME_LIMIT = 200
"""Longest relative path, in bytes."""

CONTRACT_FILES = ("environment/Dockerfile", "instruction.md", "task.toml", "tests/rubric.md", "tests/test.sh")
SOLUTION_FILES = ("solution/solve.sh",)
REQUIRED = frozenset({"instruction.md", "task.toml"})
"""Without these no consumer loads a task, whoever made it."""

UNSAFE = frozenset({"special-file", "link-escapes"})
"""Codes of findings after which nothing of the task may be built or run."""

_PORTABLE = re.compile(r"[A-Za-z0-9._+@=,#~-]+")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\..*)?", re.IGNORECASE)
_LEFTOVERS = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        "__pycache__",
        ".ds_store",
        ".env",
        ".pytest_cache",
        ".ipynb_checkpoints",
        "node_modules",
    }
    | {
        ".bash_history",
        ".python_history",
        ".netrc",
        ".npmrc",
        ".pypirc",
        "id_rsa",
        "id_ed25519",
        "contract.json",
    }
)
_LEFTOVER_ENDS = (".pyc", ".pyo", ".swp", ".swo", "~", ".orig", ".rej")
_TEXT_ENDS = (".md", ".sh", ".py", ".toml")
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")
_INVISIBLE = frozenset("\u200b\u2060\u2061\u2062\u2063\u2064\ufeff\u00ad\u180e\u034f\u115f\u1160\u3164\uffa0")
_JOINERS = frozenset("\u200c\u200d")


def check(subject: Subject, context: GateContext) -> Report:
    """Look at every entry of the task folder."""
    entries = walk(subject.task_dir)
    if context.level is Level.PAPER:
        found = (hit for path, status in entries for hit in _entry(subject, path, status))
        return Report([hit for hit in found if hit.code in UNSAFE])
    hits = [
        *_required(subject, {path for path, _ in entries}),
        *_sizes(entries),
        *(hit for path, status in entries for hit in _entry(subject, path, status)),
        *_collisions([path for path, _ in entries]),
        *_flat([path for path, status in entries if not stat.S_ISDIR(status.st_mode)]),
        *_texts(subject.task_dir, entries),
    ]
    files = [status.st_size for _, status in entries if stat.S_ISREG(status.st_mode)]
    return Report(hits, {"files": len(files), "bytes": sum(files)})


def _required(subject: Subject, present: set[str]) -> Iterator[Hit]:
    if any(path.startswith("steps/") for path in present):
        expected: tuple[str, ...] = ("task.toml",)
    else:
        expected = CONTRACT_FILES if subject.stage is Stage.CONTRACT else (*CONTRACT_FILES, *SOLUTION_FILES)
    for path in expected:
        if path not in present:
            yield Hit("file-required" if path in REQUIRED else "file-missing", f"{path} is missing", path)
            continue
        data = read_file(subject.task_dir / path, FILE_LIMIT)
        if data is None:
            yield Hit("file-unreadable", f"{path} is not a regular file that can be read", path)
        elif not data.strip():
            yield Hit("file-empty", f"{path} is empty", path)


def _sizes(entries: Sequence[tuple[str, os.stat_result]]) -> Iterator[Hit]:
    regular = [(path, status.st_size) for path, status in entries if stat.S_ISREG(status.st_mode)]
    for path, size in regular:
        if size > FILE_LIMIT:
            yield Hit("file-too-large", f"the file has {size} bytes, the limit is {FILE_LIMIT}", path)
    total = sum(size for _, size in regular)
    if total > MACHINE_LIMIT:
        yield Hit(
            "task-huge", f"the task has {total} bytes, more than {MACHINE_LIMIT}, which nobody can move about"
        )
    elif total > TASK_LIMIT:
        yield Hit("task-too-large", f"the task has {total} bytes, the limit is {TASK_LIMIT}")
    if len(entries) > COUNT_LIMIT:
        yield Hit("too-many-files", f"the task has {len(entries)} entries, the limit is {COUNT_LIMIT}")


def _entry(subject: Subject, path: str, status: os.stat_result) -> Iterator[Hit]:
    if stat.S_ISLNK(status.st_mode):
        yield _link(subject.task_dir, path)
    elif not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        yield Hit("special-file", "neither a file nor a folder", _shown(path))
    yield from _name(path)
    name = PurePosixPath(path).name.lower()
    allowed = path == "contract.json" and subject.stage is not Stage.TASK
    if (name in _LEFTOVERS or name.endswith(_LEFTOVER_ENDS)) and not allowed:
        yield Hit("name-forbidden", "a leftover or private file", _shown(path))


def _link(root: Path, path: str) -> Hit:
    try:
        target = (root / path).resolve(strict=True)
        inside = target.is_relative_to(root.resolve())
    except (OSError, RuntimeError):  # dangling, or a loop
        inside = False
    return Hit("link" if inside else "link-escapes", "a symbolic link", _shown(path))


def _name(path: str) -> Iterator[Hit]:
    name = PurePosixPath(path).name
    if any(ord(letter) < 32 or ord(letter) == 127 or 0xD800 <= ord(letter) < 0xE000 for letter in name):
        yield Hit("name-unsafe", "the name holds control characters or is not UTF-8", _shown(path))
    elif "\\" in name or len(os.fsencode(path)) > NAME_LIMIT:
        yield Hit(
            "name-unsafe", f"the path holds a backslash or is longer than {NAME_LIMIT} bytes", _shown(path)
        )
    elif not _PORTABLE.fullmatch(name) or _RESERVED.fullmatch(name) or name.endswith("."):
        yield Hit("name-not-portable", "the name cannot be stored on every system", _shown(path))


def _collisions(paths: Sequence[str]) -> Iterator[Hit]:
    seen: dict[str, str] = {}
    for path in paths:
        key = unicodedata.normalize("NFC", path).casefold()
        if key in seen:
            yield Hit("name-not-portable", f"differs from {_shown(seen[key])} only in case", _shown(path))
        seen.setdefault(key, path)


def _flat(files: Sequence[str]) -> Iterator[Hit]:
    nested = [path for path in files if path.startswith("tests/") and path.count("/") > 1]
    if nested:
        yield Hit("tests-not-flat", f"{len(nested)} files of tests/ lie in sub-folders", _shown(nested[0]))


def _texts(root: Path, entries: Sequence[tuple[str, os.stat_result]]) -> Iterator[Hit]:
    for path, status in entries:
        name = PurePosixPath(path).name
        is_text = name.endswith(_TEXT_ENDS) or name == "Dockerfile"
        if not is_text or not stat.S_ISREG(status.st_mode) or path.endswith(".sh"):
            continue  # scripts have a gate of their own
        if path.startswith("environment/") and name != "Dockerfile":
            continue  # a fixture may be broken on purpose
        data = read_file(root / path)
        if data is None:
            continue
        text = decode(data)
        if text is None:
            yield Hit("text-not-utf8", "the file is not UTF-8 text", path)
        elif name == "instruction.md":
            yield from _hidden(text, path)


def _hidden(text: str, path: str) -> Iterator[Hit]:
    body = text.removeprefix("\ufeff")
    for number, line in enumerate(body.split("\n"), 1):
        for at, letter in enumerate(line):
            if _is_hidden(letter, line, at):
                name = unicodedata.name(letter, f"U+{ord(letter):04X}")
                yield Hit("text-hidden", f"holds {name}, which people cannot see", f"{path}:{number}")
                return


def _is_hidden(letter: str, line: str, at: int) -> bool:
    if letter in _BIDI or letter in _INVISIBLE or 0xE0000 <= ord(letter) <= 0xE007F:
        # Flags of regions are written with tag characters after a black flag.
        return not (0xE0000 <= ord(letter) <= 0xE007F and "\U0001f3f4" in line[:at])
    if letter in _JOINERS:  # needed inside emoji and in some scripts, never between Latin letters
        around = line[max(0, at - 1) : at] + line[at + 1 : at + 2]
        return not around or all(ord(other) < 0x250 for other in around)
    return unicodedata.category(letter) == "Cc" and letter not in "\t\r"


def _shown(path: str) -> str:
    return (
        os.fsencode(path).decode("utf-8", errors="replace").encode("unicode_escape").decode()
        if _odd(path)
        else path
    )


def _odd(path: str) -> bool:
    return any(ord(letter) < 32 or ord(letter) == 127 or 0xD800 <= ord(letter) < 0xE000 for letter in path)
