"""What came out of a box, before anybody reads it: what was not asked for goes, and rewards have a greatest length."""

import fnmatch
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

REWARD_NAMES = ("reward.json", "reward.txt")
REWARD_BYTES = 1 << 20
"""Of a reward file; Harbor reads it whole. What is longer is cut, so that no reader takes it for a reward."""


def cut_rewards(path: Path) -> None:
    """Cut reward files that are longer than any reward: `path` itself, or those in the folder `path`."""
    for file in (path, *(path / name for name in REWARD_NAMES)):
        wanted = file.name in REWARD_NAMES and not file.is_symlink() and file.is_file()
        if wanted and file.stat().st_size > REWARD_BYTES:
            os.truncate(file, REWARD_BYTES)


def is_excluded(name: str, patterns: Sequence[str]) -> bool:
    """True when a pattern matches a name, or its end after any slash, as in ``tar --exclude``."""
    parts = name.split("/")
    ends = ["/".join(parts[at:]) for at in range(len(parts))]
    wanted = [pattern.removeprefix("./").rstrip("/") for pattern in patterns]
    return any(fnmatch.fnmatchcase(end, pattern) for end in ends for pattern in wanted)


def drop_excluded(folder: Path, patterns: Sequence[str]) -> None:
    """Remove what patterns match below a folder; links are removed and not followed."""
    for top, folders, files in os.walk(folder):
        inner = Path(top).relative_to(folder)
        for name in (*folders, *files):
            path = Path(top, name)
            if not is_excluded((inner / name).as_posix(), patterns):
                continue
            if name in folders:
                folders.remove(name)
            if path.is_symlink() or not path.is_dir():
                path.unlink()
            else:
                shutil.rmtree(path)


def fetch_without(fetch: Callable[[Path], None], target: Path, patterns: Sequence[str]) -> None:
    """Let `fetch` fill a folder, and move what no pattern excludes to `target`, which may hold more."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".collected-", dir=target.parent) as scratch:
        tree = Path(scratch) / "tree"
        fetch(tree)
        drop_excluded(tree, patterns)
        for path in tree.iterdir():
            old = target / path.name
            if old.is_dir() and not old.is_symlink():
                shutil.rmtree(old)
            path.replace(old)
