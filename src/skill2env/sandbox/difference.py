"""What a sandbox changed, read from its upper layer after everything inside has ended.

The upper layer of an overlay holds exactly what was written, so nothing has to be scanned before. It was written by
untrusted programs: links are never followed, on no component of a path, and only regular files are opened. Everything
is bounded, and what is left out is counted.
"""

import difflib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from skill2env.records import Record

MAX_ENTRIES = 2000
"""Changed paths that are listed."""
MAX_FILE_BYTES = 64 * 1024
"""Size of the longest file whose text is compared."""
MAX_TEXT_CHARS = 256 * 1024
"""Text of all comparisons together."""
LEFT_OUT = frozenset({"logs", "tests", "solution", "proc", "sys", "dev", "run"})
"""Top-level folders that the host or a shared verifier fills."""
_OPAQUE = ("trusted.overlay.opaque", "user.overlay.opaque")


class Change(StrEnum):
    """What happened to a path."""

    ADDED = "added"
    """It was not in the image."""
    CHANGED = "changed"
    """It was in the image with other content, kind or rights."""
    REMOVED = "removed"
    """It was in the image and is gone."""


class ChangedPath(Record):
    """One path."""

    path: str
    """Absolute, as seen inside."""
    change: Change
    kind: str = ""
    """``file``, ``folder``, ``link`` or ``other``; empty for what is gone."""
    size: int = 0
    """Bytes, of files."""
    size_before: int | None = None
    """Bytes in the image; None when it was no file there."""
    target: str = ""
    """Of links, as written."""
    text: str = ""
    """Unified difference, when both sides are short text; empty otherwise."""


class Difference(Record):
    """All that a sandbox changed, sorted by path."""

    entries: tuple[ChangedPath, ...] = ()
    left_out: int = 0
    """Paths beyond `MAX_ENTRIES`."""
    unread: int = 0
    """Files and folders that this process may not read."""
    texts_shortened: bool = False
    """Some comparison is missing because there was too much text."""


def difference(upper: Path, layers: Sequence[Path]) -> Difference:
    """Compare an upper layer with the image below it.

    Args:
        upper: the layer with the writes; nobody may be writing any more.
        layers: the layers of the image, lowest first.
    """
    reader = _Reader(upper, layers)
    entries = sorted(reader.entries(), key=lambda item: item.path)
    return Difference(
        entries=tuple(entries), left_out=reader.left_out, unread=reader.unread, texts_shortened=reader.full
    )


class _Reader:
    def __init__(self, upper: Path, layers: Sequence[Path]) -> None:
        self._upper = upper
        self._layers = tuple(reversed(layers))
        self._listed = 0
        self._chars = 0
        self.left_out = 0
        self.unread = 0
        self.full = False

    def entries(self) -> Iterator[ChangedPath]:
        for parts in self._walk():
            if self._listed >= MAX_ENTRIES:  # no more is looked at: an agent may write a million files
                self.left_out += 1
                continue
            entry = self._entry(parts)
            if entry is not None:
                self._listed += 1
                yield entry

    def _walk(self) -> Iterator[tuple[str, ...]]:
        """Every path, a folder before what is in it; without recursion, because depth has no limit."""
        waiting: list[tuple[tuple[str, ...], bool]] = [((), True)]
        while waiting:
            parts, is_folder = waiting.pop()
            if parts:
                yield parts
            if not is_folder:
                continue
            try:
                with os.scandir(self._upper.joinpath(*parts)) as found:
                    names = sorted(
                        ((item.name, item.is_dir(follow_symlinks=False)) for item in found), reverse=True
                    )
            except OSError:
                self.unread += 1
                continue
            waiting += [((*parts, name), folder) for name, folder in names if parts or name not in LEFT_OUT]

    def _entry(self, parts: tuple[str, ...]) -> ChangedPath | None:
        place = self._upper.joinpath(*parts)
        shown = "/" + "/".join(os.fsencode(part).decode("utf-8", "backslashreplace") for part in parts)
        try:
            status = place.lstat()
        except OSError:
            self.unread += 1
            return None
        before = self._before(parts)
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:  # a whiteout
            return (
                None
                if before is None
                else ChangedPath(path=shown, change=Change.REMOVED, size_before=_size(before[0]))
            )
        if before is not None and _same_folder(place, status, before[0]):
            return None  # only something inside was changed
        change = Change.ADDED if before is None else Change.CHANGED
        text = self._compare(shown, place, status, before) if stat.S_ISREG(status.st_mode) else ""
        target = ""
        if stat.S_ISLNK(status.st_mode):
            with suppress(OSError):
                target = os.fsencode(place.readlink()).decode("utf-8", "backslashreplace")
        return ChangedPath(
            path=shown,
            change=change,
            kind=_kind(status),
            size=_size(status) or 0,
            size_before=None if before is None else _size(before[0]),
            target=target,
            text=text,
        )

    def _before(self, parts: tuple[str, ...]) -> tuple[os.stat_result, Path] | None:
        """What the image holds at a path: its status and the layer that it is from."""
        for layer in self._layers:
            status, hidden = _look(layer, parts)
            if status is not None:
                return status, layer
            if hidden:
                return None
        return None

    def _compare(
        self, shown: str, place: Path, status: os.stat_result, before: tuple[os.stat_result, Path] | None
    ) -> str:
        if status.st_size > MAX_FILE_BYTES or (
            before is not None and (_size(before[0]) or 0) > MAX_FILE_BYTES
        ):
            return ""
        after = _read(self._upper, place.relative_to(self._upper).parts)
        if after is None:
            self.unread += 1
            return ""
        old = b""
        if before is not None and stat.S_ISREG(before[0].st_mode):
            old = _read(before[1], place.relative_to(self._upper).parts) or b""
        try:
            sides = [
                data.decode("utf-8").splitlines(keepends=False) for data in (old, after) if b"\0" not in data
            ]
        except UnicodeDecodeError:
            return ""
        if len(sides) < 2:
            return ""
        lines = difflib.unified_diff(*sides, fromfile=shown if before else "", tofile=shown, lineterm="", n=2)
        text = "\n".join(lines)
        if self._chars + len(text) > MAX_TEXT_CHARS:
            self.full = True
            return ""
        self._chars += len(text)
        return text


def _open_parent(root: Path, parts: Sequence[str]) -> int:
    """Descriptor of the folder that a path lies in, with no link followed on the way."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    here = os.open(root, flags)
    for part in parts[:-1]:
        try:
            deeper = os.open(part, flags, dir_fd=here)
        finally:
            os.close(here)
        here = deeper
    return here


def _look(layer: Path, parts: tuple[str, ...]) -> tuple[os.stat_result | None, bool]:
    """(status of a path in one layer, whether the layer hides what lower ones hold there)."""
    for depth in range(1, len(parts) + 1):
        try:
            parent = _open_parent(layer, parts[:depth])
        except OSError:
            return None, False
        try:
            status = os.stat(parts[depth - 1], dir_fd=parent, follow_symlinks=False)
        except OSError:
            return None, False
        finally:
            os.close(parent)
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
            return None, True
        if depth == len(parts):
            return status, True
        if not stat.S_ISDIR(status.st_mode):
            return None, True
    return None, False


def _read(root: Path, parts: Sequence[str]) -> bytes | None:
    try:
        parent = _open_parent(root, parts)
    except OSError:
        return None
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(parts[-1], flags, dir_fd=parent)
    except OSError:
        return None
    finally:
        os.close(parent)
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read(MAX_FILE_BYTES + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def _same_folder(place: Path, status: os.stat_result, before: os.stat_result) -> bool:
    both = stat.S_ISDIR(status.st_mode) and stat.S_ISDIR(before.st_mode)
    return both and stat.S_IMODE(status.st_mode) == stat.S_IMODE(before.st_mode) and not _opaque(place)


def _opaque(folder: Path) -> bool:
    for name in _OPAQUE:
        with suppress(OSError):
            if os.getxattr(folder, name, follow_symlinks=False) == b"y":
                return True
    return False


def _kind(status: os.stat_result) -> str:
    for kind, test in (("file", stat.S_ISREG), ("folder", stat.S_ISDIR), ("link", stat.S_ISLNK)):
        if test(status.st_mode):
            return kind
    return "other"


def _size(status: os.stat_result) -> int | None:
    return status.st_size if stat.S_ISREG(status.st_mode) else None
