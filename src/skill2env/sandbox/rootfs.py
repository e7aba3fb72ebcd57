"""Build the root file system of a catalog base from Debian's packages: no engine, no root needed, same versions same bytes.

Packages are resolved and downloaded by the machine's apt with private folders (so signatures are checked against the machine's keyring),
unpacked, configured by dpkg inside a sandbox, cleaned, and stored under ``cache_home()/bases/NAME-ARCH/DIGEST``.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox import catalog, mirrors, oci
from skill2env.sandbox.identity import Identity, Tier, current_identity
from skill2env.sandbox.scratch import remove_tree
from skill2env.sandbox.session import Bind, ResourceLimits, Sandbox, SandboxSpec
from skill2env.store.folders import cache_home

Progress = Callable[[str], None]
_BUILD_TIMEOUT_SEC = 600.0
_NEEDED_FREE_MB = 900

_CONFIGURE = r"""
set -e
export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true LC_ALL=C SOURCE_DATE_EPOCH=0
echo root:x:0:0:root:/root:/bin/bash > /etc/passwd
echo root:x:0: > /etc/group
opts="--force-depends --force-unsafe-io --force-confnew"
dpkg $opts --install /run/debs/base-passwd_*.deb
dpkg $opts --install /run/debs/*.deb || true
dpkg --force-unsafe-io --configure --pending
dpkg --audit
test -z "$(dpkg --audit)"
update-ca-certificates --fresh >/dev/null
"""

_CLEAN = r"""
set -e
rm -rf /var/cache/apt/* /var/lib/apt/lists/* /var/log/* /var/cache/ldconfig/* /var/cache/debconf/*-old /var/tmp/* /tmp/* /root/.[!.]*
rm -rf /usr/share/man/* /usr/share/info/* /usr/share/locale/* /usr/share/lintian /usr/share/bug
find /usr/share/doc -mindepth 2 ! -name copyright ! -type d -delete
find /usr/share/doc -mindepth 1 -type d -empty -delete
find / -xdev -name __pycache__ -type d -prune -exec rm -rf {} +
# Byte code keyed by content instead of time: python starts three times faster and the bytes repeat.
PYTHONHASHSEED=0 python3 -I -m compileall -q -j 1 --invalidation-mode unchecked-hash /usr/lib/python3* || test $? = 1
rm -f /var/lib/dpkg/*-old /etc/*- /etc/.pwd.lock /etc/resolv.conf /etc/hostname /etc/apt/sources.list
rm -rf /etc/apt/sources.list.d/* /etc/apt/apt.conf.d/99*
: > /etc/machine-id
printf '127.0.0.1 localhost\n::1 localhost\n' > /etc/hosts
mkdir -p /var/cache/apt/archives/partial /var/lib/apt/lists/partial /var/log/apt
chmod 1777 /tmp /var/tmp
"""

_PACK = "cd / && exec tar -cf - --sort=name --numeric-owner --one-file-system --exclude=./dev/* --exclude=./proc/* --exclude=./sys/* --exclude=./run/* ."


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


def ensure_base(name: str = "debian-bookworm", *, progress: Progress | None = None) -> BaseImage:
    """The base of that name, built on first use (about half a minute) and kept.

    Raises:
        UserError: no such name.
        InfraError: apt is missing, the mirror cannot be reached, the disk is full, or sandboxes do not work here.
    """
    entry = catalog.lookup(name)
    identity = current_identity()
    found = _known(name, identity)
    if found is not None:
        return found
    home = _home(name)
    home.mkdir(parents=True, exist_ok=True)
    if identity.tier is Tier.ROOT:
        for folder in (cache_home(), home.parent, home):
            folder.chmod(0o755)
    with FileLock(home / "build.lock"):
        found = _known(name, identity)
        return found if found is not None else _build(entry, home, identity, progress or (lambda _: None))


def architecture() -> str:
    """Debian's name of this machine's architecture."""
    machine = os.uname().machine
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def _home(name: str) -> Path:
    return cache_home() / "bases" / f"{name}-{architecture()}"


def _index(identity: Identity) -> str:
    # Ownership in a base depends on how ids map, so tiers that share a cache folder keep their own copies.
    return f"{identity.tier}-{identity.root_uid}.json"


def _known(name: str, identity: Identity) -> BaseImage | None:
    try:
        record = json.loads((_home(name) / _index(identity)).read_text())
        base = BaseImage(name, record["digest"], _home(name) / record["folder"] / "rootfs", architecture())
    except (OSError, ValueError, KeyError):
        return None
    return base if (base.rootfs / "usr/bin/python3").is_symlink() else None


def _build(entry: catalog.Base, home: Path, identity: Identity, progress: Progress) -> BaseImage:
    for stale in home.glob("building-*"):
        remove_tree(stale, identity)
    free = shutil.disk_usage(home).free // 2**20
    if free < _NEEDED_FREE_MB:
        raise InfraError(
            Boundary.STORAGE,
            f"only {free} MB are free below {home}",
            hint="Free some space, or set SKILL2ENV_CACHE to another disk.",
        )
    work = Path(tempfile.mkdtemp(prefix="building-", dir=home))
    work.chmod(0o755)
    try:
        progress(f"{entry.name}: downloading Debian packages")
        debs = _download(entry, work)
        progress(f"{entry.name}: unpacking {len(list(debs.glob('*.deb')))} packages")
        tree = work / "unpacked"
        epoch = _unpack(debs, tree, identity)
        progress(f"{entry.name}: configuring inside a sandbox")
        digest, folder = _configure(entry, tree, debs, work, epoch, identity)
        target = home / folder
        remove_tree(target, identity)
        (work / "final").rename(target)
        record = home / _index(identity)
        temporary = record.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps({"digest": digest, "folder": folder}))
        temporary.rename(record)
        progress(f"{entry.name}: ready ({digest[:19]})")
        return BaseImage(entry.name, digest, target / "rootfs", architecture())
    except OSError as error:
        raise InfraError(Boundary.STORAGE, f"building {entry.name} failed: {error}") from error
    finally:
        remove_tree(work, identity)


def _download(entry: catalog.Base, work: Path) -> Path:
    """Resolve and download with private apt folders; returns the folder of packages."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise InfraError(
            Boundary.BUILD,
            "base images are built from Debian packages and this machine has no apt-get",
            hint="Use `--sandbox docker` on this machine, or run on Debian or Ubuntu.",
            transient=False,
        )
    apt = work / "apt"
    for folder in (
        "etc/sources.list.d",
        "etc/preferences.d",
        "etc/apt.conf.d",
        "etc/trusted.gpg.d",
        "state/lists/partial",
        "cache/archives/partial",
    ):
        (apt / folder).mkdir(parents=True)
    (apt / "status").write_text("")
    if not mirrors.KEYRING.exists():
        raise InfraError(
            Boundary.BUILD,
            f"{mirrors.KEYRING} is missing",
            hint="apt-get install debian-archive-keyring",
            transient=False,
        )
    (apt / "etc/sources.list").write_text(
        mirrors.debian_mirror().sources(entry.suite, signed_by=str(mirrors.KEYRING))
    )
    options = [
        f"-oDir::Etc={apt}/etc", f"-oDir::State={apt}/state", f"-oDir::State::status={apt}/status", f"-oDir::Cache={apt}/cache",
        "-oAPT::Sandbox::User=root", "-oAPT::Install-Recommends=false", "-oAcquire::Languages=none", "-oAcquire::Retries=2",
        f"-oAPT::Architecture={architecture()}", f"-oAPT::Architectures={architecture()}", "-oDebug::NoLocking=true",
        *([f"-oAcquire::http::Proxy={mirrors.apt_proxy()}"] if mirrors.apt_proxy() else []),
    ]  # fmt: skip
    _apt(["apt-get", *options, "-q", "-y", "-oAPT::Update::Error-Mode=any", "update"])
    _apt(
        [
            "apt-get",
            *options,
            "-q",
            "-y",
            "--download-only",
            "install",
            "?essential",
            "?priority(required)",
            *entry.packages,
        ]
    )
    return apt / "cache" / "archives"


def _apt(command: list[str]) -> None:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C"},
    )
    if done.returncode == 0:
        return
    told = "\n".join((done.stderr or done.stdout).strip().splitlines()[-6:])
    if "No space left" in told:
        raise InfraError(Boundary.STORAGE, f"the disk is full while downloading packages: {told}")
    raise InfraError(
        Boundary.NETWORK,
        f"apt could not fetch Debian packages: {told}",
        hint="Check the network and the mirror in /etc/apt, then run again.",
    )


def _unpack(debs: Path, tree: Path, identity: Identity) -> int:
    """Unpack all packages over merged /usr folders; returns the newest modification time among their files."""
    tree.mkdir()
    for name in ("bin", "sbin", "lib", *(["lib64"] if architecture() == "amd64" else [])):
        (tree / "usr" / name).mkdir(parents=True)
        (tree / name).symlink_to(f"usr/{name}")
    as_user = [] if identity.tier is Tier.ROOT else ["--no-same-owner"]
    for package in sorted(debs.glob("*.deb")):
        with subprocess.Popen(
            ["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE
        ) as archive:
            done = subprocess.run(
                ["tar", "-xpf", "-", "--keep-directory-symlink", *as_user, "--exclude=./dev/*", "-C", str(tree)],
                stdin=archive.stdout, capture_output=True, text=True, check=False,
            )  # fmt: skip
        if done.returncode or archive.returncode:
            raise InfraError(Boundary.BUILD, f"{package.name} could not be unpacked: {done.stderr[-300:]}")
    epoch = 0
    for folder, _, names in os.walk(tree):
        for name in names:
            with contextlib.suppress(OSError):
                epoch = max(epoch, int(os.lstat(os.path.join(folder, name)).st_mtime))
    for name in ("info", "updates", "triggers", "parts"):
        (tree / "var/lib/dpkg" / name).mkdir(parents=True, exist_ok=True)
    for name in ("status", "available"):
        (tree / "var/lib/dpkg" / name).write_text("")
    if identity.tier is Tier.ROOT:
        _shift_owners(tree, identity)
    return epoch


def _shift_owners(tree: Path, identity: Identity) -> None:
    for folder, names, files in os.walk(tree):
        for path in (folder, *(os.path.join(folder, n) for n in (*names, *files))):
            status = os.lstat(path)
            if status.st_uid < identity.root_uid:
                mode = status.st_mode & 0o7777
                os.chown(
                    path,
                    identity.root_uid + status.st_uid,
                    identity.root_gid + status.st_gid,
                    follow_symlinks=False,
                )
                if mode & 0o6000 and not os.path.islink(path):
                    os.chmod(path, mode)  # chown clears the set-id bits


def _configure(
    entry: catalog.Base, tree: Path, debs: Path, work: Path, epoch: int, identity: Identity
) -> tuple[str, str]:
    """Configure, clean, pack and unpack again as one clean tree; returns (digest, folder name)."""
    layer = work / "layer.tar"
    debs.chmod(0o755)
    # Lists of installed files of ours are not needed, but tar of the merged view is: one layer, no whiteouts.
    with Sandbox(
        SandboxSpec(
            layers=(tree,), binds=(Bind(debs, "/run/debs"),), build=True, limits=ResourceLimits(pids=None)
        ),
        identity=identity,
    ) as box:
        for doing, script in (("configuring packages", _CONFIGURE), ("cleaning up", _CLEAN)):
            done = box.exec(["/bin/sh", "-c", script], merge_stderr=True, timeout_sec=_BUILD_TIMEOUT_SEC)
            if done.return_code:
                raise InfraError(
                    Boundary.BUILD,
                    f"{doing} in the base image failed: {done.stdout[-1500:].decode(errors='replace')}",
                    transient=False,
                )
        packed = work / "raw.tar"
        done = box.exec(["/bin/sh", "-c", _PACK], timeout_sec=_BUILD_TIMEOUT_SEC, output_limit=2**32)
        packed.write_bytes(done.stdout)
        if done.return_code:
            raise InfraError(
                Boundary.BUILD,
                f"packing the base image failed: {done.stderr[-500:].decode(errors='replace')}",
            )
    with packed.open("rb") as source, layer.open("wb") as target:
        layer_digest, size = oci.normalise_layer(
            source, target, epoch=epoch, groups=entry.groups, change=_normal_content
        )
    packed.unlink()
    digest, _, _ = oci.manifest(layer_digest, size, architecture())
    final = work / "final"
    rootfs = final / "rootfs"
    rootfs.mkdir(parents=True)
    for folder in (final, rootfs):
        folder.chmod(0o755)
    if identity.tier is Tier.ROOT:
        os.chown(rootfs, identity.root_uid, identity.root_gid)
    with Sandbox(
        SandboxSpec(
            layers=(tree,),
            binds=(Bind(layer, "/run/layer.tar"), Bind(rootfs, "/run/rootfs", writable=True)),
            build=True,
            limits=ResourceLimits(pids=None),
        ),
        identity=identity,
    ) as box:
        layer.chmod(0o644)
        done = box.exec(
            ["/bin/tar", "-xpf", "/run/layer.tar", "--numeric-owner", "-C", "/run/rootfs"],
            timeout_sec=_BUILD_TIMEOUT_SEC,
        )
        if done.return_code:
            raise InfraError(
                Boundary.BUILD,
                f"unpacking the base image failed: {done.stderr[-500:].decode(errors='replace')}",
            )
    return digest, f"{digest.removeprefix('sha256:')[:16]}-{identity.tier}-{identity.root_uid}"


def _normal_content(name: str, data: bytes) -> bytes:
    """Take the build day out of the shadow files."""
    if name in ("./etc/shadow", "./etc/gshadow"):
        return re.sub(rb"(?m)^([^:\n]*:[^:\n]*):\d+:", rb"\1:0:", data)
    return data
