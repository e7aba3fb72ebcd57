"""Which base images this machine has: where they lie, and the index that says which one is current.

``cache_home()/bases/NAME-ARCH/`` holds one folder a digest and identity, with the files in ``rootfs``, and one index
file an identity. An index file names the recipe that its base was made by; one of an older recipe counts for nothing.
"""

import functools
import json
from dataclasses import dataclass
from pathlib import Path

from skill2env.records import digest_of
from skill2env.sandbox import catalog
from skill2env.sandbox.base_scripts import CLEAN, CONFIGURE, SETTINGS
from skill2env.sandbox.debian import architecture
from skill2env.sandbox.identity import Identity, current_identity
from skill2env.store.folders import cache_home

DIGEST_FILE = "digest"
"""Beside ``rootfs``: the digest of the base."""


@dataclass(frozen=True, slots=True)
class BaseImage:
    """A base that exists on this machine."""

    name: str
    digest: str
    """Digest of its OCI manifest; covers every file and the architecture."""
    rootfs: Path
    architecture: str

    @property
    def reference(self) -> str:
        """How published Dockerfiles name it."""
        return f"{catalog.registry()}/{self.name}@{self.digest}"


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """What the index says about the current base of one identity."""

    digest: str
    folder: str
    """Name of its folder."""
    epoch: int
    """The newest time of a file of its packages, in seconds since 1970."""

    def text(self, name: str) -> str:
        """Content of the index file of the base of that name."""
        told = {"digest": self.digest, "epoch": self.epoch, "folder": self.folder}
        return json.dumps({**told, "recipe": recipe_digest(name)}, sort_keys=True)


def base_home(name: str) -> Path:
    """Folder of all versions of a base."""
    return cache_home() / "bases" / f"{name}-{architecture()}"


def index_file(name: str, identity: Identity) -> Path:
    """Where the index of an identity lies.

    Ownership in a base depends on how ids map, so tiers that share a cache folder keep their own copies.
    """
    return base_home(name) / f"{identity.tier}-{identity.root_uid}.json"


def folder_name(digest: str, identity: Identity) -> str:
    """Name of the folder of a base of that digest."""
    return f"{digest.removeprefix('sha256:')[:16]}-{identity.tier}-{identity.root_uid}"


@functools.cache
def recipe_digest(name: str) -> str:
    """Digest of everything of ours that decides a base's content: when it changes, the base is built again.

    Raises:
        UserError: no such name.
    """
    entry = catalog.lookup(name)
    parts = [SETTINGS, CONFIGURE, CLEAN, entry.suite, list(entry.packages), dict(entry.groups)]
    return digest_of(parts)


def read_index(name: str, identity: Identity) -> IndexEntry | None:
    """What the index says; None when there is no index, a damaged one, or one of an older recipe."""
    try:
        record = json.loads(index_file(name, identity).read_text())
        if record["recipe"] != recipe_digest(name):
            return None
        return IndexEntry(str(record["digest"]), str(record["folder"]), int(record["epoch"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def built_base(name: str) -> BaseImage | None:
    """The base of that name, if this machine has built it by today's recipe.

    Raises:
        UserError: no such name.
    """
    entry = catalog.lookup(name)
    found = read_index(entry.name, current_identity())
    if found is None:
        return None
    rootfs = base_home(entry.name) / found.folder / "rootfs"
    base = BaseImage(entry.name, found.digest, rootfs, architecture())
    return base if (rootfs / "usr/bin/python3").is_symlink() else None


def stored_base(name: str, digest: str) -> BaseImage | None:
    """A base of exactly that digest, if this machine still has it; it may be older than the one of `built_base`.

    Raises:
        UserError: no such name.
    """
    folder = base_home(catalog.lookup(name).name) / folder_name(digest, current_identity())
    try:
        if (folder / DIGEST_FILE).read_text() != digest:
            return None
    except OSError:
        return None
    return BaseImage(name, digest, folder / "rootfs", architecture())
