"""The private folders of running sandboxes, and the sweep of what killed processes left behind.

Each lives in ``cache_home()/run/PID-STARTTIME-N``: the name says whose it is, so a later start knows when it is orphaned.
"""

import contextlib
import itertools
import os
import shutil
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.identity import Identity, Tier
from skill2env.store.folders import cache_home

_numbers = itertools.count(1)
_swept = threading.Event()


def _start_time(pid: int) -> str:
    """Start time of a process in clock ticks since boot, empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def runtime_folder(identity: Identity) -> Path:
    """Folder of all running sandboxes; mapped users can walk into it but not list it."""
    folder = cache_home() / "run"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if identity.tier is Tier.ROOT:
            folder.chmod(0o711)
    except OSError as error:
        raise InfraError(
            Boundary.STORAGE,
            f"cannot make {folder}: {error}",
            hint="Set SKILL2ENV_CACHE to a writable folder.",
        ) from error
    return folder


def remove_tree(path: Path, identity: Identity) -> None:
    """Delete a folder whatever ids and modes its content has."""
    if not path.exists() and not path.is_symlink():
        return
    if identity.tier is Tier.SUBUID:
        _remove_mapped(path, identity)
    if identity.tier is Tier.SINGLE:
        for folder, names, _ in os.walk(path):
            for name in [folder, *(os.path.join(folder, n) for n in names)]:
                with contextlib.suppress(OSError):
                    if not os.path.islink(name):
                        os.chmod(name, 0o700)
    shutil.rmtree(path, ignore_errors=True)


def _remove_mapped(path: Path, identity: Identity) -> None:
    """Delete inside the mapping, where the subordinate ids are ours."""
    from skill2env.sandbox.launch import launch

    arguments = [
        "--ro-bind",
        "/",
        "/",
        "--bind",
        str(path),
        str(path),
        "--",
        "/bin/sh",
        "-c",
        'rm -rf -- "$1"/* "$1"/.[!.]* "$1"/..?*',
        "sh",
        str(path),
    ]
    launched = launch(arguments, identity, pass_fds=(), build=True)
    with contextlib.suppress(subprocess.TimeoutExpired):
        launched.process.wait(60)
    launched.process.kill()
    launched.process.wait()
    if launched.process.stderr is not None:
        launched.process.stderr.close()


def sweep(identity: Identity) -> int:
    """Delete scratch folders whose process is gone; returns how many."""
    removed = 0
    for folder in runtime_folder(identity).iterdir():
        pid, _, rest = folder.name.partition("-")
        started = rest.partition("-")[0]
        if pid.isdigit() and _start_time(int(pid)) != started and folder.lstat().st_uid == os.geteuid():
            remove_tree(folder, identity)
            removed += 1
    return removed


@dataclass(slots=True)
class Scratch:
    """Upper and work folder of one sandbox."""

    folder: Path
    upper: Path
    work: Path
    identity: Identity

    @classmethod
    def make(cls, identity: Identity, upper: Path | None) -> "Scratch":
        """Make the folders; the first call of a process sweeps what killed ones left.

        Raises:
            InfraError: the disk is full or the cache folder cannot be written.
        """
        if not _swept.is_set():
            _swept.set()
            with contextlib.suppress(InfraError, OSError):
                sweep(identity)
        folder = runtime_folder(identity) / f"{os.getpid()}-{_start_time(os.getpid())}-{next(_numbers)}"
        try:
            folder.mkdir(mode=0o711)
            # The work folder must lie on the file system of the upper one.
            own = cls(
                folder, upper or folder / "upper", (upper.parent if upper else folder) / "work", identity
            )
            for path in (own.upper, own.work):
                path.mkdir(exist_ok=True)
                if identity.tier is Tier.ROOT:
                    os.chown(path, identity.root_uid, identity.root_gid)
        except OSError as error:
            raise InfraError(Boundary.STORAGE, f"cannot make {folder}: {error}") from error
        return own

    def readable(self, program: Path) -> Path:
        """A copy of one of our guest programs where every mapped uid can read it."""
        path = (
            runtime_folder(self.identity).parent
            / "runtime"
            / f"{program.stat().st_mtime_ns}-{program.stat().st_size}-{program.name}"
        )
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}-{os.getpid()}-{threading.get_ident()}")
            shutil.copyfile(program, temporary)
            temporary.chmod(0o644)
            temporary.rename(path)
        return path

    def remove(self) -> None:
        """Delete the private folders; a kept upper stays."""
        if self.upper.parent != self.folder:
            remove_tree(self.work, self.identity)
        remove_tree(self.folder, self.identity)
