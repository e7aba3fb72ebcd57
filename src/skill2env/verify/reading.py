"""Read files that untrusted authors wrote: regular files only, bounded, no link followed."""

import os
import stat
from pathlib import Path

TEXT_LIMIT = 4 * 1024 * 1024
"""Longest text that a gate reads, in bytes."""


def read_file(path: Path, limit: int = TEXT_LIMIT) -> bytes | None:
    """Content of a regular file; None when it is missing, a link, a device, unreadable or longer than `limit`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read(limit)


def decode(data: bytes | None) -> str | None:
    """Text of UTF-8 data without NUL; None otherwise."""
    if data is None or b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def read_text(path: Path, limit: int = TEXT_LIMIT) -> str | None:
    """`read_file`, decoded by `decode`."""
    return decode(read_file(path, limit))


def walk(root: Path) -> list[tuple[str, os.stat_result]]:
    """Every entry below `root` with its own status (links are not followed), sorted by path.

    A folder that cannot be listed is returned as an entry and not entered.
    """
    found: list[tuple[str, os.stat_result]] = []
    pending = [root]
    while pending:
        folder = pending.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            found.append((os.path.relpath(entry.path, root), status))
            if stat.S_ISDIR(status.st_mode):
                pending.append(Path(entry.path))
    return sorted(found, key=lambda item: os.fsencode(item[0]))
