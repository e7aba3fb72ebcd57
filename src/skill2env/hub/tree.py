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
                try:
                    status = entry.stat(follow_symlinks=False)
                    times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
                    facts = f"{status.st_mode} {status.st_size} {status.st_ino} {times}"
                except OSError as error:
                    facts = f"unreadable {error.errno}"
            digest.update(os.fsencode(f"{entry.path[cut:]}\0{facts}\0"))
    return f"tree:{digest.hexdigest()}"
