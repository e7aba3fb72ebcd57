"""The root file system of a catalog base, built from Debian's packages: no engine, no root, same versions same bytes.

Packages are downloaded by `debian`, unpacked, configured by dpkg inside a sandbox, cleaned, packed into a normalised
layer whose OCI manifest gives the digest (`oci`), and unpacked from that layer into ``cache_home()/bases/NAME-ARCH``.
All tiers of `identity` give the same digest; each keeps its own copy, because the owners on disk differ.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox import catalog, oci
from skill2env.sandbox.base_scripts import CLEAN, CONFIGURE, PACK, SETTINGS, UNPACK
from skill2env.sandbox.base_store import (
    DIGEST_FILE,
    BaseImage,
    IndexEntry,
    base_home,
    built_base,
    folder_name,
    index_file,
    read_index,
    stored_base,
)
from skill2env.sandbox.box import Box
from skill2env.sandbox.debian import architecture, download, unpack
from skill2env.sandbox.identity import Identity, Tier, current_identity
from skill2env.sandbox.precompiled import precompile
from skill2env.sandbox.scratch import remove_tree
from skill2env.sandbox.session import Bind, ResourceLimits, Sandbox, SandboxSpec
from skill2env.store.files import storage
from skill2env.store.folders import cache_home

__all__ = ["BaseImage", "architecture", "ensure_base", "export_base", "packed_base", "stored_base"]

Progress = Callable[[str], None]
_BUILD_TIMEOUT_SEC = 1800.0
_ROOM = 6
"""While a base is built, its files are there so many times: packages, seed, overlay, archives, result."""


def ensure_base(name: str = catalog.DEFAULT_BASE, *, progress: Progress | None = None) -> BaseImage:
    """The base of that name, built on first use (half a minute to three) and kept.

    Two processes at once build it once; a killed build leaves nothing that is mistaken for a base.

    Raises:
        UserError: no such name.
        InfraError: apt is missing, the mirror cannot be reached, the disk is full, or sandboxes do not work here.
    """
    base = built_base(name) or _ensure(name, progress)
    precompile(base)
    return base


def _ensure(name: str, progress: Progress | None) -> BaseImage:
    entry, identity, tell = catalog.lookup(name), current_identity(), progress or _silent
    home = base_home(name)
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
        return built_base(name) or _build(entry, home, identity, tell)
    finally:
        lock.release()


def _silent(_: str) -> None:
    """Tell nobody."""


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
    packages, seed, epoch = unpack_seed(entry, work, tell)
    _give_to_guest(seed, identity)
    tell(f"{entry.name}: configuring them inside a sandbox")
    _configure(seed, packages, work, identity)
    tell(f"{entry.name}: storing")
    layer = normalise(entry, work, epoch)
    digest, _, _ = oci.manifest(layer, architecture())
    _unpack_layer(seed, work, identity)
    folder = folder_name(digest, identity)
    (work / "final" / DIGEST_FILE).write_text(digest)
    remove_tree(home / folder, identity)
    (work / "final").rename(home / folder)
    temporary = work / "index.json"
    temporary.write_text(IndexEntry(digest, folder, epoch).text(entry.name))
    temporary.rename(index_file(entry.name, identity))
    tell(f"{entry.name}: ready ({digest[:19]})")
    return BaseImage(entry.name, digest, home / folder / "rootfs", architecture())


def unpack_seed(entry: catalog.Base, work: Path, tell: Progress) -> tuple[Path, Path, int]:
    """Download and unpack the packages of a base, nothing configured: (packages, tree, newest time in it).

    Raises:
        InfraError: apt is missing, the mirror cannot be reached, or the disk is full.
    """
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
    return packages, seed, epoch


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


def do_script(box: Box, doing: str, script: str) -> None:
    """Run one of `base_scripts`.

    Raises:
        InfraError: it failed.
    """
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
        do_script(box, "preparing", SETTINGS)
        do_script(box, "configuring", CONFIGURE)
        do_script(box, "cleaning", CLEAN)
        do_script(box, "packing", PACK)


def normalise(entry: catalog.Base, work: Path, epoch: int) -> oci.Layer:
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
        do_script(box, "unpacking", UNPACK)


def _normal_content(name: str, data: bytes) -> bytes:
    """Take the build day out of the shadow files."""
    if name in ("./etc/shadow", "./etc/gshadow"):
        return re.sub(rb"(?m)^([^:\n]*:[^:\n]*):\d+:", rb"\1:0:", data)
    return data


@contextmanager
def packed_base(base: BaseImage) -> Generator[tuple[Path, oci.Layer]]:
    """The layer of a base as an archive, packed from the files as they are on disk now and removed afterwards.

    So it also proves that they still have the digest of the base.

    Raises:
        UserError: no such name.
        InfraError: the base was changed on disk, or the disk is full.
    """
    identity, home = current_identity(), base_home(base.name)
    entry, known = catalog.lookup(base.name), read_index(base.name, identity)
    with storage("packing a base image", home), FileLock(home / "build.lock"):
        work = Path(tempfile.mkdtemp(prefix="building-", dir=home))
        try:
            work.chmod(0o755)
            out = _guest_folder(work / "out", identity)
            with Sandbox(_spec(base.rootfs, Bind(out, "/run/out", writable=True)), identity=identity) as box:
                do_script(box, "packing", PACK)
            layer = normalise(entry, work, known.epoch if known else 0)
            digest, _, _ = oci.manifest(layer, base.architecture)
            if digest != base.digest:
                raise InfraError(
                    Boundary.STORAGE,
                    f"the base {base.name} was changed on disk: it is {digest} and should be {base.digest}",
                    hint="`skill2env cache clear` removes it; the next run builds it again.",
                    transient=False,
                )
            yield out / "layer.tar", layer
        finally:
            remove_tree(work, identity)


def export_base(name: str, folder: Path) -> str:
    """Write a base as an OCI image layout, to be pushed to a registry by any tool; returns the manifest digest.

    Raises:
        UserError: no such name.
        InfraError: the base cannot be built, was changed on disk, or `folder` cannot be written.
    """
    base = ensure_base(name)
    with packed_base(base) as (archive, layer), storage("exporting a base image", folder):
        folder.mkdir(parents=True, exist_ok=True)
        return oci.write_layout(folder, archive, layer, base.architecture, base.reference)
