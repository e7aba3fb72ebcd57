"""Debian packages for a base image: resolved and downloaded by the machine's apt with private folders, then unpacked.

apt checks signatures against the machine's keyring. Of the machine's settings only mirrors, proxies and time-outs are
used: its sources, pins, hooks and state are neither read nor touched, so this works without root.
"""

import os
import shutil
import subprocess
from pathlib import Path

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox import mirrors
from skill2env.sandbox.catalog import Base

_FOLDERS = ("state/lists/partial", "cache/archives/partial", "log")
_DEAD_NETWORK_SEC = 20


def architecture() -> str:
    """Debian's name of this machine's architecture."""
    machine = os.uname().machine
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def download(entry: Base, work: Path) -> Path:
    """Resolve and download everything essential, everything required, and the entry's packages.

    Args:
        entry: what the base holds.
        work: an empty folder for apt's private files.

    Returns:
        The folder of ``.deb`` files.

    Raises:
        InfraError: apt or its keyring is missing (``build``), the mirror cannot be reached or is not trusted
            (``network``), or the disk is full (``storage``).
    """
    _check_machine()
    environment = {**os.environ, "LC_ALL": "C", "APT_CONFIG": str(_settings(entry, work))}
    _run(["apt-get", "-q", "-oAPT::Update::Error-Mode=any", "update"], environment)
    wanted = ["?essential", "?priority(required)", *entry.packages]
    _run(
        ["apt-get", "-q", "-y", "--no-install-recommends", "--download-only", "install", *wanted], environment
    )
    return work / "cache" / "archives"


def fetch(package: str, entry: Base, work: Path) -> list[Path]:
    """Download one package of an entry's suite, without what it depends on.

    Args:
        package: its name.
        entry: whose suite it is taken from.
        work: an empty folder for apt's private files.

    Returns:
        The ``.deb`` files.

    Raises:
        InfraError: as for `download`.
    """
    _check_machine()
    environment = {**os.environ, "LC_ALL": "C", "APT_CONFIG": str(_settings(entry, work))}
    _run(["apt-get", "-q", "-oAPT::Update::Error-Mode=any", "update"], environment)
    _run(["apt-get", "-q", "download", package], environment, folder=work)
    return sorted(work.glob("*.deb"))


def _check_machine() -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise InfraError(
            Boundary.BUILD,
            "base images are built from Debian packages and this machine has no apt-get",
            hint="Use `--sandbox docker` on this machine, or run on Debian or Ubuntu.",
            transient=False,
        )
    if not mirrors.KEYRING.exists():
        raise InfraError(
            Boundary.BUILD,
            f"{mirrors.KEYRING} is missing, so Debian packages cannot be trusted",
            hint="As root: apt-get install debian-archive-keyring; or use `--sandbox docker`.",
            transient=False,
        )


def _settings(entry: Base, work: Path) -> Path:
    """Write apt's private configuration; returns its path."""
    for folder in _FOLDERS:
        (work / folder).mkdir(parents=True)
    (work / "status").write_text("")
    (work / "sources.list").write_text(
        mirrors.debian_mirror().sources(entry.suite, signed_by=str(mirrors.KEYRING))
    )
    nothing = ("Parts", "Main", "SourceParts", "Preferences", "PreferencesParts", "TrustedParts")
    lines = [
        *(f'Dir::Etc::{name} "/dev/null";' for name in nothing),
        f'Dir::Etc::SourceList "{work}/sources.list";',
        f'Dir::State "{work}/state";',
        f'Dir::State::status "{work}/status";',
        f'Dir::Cache "{work}/cache";',
        f'Dir::Log "{work}/log";',
        f'APT::Architecture "{architecture()}";',
        f'APT::Architectures "{architecture()}";',
        'APT::Sandbox::User "root";',  # the private folders may lie where apt's own user cannot go
        'Acquire::Languages "none";',
        f'Acquire::http::Timeout "{_DEAD_NETWORK_SEC}";',
        'Acquire::Retries "2";',
        mirrors.apt_settings(),
    ]
    path = work / "apt.conf"
    path.write_text("\n".join(lines) + "\n")
    return path


def _run(command: list[str], environment: dict[str, str], *, folder: Path | None = None) -> None:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env=environment,
        cwd=folder,
    )
    if done.returncode == 0:
        return
    told = "\n".join((done.stderr or done.stdout).strip().splitlines()[-6:])
    if "No space left" in told or "enough free space" in told:
        raise InfraError(
            Boundary.STORAGE,
            f"the disk is full while downloading packages: {told}",
            hint="Make room, or set SKILL2ENV_CACHE to a folder on another disk.",
        )
    raise InfraError(
        Boundary.NETWORK,
        f"apt could not fetch Debian packages: {told}",
        hint=f"Check the network and the mirror in /etc/apt, or name one in {mirrors.MIRROR_VARIABLE}; then run again.",
    )


def unpack(packages: Path, tree: Path) -> int:
    """Unpack all packages over merged ``/usr`` folders, all files owned by the caller.

    Returns:
        The newest modification time among their files, in seconds since 1970: the same versions give the same time.

    Raises:
        InfraError: a package is damaged, or the disk is full.
    """
    tree.mkdir()
    for name in ("bin", "sbin", "lib", *(["lib64"] if architecture() == "amd64" else [])):
        (tree / "usr" / name).mkdir(parents=True)
        (tree / name).symlink_to(f"usr/{name}")
    # One after the other: a folder that several packages bring keeps the time that the last of them gives it.
    for package in sorted(packages.glob("*.deb")):
        _unpack_one(tree, package)
    newest = 0
    for folder, _, names in os.walk(tree):
        for name in names:
            newest = max(newest, int(Path(folder, name).lstat().st_mtime))
    return newest


def _unpack_one(tree: Path, package: Path) -> None:
    options = ["--keep-directory-symlink", "--no-same-owner", "--exclude=./dev/*"]
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE) as archive:
        done = subprocess.run(
            ["tar", "-xpf", "-", *options, "-C", str(tree)],
            stdin=archive.stdout,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode or archive.returncode:
        full = "No space left" in done.stderr
        raise InfraError(
            Boundary.STORAGE if full else Boundary.BUILD,
            f"{package.name} could not be unpacked: {done.stderr[-300:]}",
            hint="Make room, or set SKILL2ENV_CACHE to a folder on another disk." if full else "",
        )
