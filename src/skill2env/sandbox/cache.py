"""What the cache folder holds, what of it nobody needs any more, and how it is removed whatever ids own it.

Everything in it can be downloaded or built again. The folder is the user's to choose (``SKILL2ENV_CACHE``), so nothing
is removed but what is made there, and links are removed and never followed. Layers tell by the time of their
``layer.json`` when they were used last, verdicts of `skill2env verify` and answers of judges by their own; a base is
needed while an index file names it; scratch folders are needed while their process lives.
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from skill2env.errors import UserError
from skill2env.sandbox import scratch
from skill2env.sandbox.identity import Identity, current_identity
from skill2env.sandbox.layers import sweep_unfinished
from skill2env.sandbox.scratch import remove_tree
from skill2env.store.folders import cache_home, judgements_home, verdicts_home

_DAY_SEC = 86_400.0
_PARTS = ("assets", "authors", "bases", "judgements", "kept", "layers", "run", "runtime", "verdicts")
"""Folders that are made in the cache; whatever else lies there is somebody else's."""
_ANSWERS = {verdicts_home().name: "verdict", judgements_home().name: "judgement"}
"""Folders of answers that are kept by what they depend on, and the kind of what they hold."""
_PROBE_PREFIX = ".probe-"


@dataclass(frozen=True, slots=True)
class CacheItem:
    """One thing in the cache."""

    kind: str
    """``base``, ``layer``, ``scratch``, ``verdict``, ``judgement``, ``other``, or ``foreign``: not ours, and never
    removed."""
    name: str
    path: Path
    size_bytes: int
    """Of the files that this user can see; a folder of other ids may hold more."""
    idle_days: float
    """Days since it was used or written last."""
    needed: bool
    """False when nothing refers to it, so that `prune` removes it at any age."""


def cache_items() -> list[CacheItem]:
    """Everything in the cache folder, sorted by kind and name."""
    home = cache_home()
    found = [*_bases(home), *_layers(home), *_scratch(home)]
    for path in _children(home):
        if path.name not in ("bases", "layers", "run"):
            kind = _ANSWERS.get(path.name) or ("other" if _is_ours(path) else "foreign")
            found.append(_item(kind, path.name, path, path, needed=True))
    return sorted(found, key=lambda item: (item.kind, item.name))


def prune(
    *,
    idle_days: float,
    kinds: Collection[str] = ("base", "layer", "verdict", "judgement", "other"),
    progress: Callable[[CacheItem], None] | None = None,
) -> int:
    """Remove what nobody needs, and layers and verdicts that were not used for `idle_days` days.

    Args:
        idle_days: what was used since stays.
        kinds: of `CacheItem`; everything of another kind stays.
        progress: told what is removed, before it is.

    Returns:
        Bytes freed, as far as they could be seen.
    """
    identity = current_identity()
    freed = 0
    with contextlib.suppress(OSError):
        scratch.sweep(identity)
        sweep_unfinished(identity)
    for folder, kind in _ANSWERS.items():
        if kind in kinds:
            freed += _prune_answers(cache_home() / folder, kind, idle_days, progress)
    for item in cache_items():
        stale = item.kind == "layer" and item.idle_days >= idle_days
        if (item.needed and not stale) or item.kind not in kinds:
            continue
        if progress is not None:
            progress(item)
        _remove(item.path, identity)
        freed += item.size_bytes
    return freed


def _prune_answers(
    folder: Path, kind: str, idle_days: float, progress: Callable[[CacheItem], None] | None
) -> int:
    """Remove single answers; an answer's time says when it was used last. Returns the bytes freed."""
    files = [_item(kind, path.stem, path, path, needed=True) for path in _files(folder)]
    stale = [item for item in files if item.idle_days >= idle_days]
    freed = sum(item.size_bytes for item in stale)
    if stale and progress is not None:
        progress(CacheItem(kind, f"{len(stale)} of {len(files)}", folder, freed, idle_days, needed=True))
    for item in stale:
        with contextlib.suppress(OSError):
            item.path.unlink()
    return freed


def _files(folder: Path) -> list[Path]:
    return [path for shard in _children(folder) for path in _children(shard) if path.suffix == ".json"]


def clear() -> int:
    """Remove all that was made in the cache folder, and the folder itself when nothing else lies in it.

    Returns:
        Bytes freed, as far as they could be seen.

    Raises:
        UserError: sandboxes are running, or something could not be removed.
    """
    home = cache_home()
    busy = sorted({item.name.partition("-")[0] for item in _scratch(home) if item.needed})
    if busy:
        raise UserError(
            f"sandboxes of process {', '.join(busy)} are running",
            hint="wait for them or stop them, then clear again",
        )
    freed = sum(item.size_bytes for item in cache_items() if item.kind != "foreign")
    identity = current_identity()
    for path in _children(home):
        if _is_ours(path):
            _remove(path, identity)
    with contextlib.suppress(OSError):
        home.rmdir()
    left = [path for path in _children(home) if _is_ours(path)]
    if left:
        raise UserError(
            f"{len(left)} entries of {home} could not be removed: {', '.join(path.name for path in left[:5])}",
            hint="they belong to another user; clear the cache as that user",
        )
    return freed


def _is_ours(path: Path) -> bool:
    return path.name in _PARTS or path.name.startswith(_PROBE_PREFIX)


def _bases(home: Path) -> list[CacheItem]:
    found: list[CacheItem] = []
    for base in _children(home / "bases"):
        wanted: set[str] = set()
        for index in base.glob("*.json"):
            with contextlib.suppress(OSError, ValueError):
                record = json.loads(index.read_text())
                if isinstance(record, dict):
                    wanted.add(str(cast("dict[str, Any]", record).get("folder", "")))
        for folder in _children(base):
            if (folder / "rootfs").is_dir() and not folder.name.startswith("building-"):
                name = f"{base.name}/{folder.name}"
                found.append(_item("base", name, folder, folder, needed=folder.name in wanted))
    return found


def _layers(home: Path) -> list[CacheItem]:
    return [
        _item("layer", f"{owner.name}/{folder.name}", folder, folder / "layer.json", needed=True)
        for owner in _children(home / "layers")
        for folder in _children(owner)
        if (folder / "layer.json").is_file()
    ]


def _scratch(home: Path) -> list[CacheItem]:
    return [
        _item(
            "scratch",
            folder.name,
            folder,
            folder,
            needed=Path(f"/proc/{folder.name.partition('-')[0]}").exists(),
        )
        for folder in _children(home / "run")
        if scratch.is_scratch(folder)
    ]


def _item(kind: str, name: str, path: Path, used: Path, *, needed: bool) -> CacheItem:
    try:
        idle = max(0.0, (time.time() - used.lstat().st_mtime) / _DAY_SEC)
    except OSError:
        idle = 0.0
    return CacheItem(kind, name, path, _size(path), idle, needed)


def _children(folder: Path) -> list[Path]:
    """Entries of a folder, sorted; none of a link, which may lead out of the cache."""
    if folder.is_symlink() and folder != cache_home():
        return []
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _size(path: Path) -> int:
    if not path.is_dir() or path.is_symlink():
        with contextlib.suppress(OSError):
            return path.lstat().st_size
        return 0
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(folder, name).lstat().st_blocks * 512
    return total


def _remove(path: Path, identity: Identity) -> None:
    if path.is_dir() and not path.is_symlink():
        remove_tree(path, identity)
    else:
        with contextlib.suppress(OSError):
            path.unlink()
