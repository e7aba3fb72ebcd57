"""The root file system of a catalog base, built from Debian's packages: no engine, no root, same versions same bytes.

Packages are downloaded by `debian`, unpacked, configured by dpkg inside a sandbox, cleaned, packed into a normalised
layer whose OCI manifest gives the digest (`oci`), and unpacked from that layer into ``cache_home()/bases/NAME-ARCH``.
All tiers of `identity` give the same digest; each keeps its own copy, because the owners on disk differ.
"""

import functools
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from skill2env.errors import Boundary, InfraError
from skill2env.records import digest_of
from skill2env.sandbox import catalog, oci
from skill2env.sandbox.base_scripts import CLEAN, CONFIGURE, PACK, SETTINGS, UNPACK
from skill2env.sandbox.debian import architecture, download, unpack
from skill2env.sandbox.identity import Identity, Tier, current_identity
from skill2env.sandbox.scratch import remove_tree
from skill2env.sandbox.session import Bind, ResourceLimits, Sandbox, SandboxSpec
from skill2env.store.files import storage
from skill2env.store.folders import cache_home

__all__ = [
    "BaseImage",
    "architecture",
    "built_base",
    "ensure_base",
    "export_base",
    "recipe_digest",
    "stored_base",
]

Progress = Callable[[str], None]
_BUILD_TIMEOUT_SEC = 600.0
_ROOM = 5
"""While a base is built, its files are there so many times: packages, seed, overlay, archives, result."""
_DIGEST_FILE = "digest"


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


def ensure_base(name: str = catalog.DEFAULT_BASE, *, progress: Progress | None = None) -> BaseImage:
    """The base of that name, built on first use (half a minute to three) and kept.

    Two processes at once build it once; a killed build leaves nothing that is mistaken for a base.

    Raises:
        UserError: no such name.
        InfraError: apt is missing, the mirror cannot be reached, the disk is full, or sandboxes do not work here.
    """
    entry = catalog.lookup(name)
    identity = current_identity()
    found = _known(entry, identity)
    if found is not None:
        return found
    tell = progress or _silent
    home = _home(name)
    with storage("making the folder of base images", home):
        home.mkdir(parents=True, exist_ok=True)
        if identity.tier is Tier.ROOT:
            for folder in (cache_home(), home.parent, home):
                folder.chmod(0o755)
    lock = FileLock(home / "build.lock")
    try:
        lock.acquire(timeout=0.2)
    except Timeout:
        tell(f"{name}: waiting for another process that builds it")
        lock.acquire()
    try:
        return _known(entry, identity) or _build(entry, home, identity, tell)
    finally:
        lock.release()


def built_base(name: str) -> BaseImage | None:
    """The base that `ensure_base` would give at once; None when it would have to build it.

    Raises:
        UserError: no such name.
    """
    return _known(catalog.lookup(name), current_identity())


def _silent(_: str) -> None:
    """Tell nobody."""


def _home(name: str) -> Path:
    return cache_home() / "bases" / f"{name}-{architecture()}"


def _index(identity: Identity) -> str:
    # Ownership in a base depends on how ids map, so tiers that share a cache folder keep their own copies.
    return f"{identity.tier}-{identity.root_uid}.json"


@functools.cache
def recipe_digest(name: str) -> str:
    """Digest of everything of ours that decides a base's content: when it changes, the base is built again.

    Raises:
        UserError: no such name.
    """
    entry = catalog.lookup(name)
    parts = [SETTINGS, CONFIGURE, CLEAN, entry.suite, list(entry.packages), dict(entry.groups)]
    return digest_of(parts)


def _record(entry: catalog.Base, identity: Identity) -> dict[str, str | int]:
    """What the index says about the base of this identity; empty when there is none, or one of an older recipe."""
    try:
        record = json.loads((_home(entry.name) / _index(identity)).read_text())
        if record["recipe"] != recipe_digest(entry.name):
            return {}
        return {
            "digest": str(record["digest"]),
            "folder": str(record["folder"]),
            "epoch": int(record["epoch"]),
        }
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _folder(digest: str, identity: Identity) -> str:
    return f"{digest.removeprefix('sha256:')[:16]}-{identity.tier}-{identity.root_uid}"


def stored_base(name: str, digest: str) -> BaseImage | None:
    """A base of exactly that digest, if this machine still has it; it may be older than the one of `ensure_base`.

    Raises:
        UserError: no such name.
    """
    folder = _home(catalog.lookup(name).name) / _folder(digest, current_identity())
    try:
        if (folder / _DIGEST_FILE).read_text() != digest:
            return None
    except OSError:
        return None
    return BaseImage(name, digest, folder / "rootfs", architecture())


def _known(entry: catalog.Base, identity: Identity) -> BaseImage | None:
    record = _record(entry, identity)
    if not record:
        return None
    rootfs = _home(entry.name) / str(record["folder"]) / "rootfs"
    base = BaseImage(entry.name, str(record["digest"]), rootfs, architecture())
    return base if (rootfs / "usr/bin/python3").is_symlink() else None


def _build(entry: catalog.Base, home: Path, identity: Identity, tell: Progress) -> BaseImage:
    for stale in home.glob("building-*"):
        remove_tree(stale, identity)
    free = shutil.disk_usage(home).free // 2**20
    needed = entry.megabytes * _ROOM
    if free < needed:
        raise InfraError(
            Boundary.STORAGE,
            f"only {free} MB are free below {home}, and building {entry.name} needs {needed}",
            hint="Free some space, or set SKILL2ENV_CACHE to a folder on another disk.",
        )
    with storage("building a base image", home):
        work = Path(tempfile.mkdtemp(prefix="building-", dir=home))
        try:
            return _build_in(work, entry, home, identity, tell)
        finally:
            remove_tree(work, identity)


def _build_in(work: Path, entry: catalog.Base, home: Path, identity: Identity, tell: Progress) -> BaseImage:
    work.chmod(0o755)
    tell(f"{entry.name}: downloading Debian packages")
    (work / "apt").mkdir()
    packages = download(entry, work / "apt")
    tell(f"{entry.name}: unpacking {len(list(packages.glob('*.deb')))} packages")
    seed = work / "seed"
    epoch = unpack(packages, seed)
    for folder in ("info", "updates", "triggers", "parts"):
        (seed / "var/lib/dpkg" / folder).mkdir(parents=True, exist_ok=True)
    for file in ("status", "available"):
        (seed / "var/lib/dpkg" / file).write_text("")
    _give_to_guest(seed, identity)
    tell(f"{entry.name}: configuring them inside a sandbox")
    _configure(seed, packages, work, identity)
    tell(f"{entry.name}: storing")
    layer = _normalise(entry, work, epoch)
    digest, _, _ = oci.manifest(layer, architecture())
    _unpack_layer(seed, work, identity)
    folder = _folder(digest, identity)
    (work / "final" / _DIGEST_FILE).write_text(digest)
    remove_tree(home / folder, identity)
    (work / "final").rename(home / folder)
    record = {"digest": digest, "folder": folder, "epoch": epoch, "recipe": recipe_digest(entry.name)}
    temporary = work / "index.json"
    temporary.write_text(json.dumps(record, sort_keys=True))
    temporary.rename(home / _index(identity))
    tell(f"{entry.name}: ready ({digest[:19]})")
    return BaseImage(entry.name, digest, home / folder / "rootfs", architecture())


def _give_to_guest(tree: Path, identity: Identity) -> None:
    """Make root inside the sandbox the owner of everything; only root must, and may, do that."""
    if identity.tier is not Tier.ROOT:
        return
    for folder, names, files in os.walk(tree):
        for name in (".", *names, *files):
            os.chown(Path(folder, name), identity.root_uid, identity.root_gid, follow_symlinks=False)


def _guest_folder(path: Path, identity: Identity) -> Path:
    """A new folder that the sandbox may write into."""
    path.mkdir(parents=True)
    path.chmod(0o755)
    _give_to_guest(path, identity)
    return path


def _spec(layer: Path, *binds: Bind) -> SandboxSpec:
    return SandboxSpec(layers=(layer,), binds=binds, build=True, limits=ResourceLimits(pids=None))


def _do(box: Sandbox, doing: str, script: str) -> None:
    done = box.exec(["/bin/sh", "-c", script], merge_stderr=True, timeout_sec=_BUILD_TIMEOUT_SEC)
    if done.return_code:
        told = done.stdout[-1500:].decode(errors="replace")
        full = "No space left" in told
        raise InfraError(
            Boundary.STORAGE if full else Boundary.BUILD,
            f"{doing} the base image failed: {told}",
            hint="Make room, or set SKILL2ENV_CACHE to a folder on another disk." if full else "",
            transient=full,
        )


def _configure(seed: Path, packages: Path, work: Path, identity: Identity) -> None:
    """Install every package properly over the seed, clean up, and leave the merged view in ``out/raw.tar``."""
    packages.chmod(0o755)
    out = _guest_folder(work / "out", identity)
    with Sandbox(
        _spec(seed, Bind(packages, "/run/debs"), Bind(out, "/run/out", writable=True)), identity=identity
    ) as box:
        _do(box, "preparing", SETTINGS)
        _do(box, "configuring", CONFIGURE)
        _do(box, "cleaning", CLEAN)
        _do(box, "packing", PACK)


def _normalise(entry: catalog.Base, work: Path, epoch: int) -> oci.Layer:
    """Turn ``out/raw.tar`` into ``out/layer.tar``; returns what it is."""
    raw, layer = work / "out/raw.tar", work / "out/layer.tar"
    with raw.open("rb") as source, layer.open("wb") as target:
        made = oci.normalise_layer(source, target, epoch=epoch, groups=entry.groups, change=_normal_content)
    raw.unlink()
    layer.chmod(0o644)
    return made


def _unpack_layer(seed: Path, work: Path, identity: Identity) -> None:
    """Unpack the layer into ``final/rootfs`` inside the mapping, so that every file has its owner."""
    (work / "final").mkdir()
    (work / "final").chmod(0o755)
    rootfs = _guest_folder(work / "final/rootfs", identity)
    binds = (Bind(work / "out", "/run/out"), Bind(rootfs, "/run/rootfs", writable=True))
    with Sandbox(_spec(seed, *binds), identity=identity) as box:
        _do(box, "unpacking", UNPACK)


def _normal_content(name: str, data: bytes) -> bytes:
    """Take the build day out of the shadow files."""
    if name in ("./etc/shadow", "./etc/gshadow"):
        return re.sub(rb"(?m)^([^:\n]*:[^:\n]*):\d+:", rb"\1:0:", data)
    return data


def export_base(name: str, folder: Path) -> str:
    """Write a base as an OCI image layout, to be pushed to a registry by any tool; returns the manifest digest.

    Packs the files as they are on disk now, so it also proves that they still have the digest of the base.

    Raises:
        UserError: no such name.
        InfraError: the base cannot be built, was changed on disk, or `folder` cannot be written.
    """
    base, identity = ensure_base(name), current_identity()
    entry = catalog.lookup(name)
    record = _record(entry, identity)
    with storage("exporting a base image", folder):
        folder.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix="building-", dir=_home(name)))
        try:
            work.chmod(0o755)
            out = _guest_folder(work / "out", identity)
            with Sandbox(_spec(base.rootfs, Bind(out, "/run/out", writable=True)), identity=identity) as box:
                _do(box, "packing", PACK)
            layer = _normalise(entry, work, int(record["epoch"]))
            digest, _, _ = oci.manifest(layer, base.architecture)
            if digest != base.digest:
                raise InfraError(
                    Boundary.STORAGE,
                    f"the base {name} was changed on disk: it is {digest} and should be {base.digest}",
                    hint="`skill2env cache clear` removes it; the next run builds it again.",
                    transient=False,
                )
            return oci.write_layout(folder, out / "layer.tar", layer, base.architecture, base.reference)
        finally:
            remove_tree(work, identity)
