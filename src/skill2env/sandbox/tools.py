"""Files for probes that come from this machine's package mirror or are written here: a changed clock, another locale.

All of them lie in the cache, in a folder that every mapped user can read, and never in an image.
"""

import contextlib
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Generator
from pathlib import Path

from skill2env.errors import Boundary, InfraError, boundary
from skill2env.sandbox import catalog, debian
from skill2env.sandbox.identity import Tier, current_identity
from skill2env.sandbox.scratch import Corner, guest_folder

_LOCK = threading.Lock()
_CLOCK_PACKAGE, _CLOCK_FILE = "libfaketime", "libfaketime.so.1"
_LOCALE_PACKAGE = "locales"


def host_file(name: str, content: bytes) -> Path:
    """A file with that content that users inside can read; the same path for the same content.

    Raises:
        InfraError: it cannot be written.
    """
    digest = hashlib.sha256(content).hexdigest()[:16]
    place = _home() / f"{digest}-{name}"
    with boundary(Boundary.STORAGE, "writing a file for a probe"):
        if not place.is_file():
            building = place.with_name(f".{place.name}-{os.getpid()}-{threading.get_ident()}")
            building.write_bytes(content)
            building.chmod(0o644)
            building.rename(place)
    return place


@contextlib.contextmanager
def shared_folder(source: Path) -> Generator[Path]:
    """A copy of a folder that users inside can read and run, for as long as the context lasts.

    Raises:
        InfraError: it cannot be written.
    """
    identity = current_identity()
    corner = Corner.make(identity)
    try:
        with boundary(Boundary.STORAGE, "copying a folder for a probe"):
            corner.path.chmod(0o711)
            target = corner.path / "folder"
            shutil.copytree(source, target, symlinks=True)
            for path in (target, *target.rglob("*")):
                if path.is_symlink():
                    continue
                runs = path.is_dir() or path.stat().st_mode & 0o111 or path.suffix == ".sh"
                path.chmod(0o755 if runs else 0o644)
                if identity.tier is Tier.ROOT:
                    os.chown(path, identity.root_uid, identity.root_gid)
        yield target
    finally:
        corner.remove()


@functools.cache
def clock_library() -> Path:
    """The library that shifts the clock of every program that loads it; downloaded once, then cached.

    Raises:
        InfraError: it cannot be had.
    """
    with _LOCK:
        known = sorted(_home().glob(f"*-{_suffix()}-{_CLOCK_FILE}"))
        if known:
            return known[-1]
        with _unpacked(_CLOCK_PACKAGE) as tree:
            found = next(tree.rglob(_CLOCK_FILE), None)
            if found is None:
                raise InfraError(Boundary.BUILD, f"the package {_CLOCK_PACKAGE} holds no {_CLOCK_FILE}")
            return host_file(f"{_suffix()}-{_CLOCK_FILE}", found.read_bytes())


@functools.cache
def locale_archive(language: str) -> Path | None:
    """A compiled UTF-8 locale as a tar file whose top folder is its name; None where this machine cannot compile it.

    Args:
        language: such as ``de_DE``.

    Raises:
        InfraError: its source cannot be downloaded.
    """
    name = f"{_suffix()}-{language}.tar"
    with _LOCK:
        known = sorted(_home().glob(f"*-{name}"))
        if known:
            return known[-1]
        compiler = shutil.which("localedef")
        if compiler is None:
            return None
        with _unpacked(_LOCALE_PACKAGE) as tree:
            target = tree / f"{language}.utf8"
            done = subprocess.run(
                [compiler, "--no-archive", "-c", "-i", language, "-f", "UTF-8", str(target)],
                env={**os.environ, "I18NPATH": str(tree / "usr/share/i18n"), "LC_ALL": "C"},
                capture_output=True,
                check=False,
            )
            if not (target / "LC_NUMERIC").is_file():
                return None
            del done  # warnings about the locale's source are no failure
            archive = subprocess.run(
                ["tar", "-cf", "-", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", target.name],
                cwd=tree,
                capture_output=True,
                check=True,
            )
            return host_file(name, archive.stdout)


def _home() -> Path:
    """The runtime folder beside the programs that run inside."""
    return guest_folder(current_identity()).parent


def _suffix() -> str:
    return f"{catalog.lookup(catalog.DEFAULT_BASE).suite}-{debian.architecture()}"


@contextlib.contextmanager
def _unpacked(package: str) -> Generator[Path]:
    """The files of a package of the default base's suite, in a folder that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="skill2env-package-") as scratch:
        tree = Path(scratch) / "tree"
        tree.mkdir()
        for archive in debian.fetch(package, catalog.lookup(catalog.DEFAULT_BASE), Path(scratch)):
            with boundary(Boundary.STORAGE, f"unpacking {package}"):
                subprocess.run(["dpkg-deb", "-x", str(archive), str(tree)], capture_output=True, check=True)
        yield tree
