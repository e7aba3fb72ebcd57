"""Looks after limits that the kernel does not enforce here: one thread for all sandboxes of this process.

Covers: memory and number of processes of a sandbox (four looks a second), disk space and number of files it has written
(every few seconds, more seldom the longer counting takes). Does not cover: what happens between two looks, which the
limits per process in `limits` bound.
"""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from skill2env.sandbox.identity import Identity, Tier
from skill2env.sandbox.limits import ResourceLimits

LOOK_SEC = 0.25
DISK_LOOK_SEC = 2.0
FILES_AT_MOST = 2_000_000
"""Files and folders that a sandbox with a disk limit may make; empty ones take space that no size shows."""
_DISK_SHARE = 20
"""Counting takes at most one part in this many of the time."""
_COUNT_TIMEOUT_SEC = 300
_SHARED_PAGES = 8192
"""A process with fewer shared pages is not looked at more closely: that costs more than all the rest."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MIB = 2**20


@dataclass(slots=True)
class Watched:
    """One sandbox under watch."""

    init_pid: int
    limits: ResourceLimits
    names: tuple[str, ...]
    """Which limits to look after."""
    upper: Path
    identity: Identity
    breached: Callable[[str, str], None]
    """Called with the limit's name and a sentence, from the watching thread."""
    next_count: float = field(default_factory=lambda: time.monotonic() + DISK_LOOK_SEC)
    counting: bool = False
    files: int = FILES_AT_MOST


class Watcher:
    """The thread and its list. It ends when the list is empty and starts again with the next entry."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[Watched] = []
        self._thread: threading.Thread | None = None

    def add(self, entry: Watched) -> None:
        """Start looking after a sandbox."""
        with self._lock:
            self._entries.append(entry)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="sandbox-watch", daemon=True)
                self._thread.start()

    def remove(self, entry: Watched) -> None:
        """Stop looking after a sandbox."""
        with self._lock:
            if entry in self._entries:
                self._entries.remove(entry)

    def _run(self) -> None:
        while True:
            time.sleep(LOOK_SEC)
            with self._lock:
                entries = tuple(self._entries)
                if not entries:
                    self._thread = None
                    return
            tree = _children() if any(set(e.names) & {"memory_mb", "pids"} for e in entries) else {}
            for entry in entries:
                if tree:
                    _look_at_processes(entry, tree)
                if (
                    "storage_mb" in entry.names
                    and not entry.counting
                    and time.monotonic() >= entry.next_count
                ):
                    entry.counting = True
                    threading.Thread(
                        target=_look_at_disk, args=(entry,), name="sandbox-disk", daemon=True
                    ).start()


watcher = Watcher()


def _children() -> dict[int, list[int]]:
    """{process: its children} of everything that runs."""
    tree: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                parent = int(Path(entry.path, "stat").read_bytes().rpartition(b")")[2].split()[1])
                tree.setdefault(parent, []).append(int(entry.name))
    return tree


def _look_at_processes(entry: Watched, tree: dict[int, list[int]]) -> None:
    waiting, count, pages, shared = [entry.init_pid], 0, 0, 0
    while waiting:
        pid = waiting.pop()
        waiting += tree.get(pid, [])
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{pid}/statm").read_bytes().split()
            pages += int(fields[1]) - int(fields[2])
            if int(fields[2]) > _SHARED_PAGES:  # mostly the pages of programs, which are the file system's
                shared += _shared_memory(pid)
            count += sum(1 for _ in os.scandir(f"/proc/{pid}/task"))
    limits = entry.limits
    if (
        "memory_mb" in entry.names
        and limits.memory_mb is not None
        and pages * _PAGE + shared > limits.memory_mb * _MIB
    ):
        entry.breached("memory_mb", f"the sandbox used more than {limits.memory_mb} MiB of memory")
    # The bound of the kernel is per user; this one is for all users inside, with some room for honest peaks.
    if "pids" in entry.names and limits.pids is not None and count > 2 * limits.pids:
        entry.breached("pids", f"the sandbox had more than {2 * limits.pids} processes")


def _shared_memory(pid: int) -> int:
    """A process's part of memory that it shares with others and that no file backs, in bytes."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
        if line.startswith(b"Pss_Shmem:"):
            return int(line.split()[1]) * 1024
    return 0


def files_at_most(folder: Path) -> int:
    """How many files and folders a sandbox may make: never more than half of what is free at its start."""
    free = os.statvfs(folder).f_favail
    return min(FILES_AT_MOST, free // 2) if free else FILES_AT_MOST


def _look_at_disk(entry: Watched) -> None:
    started = time.monotonic()
    with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
        used, files = disk_usage(entry.upper, entry.identity, entry.init_pid)
        limit = (entry.limits.storage_mb or 0) * _MIB
        if used > limit:
            entry.breached("storage_mb", f"the sandbox wrote more than {entry.limits.storage_mb} MiB")
        elif files > entry.files:
            entry.breached("storage_mb", f"the sandbox made more than {entry.files} files")
    took = time.monotonic() - started
    entry.next_count = time.monotonic() + max(DISK_LOOK_SEC, took * _DISK_SHARE)
    entry.counting = False


# Enters the user namespace of a sandbox, where closed folders of all its users can be read, and counts from outside:
# the file system is the host's, and nothing of the sandbox runs.
_COUNT = (
    "import os, sys\n"
    "os.setns(os.open(sys.argv[1], os.O_RDONLY), os.CLONE_NEWUSER)\n"
    "os.execvp('du', ['du', *sys.argv[2:]])\n"
)


def disk_usage(folder: Path, identity: Identity, init_pid: int) -> tuple[int, int]:
    """(bytes, files) below a folder that a running sandbox writes to.

    Raises:
        OSError: counting failed.
        ValueError: its answer cannot be read.
        TimeoutExpired: it took too long.
    """
    found: list[int] = []
    for options in (("-s", "-x", "--block-size=1"), ("-s", "-x", "--inodes")):
        command = ["du", *options, "--", str(folder)]
        if identity.tier is not Tier.ROOT:
            space = f"/proc/{init_pid}/ns/user"
            command = [sys.executable, "-I", "-S", "-c", _COUNT, space, *command[1:]]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=_COUNT_TIMEOUT_SEC,
            stdin=subprocess.DEVNULL,
        )
        # Files that vanish meanwhile make du complain, not fail to count.
        found.append(int(done.stdout.split()[0] if done.stdout.split() else ""))
    return found[0], found[1]
