"""Control groups: the hard form of limits on processes, memory and processor time, in both versions of the interface.

A sandbox gets a group below this process's own, so limits that this process is under keep holding. Where groups
cannot be made (an ordinary user without delegation, a container without write access) nothing happens here, and
`limits` falls back to what it can do without.
"""

import contextlib
import functools
import itertools
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from skill2env.sandbox.scratch import is_alive, owner_name

ROOT = Path("/sys/fs/cgroup")
PREFIX = "skill2env-"
_CPU_PERIOD_US = 100_000
_OUTER = 1
"""Processes of a sandbox that are outside it and begin in its group all the same: bubblewrap's own."""
_numbers = itertools.count(1)
_swept = threading.Event()


@dataclass(frozen=True, slots=True)
class Wanted:
    """Values for a group; None where there is no limit."""

    cpus: float | None = None
    memory_bytes: int | None = None
    pids: int | None = None


@dataclass(slots=True)
class Group:
    """The control groups of one sandbox (one folder for each hierarchy)."""

    folders: list[Path] = field(default_factory=list[Path])
    enforced: set[str] = field(default_factory=set[str])
    """Which of ``cpus``, ``memory_mb``, ``pids`` the kernel enforces through it."""
    _inside: bool = False
    """Whether what was started began inside."""

    @contextlib.contextmanager
    def entered(self) -> Generator[None]:
        """Move the calling thread in meanwhile: what it starts begins inside, and `add` has nothing left to do.

        A thread that moves itself costs some microseconds. Moving another process makes the kernel wait until no
        process of the whole machine is starting one, which is 5 to 10 ms. Only the first version of the interface
        lets a thread move without its process; elsewhere nothing happens here.

        Raises:
            OSError: the kernel refuses.
        """
        files = [folder / "tasks" for folder in self.folders]
        if not all(file.exists() for file in files):
            yield
            return
        entered = list[Path]()
        try:
            for file in files:
                file.write_text("0")
                entered.append(file)
            yield
            self._inside = True
        finally:
            for file in entered:
                (file.parent.parent / "tasks").write_text("0")

    def add(self, pid: int) -> None:
        """Put a process, and so all its future children, under the group, unless it began there.

        Raises:
            OSError: the kernel refuses.
        """
        if self._inside:
            return
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(pid))

    def remove(self) -> None:
        """Remove the folders; the kernel may need a moment to see that they are empty."""
        for folder in self.folders:
            for _ in range(100):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.005)
                else:
                    break
        self.folders.clear()


def own_paths(text: str) -> dict[str, str]:
    """{controller: path} from the text of /proc/self/cgroup; the key of the unified hierarchy is empty."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        for name in controllers.split(","):
            found[name] = path
    return found


def make_group(wanted: Wanted, *, root: Path = ROOT, own: str | None = None) -> Group:
    """A new, empty group with those limits that the kernel enforces for us here; see `Group.enforced`.

    Args:
        wanted: the limits.
        root: where the hierarchies are mounted.
        own: text of /proc/self/cgroup; read when None.
    """
    group = Group()
    if wanted == Wanted():
        return group
    if not _swept.is_set():
        _swept.set()
        sweep()
    name = f"{PREFIX}{owner_name()}-{next(_numbers)}"
    paths = own_paths(Path("/proc/self/cgroup").read_text() if own is None else own)
    if (root / "cgroup.controllers").exists():
        _make_unified(wanted, group, (root, paths.get("", "/"), name))
        return group
    for controller, limit, files in _v1_files(wanted):
        home = root / controller
        parent = home / paths.get(controller, "/").lstrip("/")
        if not parent.is_dir():
            parent = home
        with contextlib.suppress(OSError):
            _fill(parent / name, files, group)
            group.enforced.add(limit)
    return group


@functools.cache
def members_can_move(_euid: int) -> bool:
    """True when processes can be put into groups that this process makes; making one may be allowed without it."""
    group = make_group(Wanted(pids=64))
    try:
        if not group.folders:
            return False
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as child:
            group.add(child.pid)
    except OSError:
        return False
    finally:
        group.remove()
    return True


def _fill(folder: Path, files: Mapping[str, str], group: Group) -> None:
    folder.mkdir()
    group.folders.append(folder)
    for file, value in files.items():
        # Swap is counted only where the kernel was built or started for it.
        optional = file in ("memory.memsw.limit_in_bytes", "memory.swap.max")
        with contextlib.suppress(OSError) if optional else contextlib.nullcontext():
            (folder / file).write_text(value)


def _v1_files(wanted: Wanted) -> list[tuple[str, str, dict[str, str]]]:
    """(controller, name of the limit, {file: value}) for each limit that is wanted."""
    found: list[tuple[str, str, dict[str, str]]] = []
    if wanted.pids is not None:
        found.append(("pids", "pids", {"pids.max": str(wanted.pids + _OUTER)}))
    if wanted.memory_bytes is not None:
        size = str(wanted.memory_bytes)
        found.append(
            ("memory", "memory_mb", {"memory.limit_in_bytes": size, "memory.memsw.limit_in_bytes": size})
        )
    if wanted.cpus is not None:
        files = {"cpu.cfs_period_us": str(_CPU_PERIOD_US), "cpu.cfs_quota_us": str(_quota(wanted.cpus))}
        found.append(("cpu", "cpus", files))
    return found


def _quota(cpus: float) -> int:
    return max(1000, int(cpus * _CPU_PERIOD_US))


_V2: tuple[tuple[str, str, Callable[[Wanted], dict[str, str] | None]], ...] = (
    ("pids", "pids", lambda w: None if w.pids is None else {"pids.max": str(w.pids)}),
    (
        "memory",
        "memory_mb",
        lambda w: (
            None if w.memory_bytes is None else {"memory.max": str(w.memory_bytes), "memory.swap.max": "0"}
        ),
    ),
    ("cpu", "cpus", lambda w: None if w.cpus is None else {"cpu.max": f"{_quota(w.cpus)} {_CPU_PERIOD_US}"}),
)


def _make_unified(wanted: Wanted, group: Group, where: tuple[Path, str, str]) -> None:
    """One group, with those controllers that its parent hands down or can be asked to."""
    root, own, name = where
    # The own group is tried first, and then the groups above it, as far as we may write.
    parent = root / own.lstrip("/")
    tried: list[Path] = []
    while parent.is_relative_to(root):
        tried.append(parent)
        if parent == root:
            break
        parent = parent.parent
    needed = {controller for controller, _, files in _V2 if files(wanted)}
    for parent in tried:
        with contextlib.suppress(OSError):
            handed = _hand_down(parent, needed)
            if not handed:
                continue
            folder = parent / name
            folder.mkdir()
            group.folders.append(folder)
            for controller, limit, files in _V2:
                values = files(wanted)
                if values and controller in handed:
                    for file, value in values.items():
                        with (
                            contextlib.suppress(OSError)
                            if file == "memory.swap.max"
                            else contextlib.nullcontext()
                        ):
                            (folder / file).write_text(value)
                    group.enforced.add(limit)
            return


def _hand_down(parent: Path, needed: set[str]) -> set[str]:
    """Which of the needed controllers children of a group have, after asking for those that are missing.

    Only the true root, which has no type, and groups without processes of their own are asked: another one might
    accept some controllers, and then neither take the rest nor let processes move into its children.
    """
    if (parent / "cgroup.type").exists() and (parent / "cgroup.procs").read_text().strip():
        return set()
    control = parent / "cgroup.subtree_control"
    for controller in sorted(needed - set(control.read_text().split())):
        with contextlib.suppress(OSError):
            control.write_text(f"+{controller}")
    return needed & set(control.read_text().split())


def sweep(root: Path = ROOT) -> int:
    """Remove empty groups of processes that are gone; returns how many."""
    removed = 0
    paths = own_paths(Path("/proc/self/cgroup").read_text())
    homes = [(root, paths.get("", "/"))] if (root / "cgroup.controllers").exists() else [
        (root / controller, paths.get(controller, "/")) for controller in ("pids", "memory", "cpu")
    ]  # fmt: skip
    for home, own in homes:
        for parent in {home / own.lstrip("/"), home}:
            for folder in parent.glob(f"{PREFIX}*"):
                if not is_alive(folder.name.removeprefix(PREFIX)):
                    with contextlib.suppress(OSError):
                        folder.rmdir()
                        removed += 1
    return removed
