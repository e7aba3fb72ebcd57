"""The state of a folder from names, sizes and times alone: equal when nothing was changed since."""

import hashlib
import os
from pathlib import Path

from skill2env.ingest.file_signs import LEFTOVER_FOLDERS

_MAX_ENTRIES = 5_000_000


def folder_state(root: Path) -> str:
    """Digest over path, size, inode and times of everything below a folder; version control and caches left out.

    A change that keeps size, inode and both times of a file is not seen; no editor, copy or checkout does that.
    """
    digest = hashlib.sha256()
    stack = [str(root)]
    seen = 0
    cut = len(str(root)) + 1
    while stack and seen < _MAX_ENTRIES:
        folder = stack.pop()
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            digest.update(os.fsencode(f"{folder[cut:]}\0unreadable {error.errno}\0"))
            continue
        for entry in listed:
            seen += 1
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder and entry.name in LEFTOVER_FOLDERS:
                continue
            if is_folder:
                stack.append(entry.path)
                facts = "d"
            else:
                facts = entry_facts(entry)
            digest.update(os.fsencode(f"{entry.path[cut:]}\0{facts}\0"))
    return f"tree:{digest.hexdigest()}"


def entry_facts(entry: "os.DirEntry[str] | Path") -> str:
    """Mode, size, inode and times of one entry, not followed; or why they cannot be told."""
    try:
        status = entry.lstat() if isinstance(entry, Path) else entry.stat(follow_symlinks=False)
    except OSError as error:
        return f"unreadable {error.errno}"
    return f"{status.st_mode} {status.st_size} {status.st_ino} {status.st_mtime_ns} {status.st_ctime_ns}"
