"""The store of built layers: one folder a layer, named by the digest of everything that went into it.

``cache_home()/layers/IDENTITY/KEY/`` holds ``fs`` (the files), ``layer.json`` (what it is), ``build.log`` and
``network.jsonl`` (what its commands said, and asked of the network). A folder is there in full or not at all: it is
built under ``building-*`` and renamed; a lock per key keeps two processes from building the same layer. IDENTITY is
how ids map, because the owners on disk depend on it; keys do not.
"""

import contextlib
import functools
import json
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from filelock import FileLock

from skill2env.sandbox.identity import Identity, Tier
from skill2env.sandbox.scratch import remove_tree, shut
from skill2env.store.files import storage
from skill2env.store.folders import cache_home

KEY_CHARS = 24
"""Hex digits of a layer's folder name: 96 bits, short because the kernel limits the length of overlay options."""
_BUILDING = "building-"


@dataclass(frozen=True, slots=True)
class Layer:
    """A finished layer."""

    key: str
    folder: Path

    @property
    def files(self) -> Path:
        """The upper directory, ready to be a lower one."""
        return self.folder / "fs"


def layers_home(identity: Identity) -> Path:
    """Folder of all layers that this identity can use."""
    return cache_home() / "layers" / f"{identity.tier}-{identity.root_uid}"


def _prepare(identity: Identity) -> Path:
    home = layers_home(identity)
    with storage("making the layer store", home):
        home.mkdir(parents=True, exist_ok=True)
        if identity.tier is Tier.ROOT:
            for folder in (cache_home(), home.parent):
                if folder.stat().st_mode & 0o055 != 0o055 and folder.stat().st_uid == os.geteuid():
                    folder.chmod(0o755)
        shut(home, identity)
    _sweep_once(identity)
    return home


@functools.cache
def _sweep_once(identity: Identity) -> None:
    sweep_unfinished(identity)


def find(key: str, identity: Identity) -> Layer | None:
    """The layer of that key, if it is built and its files are there; its time of last use is now."""
    layer = Layer(key, layers_home(identity) / key[:KEY_CHARS])
    try:
        os.utime(layer.folder / "layer.json")
    except OSError:
        return None
    return layer if layer.files.is_dir() else None


@contextmanager
def building(
    key: str, identity: Identity, description: dict[str, object]
) -> Generator[tuple[Layer | None, Path]]:
    """Build a layer under its lock.

    Yields (the layer that another process finished meanwhile, else None; the folder to work in). When the block ends
    without an error and no layer was there, the folder, whose ``fs`` now holds the files, becomes the layer.

    Raises:
        InfraError: the disk is full or the cache cannot be written.
    """
    home = _prepare(identity)
    target = home / key[:KEY_CHARS]
    with FileLock(home / f"{key[:KEY_CHARS]}.lock"):
        found = find(key, identity)
        if found is not None:
            yield found, target
            return
        with storage("making a layer", home):
            work = Path(tempfile.mkdtemp(prefix=f"{_BUILDING}{os.getpid()}-", dir=home))
            work.chmod(0o755)
            (work / "fs").mkdir()
            if identity.tier is Tier.ROOT:
                os.chown(work / "fs", identity.root_uid, identity.root_gid)
        try:
            with storage("building a layer", work):
                yield None, work
                (work / "layer.json").write_text(
                    json.dumps({"key": key, **description}, sort_keys=True) + "\n"
                )
                remove_tree(target, identity)  # a damaged one
                work.rename(target)
        except BaseException:
            remove_tree(work, identity)
            raise


def layer_steps(folder: Path) -> list[str]:
    """The instructions that a layer's folder holds; empty when it does not say so."""
    try:
        steps = json.loads((folder / "layer.json").read_text()).get("steps")
    except (OSError, ValueError, AttributeError):
        return []
    return [str(step) for step in cast("list[Any]", steps)] if isinstance(steps, list) else []


def sweep_unfinished(identity: Identity) -> int:
    """Delete what killed builds left behind; returns how many folders."""
    removed = 0
    for folder in layers_home(identity).glob(f"{_BUILDING}*"):
        pid = folder.name.removeprefix(_BUILDING).partition("-")[0]
        with contextlib.suppress(OSError):
            if not (pid.isdigit() and Path(f"/proc/{pid}").exists()):
                remove_tree(folder, identity)
                removed += 1
    return removed
