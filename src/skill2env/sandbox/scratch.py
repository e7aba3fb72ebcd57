"""The private folders of running sandboxes, and the sweep of what killed processes left behind.

Each lives in ``cache_home()/run/PID-STARTTIME-N`` (whose it is) and is locked as long as its process lives, so a later
start knows what is orphaned, also across containers that share the cache folder and not the process numbers.
"""

import contextlib
import fcntl
import hashlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.identity import Identity, Tier
from skill2env.store.folders import cache_home

_numbers = itertools.count(1)
_swept = threading.Event()
_REMOVE_TIMEOUT_SEC = 600
_NAME = re.compile(r"\d+-\d+-\d+")
"""Of scratch folders; nothing else below ``run`` is ours."""


def owner_name() -> str:
    """This process as a name: its number, and its start time because numbers are used again."""
    start = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    return f"{os.getpid()}-{start}"


def is_scratch(folder: Path) -> bool:
    """Whether a folder below ``run`` is called as we call them."""
    return bool(_NAME.fullmatch(folder.name))


def is_alive(name: str) -> bool:
    """True when the process that `owner_name` described still runs (in this process's own namespace)."""
    pid, _, start = name.partition("-")
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19] == start.partition("-")[0]
    except (OSError, IndexError):
        return False


def runtime_folder(identity: Identity) -> Path:
    """Folder of all running sandboxes; mapped users can walk into it but not list it.

    Raises:
        InfraError: it cannot be made.
    """
    folder = cache_home() / "run"
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            if identity.tier is Tier.ROOT:
                folder.parent.chmod(0o755)
        shut(folder, identity)
    except OSError as error:
        raise InfraError(
            Boundary.STORAGE,
            f"cannot make {folder}: {error}",
            hint="Set SKILL2ENV_CACHE to a writable folder.",
            transient=False,
        ) from error
    return folder


def shut(folder: Path, identity: Identity) -> None:
    """Close a folder to other users of the host: what sandboxes write there may be set-id programs.

    Raises:
        OSError: it is not ours.
    """
    mode, group = (0o710, identity.root_gid) if identity.tier is Tier.ROOT else (0o700, -1)
    status = folder.stat()
    if status.st_mode & 0o7777 != mode or status.st_gid != group >= 0:
        if group >= 0:
            os.chown(folder, -1, group)
        folder.chmod(mode)


# ---------------------------------------------------------------------------------------------------- deleting


def remove_tree(path: Path, identity: Identity) -> None:
    """Delete a folder whatever owners, modes and depth its content has. What cannot be deleted is left."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(path)
        return
    if not path.is_dir() or path.is_symlink():
        with contextlib.suppress(OSError):
            path.unlink()
        return
    command = ["find", str(path), "-xdev", "-mindepth", "1", "-delete"]
    if identity.tier is Tier.ROOT:
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, stderr=subprocess.DEVNULL, check=False, timeout=_REMOVE_TIMEOUT_SEC)
    else:
        _remove_mapped(command, path, identity)
    with contextlib.suppress(OSError):
        path.rmdir()


def _remove_mapped(command: list[str], path: Path, identity: Identity) -> None:
    """Delete inside the mapping, where subordinate ids and closed folders are ours to change."""
    from skill2env.sandbox.launch import launch

    arguments = ["--ro-bind", "/", "/", "--bind", str(path), str(path), "--dev", "/dev", "--", *command]
    with contextlib.suppress(InfraError):
        launched = launch(arguments, identity, pass_fds=(), build=False)
        launched.wait(_REMOVE_TIMEOUT_SEC)
        launched.end()


def _end_orphans(folder: Path) -> None:
    """Kill bubblewraps of a dead owner's sandbox.

    Process 1 asks the kernel to die with its parent only once it is released; killed before that, its parent leaves it
    waiting for ever.
    """
    wanted = f"{folder}/upper".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                argv = (entry / "cmdline").read_bytes().split(b"\0")
                if argv[0].endswith(b"/bwrap") and wanted in argv:
                    os.kill(int(entry.name), signal.SIGKILL)


def sweep(identity: Identity) -> int:
    """Delete scratch folders whose process is gone; returns how many."""
    removed = 0
    for folder in runtime_folder(identity).iterdir():
        with contextlib.suppress(OSError):
            if not is_scratch(folder) or folder.lstat().st_uid != os.geteuid():
                continue
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _end_orphans(folder)
                remove_tree(folder, identity)
                removed += 1
            finally:
                os.close(lock)
    return removed


# ---------------------------------------------------------------------------------------------------- making


def _claim(identity: Identity) -> tuple[Path, int]:
    """(a new folder below the runtime folder, the descriptor whose lock says that its owner lives)."""
    if not _swept.is_set():
        _swept.set()
        with contextlib.suppress(InfraError, OSError):
            sweep(identity)
    folder = runtime_folder(identity) / f"{owner_name()}-{next(_numbers)}"
    folder.mkdir(mode=0o711)
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return folder, lock


@dataclass(slots=True)
class Corner:
    """A folder of this process for what must not outlive it: sockets and small files. Swept when it is killed."""

    path: Path
    lock: int

    @classmethod
    def make(cls, identity: Identity) -> "Corner":
        """Make one; the first call of a process sweeps what killed ones left.

        Raises:
            InfraError: the cache folder cannot be written.
        """
        try:
            return cls(*_claim(identity))
        except OSError as error:
            raise InfraError(Boundary.STORAGE, f"cannot make a folder for sockets: {error}") from error

    def remove(self) -> None:
        """Delete it with its content; a later call does nothing."""
        if self.lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self.lock)
            self.lock = -1


@dataclass(slots=True)
class Scratch:
    """Upper and work folder of one sandbox."""

    folder: Path
    upper: Path
    work: Path
    identity: Identity
    lock: int
    """Descriptor whose lock says that the owner lives."""

    @classmethod
    def make(cls, identity: Identity, upper: Path | None) -> "Scratch":
        """Make the folders; the first call of a process sweeps what killed ones left.

        Args:
            identity: how ids map.
            upper: an existing or new folder that keeps the writes; None for a private one.

        Raises:
            InfraError: the disk is full or the cache folder cannot be written.
        """
        folder = runtime_folder(identity)
        try:
            folder, lock = _claim(identity)
            # The work folder must lie on the file system of the upper one.
            work = upper.parent / f".work-{folder.name}" if upper else folder / "work"
            own = cls(folder, upper or folder / "upper", work, identity, lock)
            for path in (own.upper, own.work):
                path.mkdir(exist_ok=True)
                if identity.tier is Tier.ROOT:
                    os.chown(path, identity.root_uid, identity.root_gid)
        except OSError as error:
            raise InfraError(Boundary.STORAGE, f"cannot make {folder}: {error}") from error
        return own

    def remove(self, *, keep: str = "") -> Path | None:
        """Delete the private folders; a caller's upper stays.

        Args:
            keep: move the private upper to this name below the cache folder's ``kept/`` instead.

        Returns:
            Where it was kept; None when it was not.
        """
        kept = None
        if keep and self.upper.parent == self.folder:
            kept = kept_folder(keep)
            with contextlib.suppress(OSError):
                kept.parent.mkdir(exist_ok=True, mode=0o700)
                kept.parent.chmod(0o700)
                remove_tree(kept, self.identity)
                self.upper.rename(kept)
        if self.work.parent != self.folder:
            remove_tree(self.work, self.identity)
        else:
            with contextlib.suppress(OSError):  # the kernel's own folder, which its owner may not look into
                (self.work / "work").rmdir()
        remove_tree(self.folder, self.identity)
        os.close(self.lock)
        return kept


def kept_folder(name: str) -> Path:
    """Where `Scratch.remove` keeps an upper layer under a name."""
    return cache_home() / "kept" / name.replace("/", "_")


def guest_folder(identity: Identity) -> Path:
    """The programs that run inside, in a folder that every mapped user can read; named by their content.

    Raises:
        InfraError: it cannot be written.
    """
    home = runtime_folder(identity).parent / "runtime"
    return _guest_folder(home)


_known_guests: dict[Path, Path] = {}


def _guest_folder(home: Path) -> Path:
    known = _known_guests.get(home)
    if known is not None and known.is_dir():
        return known
    sources = {
        path.name.removeprefix("guest_"): path.read_bytes()
        for path in Path(__file__).parent.glob("guest_*.py")
    }
    digest = hashlib.sha256(
        b"\0".join(part for name in sorted(sources) for part in (name.encode(), sources[name]))
    )
    folder = home / f"guest-{digest.hexdigest()[:16]}"
    if not folder.is_dir():
        building = home / f".guest-{owner_name()}-{threading.get_ident()}"
        try:
            building.mkdir(parents=True)
            for name, data in sources.items():
                (building / name).write_bytes(data)
                (building / name).chmod(0o644)
            building.chmod(0o755)
            with contextlib.suppress(OSError):  # another process was first
                building.rename(folder)
            shutil.rmtree(building, ignore_errors=True)
        except OSError as error:
            raise InfraError(Boundary.STORAGE, f"cannot write {folder}: {error}") from error
    _known_guests[home] = folder
    return folder
