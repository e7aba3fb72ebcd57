"""Runs inside an image: every file of it, as lines of JSON that do not depend on time or place."""

import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

SKIPPED = {"/proc", "/sys", "/dev", "/run", "/tmp", "/logs", "/.dockerenv"}
OF_THE_ENGINE = {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/mtab", "/etc/ld.so.cache"}
"""Engines put files of their own there."""


def entries(top: str) -> Iterator[tuple[str, str, str, str]]:
    """(path, mode, owner, content or link) of everything below a folder."""
    stack = [top]
    while stack:
        folder = stack.pop()
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if path in SKIPPED or path in OF_THE_ENGINE:
                continue
            info = os.lstat(path)
            kind, extra = stat.S_IFMT(info.st_mode), ""
            if kind == stat.S_IFREG:
                extra = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
            elif kind == stat.S_IFLNK:
                extra = os.readlink(path)
            elif kind == stat.S_IFDIR:
                stack.append(path)
            yield path, oct(info.st_mode), f"{info.st_uid}:{info.st_gid}", extra


if __name__ == "__main__":
    for entry in sorted(entries("/")):
        sys.stdout.write(json.dumps(entry, ensure_ascii=True) + "\n")
