"""What a task holds, as panes of text for a page: skill, instruction, world, verifier, rubric, solution.

Task content is hostile until proven otherwise: links are not followed, texts are bounded, and characters that people
cannot see are made visible. Escaping is the template's work and is on for everything.
"""

import os
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from markupsafe import Markup, escape

from skill2env.harbor.outcome import read_head
from skill2env.harbor.task import read_task

TEXT_LIMIT = 32 * 1024
"""Bytes of a file that are shown."""
FILES = 60
"""Files of a pane that are shown."""
_INVISIBLE = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_PLAIN = frozenset("\n\t")


@dataclass(frozen=True, slots=True)
class ShownFile:
    """One file of a pane."""

    path: str
    text: str
    """Empty for what is no text."""
    note: str = ""
    """What the reader does not see: a size, a link's target, how much was cut."""


@dataclass(frozen=True, slots=True)
class Pane:
    """One part of a task."""

    title: str
    files: tuple[ShownFile, ...]
    note: str = ""


def panes_of(task_dir: Path, skills: Mapping[str, str] | None = None) -> list[Pane]:
    """The six parts of a task, in the order in which a reviewer compares them.

    Args:
        task_dir: a task directory, of any quality.
        skills: digest of a skill -> its text, for tasks that say which skill they come from.
    """
    return [
        _skill(task_dir, skills or {}),
        Pane("Instruction", tuple(_files(task_dir, ["instruction.md"]))),
        Pane("World", tuple(_files(task_dir, _below(task_dir, "environment")))),
        Pane("Verifier", tuple(_files(task_dir, _below(task_dir, "tests", without="tests/rubric.md")))),
        Pane("Rubric", tuple(_files(task_dir, ["tests/rubric.md"]))),
        Pane("Solution", tuple(_files(task_dir, _below(task_dir, "solution")))),
        Pane("Settings and the rest", tuple(_files(task_dir, ["task.toml", *_below(task_dir, "steps")]))),
    ]


def visible(text: str) -> Markup:
    """Escaped text in which every character that people cannot see is named."""
    parts: list[Markup] = []
    for letter in text:
        if letter in _PLAIN or unicodedata.category(letter) not in _INVISIBLE:
            parts.append(escape(letter))
        elif letter == "\r":
            parts.append(Markup('<b class="unseen">CR</b>'))
        else:
            parts.append(Markup('<b class="unseen">U+{:04X}</b>').format(ord(letter)))
    return Markup("").join(parts)


def _skill(task_dir: Path, skills: Mapping[str, str]) -> Pane:
    try:
        metadata = read_task(task_dir).metadata
    except ValueError:
        return Pane("Skill", (), "task.toml cannot be read, so it does not say which skill this comes from")
    if not metadata:
        return Pane("Skill", (), "the task does not say which skill it comes from")
    lines = list(_told({key: metadata.get(key, {}) for key in ("skill", "workflow", "axes", "author")}))
    found = cast("Any", metadata.get("skill"))
    digest = str(cast("dict[str, Any]", found).get("digest", "")) if isinstance(found, dict) else ""
    files = [ShownFile("provenance", "\n".join(lines))]
    if digest in skills:
        files.insert(0, ShownFile("SKILL.md", skills[digest][:TEXT_LIMIT]))
        return Pane("Skill", tuple(files))
    return Pane("Skill", tuple(files), "--skills DIR shows the skill's own text here")


def _told(tree: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _told(cast("dict[str, Any]", value), f"{prefix}{key}.")
        elif value not in ("", None):
            yield f"{prefix}{key}: {value}"


def _below(task_dir: Path, top: str, *, without: str = "") -> list[str]:
    found: list[str] = []
    pending = [top]
    while pending and len(found) <= FILES:
        folder = pending.pop(0)
        try:
            entries = sorted(os.scandir(task_dir / folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                pending.append(path)
            elif path != without:
                found.append(path)
    return found


def _files(task_dir: Path, paths: list[str]) -> Iterator[ShownFile]:
    for path in paths[:FILES]:
        shown = _file(task_dir / path, path)
        if shown is not None:
            yield shown
    if len(paths) > FILES:
        yield ShownFile("...", "", "more files are not shown")


def _file(place: Path, path: str) -> ShownFile | None:
    try:
        status = place.lstat()
        if stat.S_ISLNK(status.st_mode):
            return ShownFile(path, "", f"a link to {place.readlink()}")
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return ShownFile(path, "", "neither a file nor a link")
    data = read_head(place, TEXT_LIMIT)
    if data is None:
        return ShownFile(path, "", "cannot be read")
    if b"\0" in data:
        return ShownFile(path, "", f"{status.st_size} bytes that are no text")
    cut = f"the first {TEXT_LIMIT} of {status.st_size} bytes" if status.st_size > TEXT_LIMIT else ""
    return ShownFile(path, data[:TEXT_LIMIT].decode("utf-8", errors="replace"), cut)
