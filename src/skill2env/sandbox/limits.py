"""Limits on what runs in a sandbox, and an honest report of how each of them is enforced here.

``hard``: the kernel refuses or kills. ``watched``: we look several times a second and kill. ``absent``: nothing holds.
Control groups give hard limits where they can be written. Otherwise processor time becomes a set of processors that
nobody inside can leave, memory and the number of processes are watched with a bound per process as a net below, and
disk space is always watched.
"""

import itertools
import math
import os
from contextlib import AbstractContextManager
from dataclasses import dataclass

from skill2env.errors import Boundary, boundary
from skill2env.sandbox.cgroups import Group, Wanted, make_group, members_can_move
from skill2env.sandbox.identity import Identity

_MIB = 2**20
_OPEN_FILES = 65536
_LOCKED_BYTES = 64 * 2**20
_turns = itertools.count()


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """What one sandbox may use; None means no limit."""

    cpus: float | None = None
    """Processors; may be a fraction."""
    memory_mb: int | None = None
    """Memory of all processes together, in MiB."""
    pids: int | None = 512
    """Processes and threads at one time."""
    storage_mb: int | None = None
    """What may be written to the root file system, in MiB."""
    visible_cpus: int = 0
    """Processors that programs inside see and can use, whatever `cpus` says; 0 for as many as `cpus` needs."""


DEFAULT_LIMITS = ResourceLimits()


@dataclass(frozen=True, slots=True)
class Enforced:
    """How each requested limit is enforced."""

    hard: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


class Confinement:
    """The limits of one sandbox. Make it, start the sandbox, `apply` it to process 1, `release` it at the end.

    Args:
        limits: what was asked for.
        identity: how ids map; with several users, a bound per user is no bound for all.
    """

    def __init__(self, limits: ResourceLimits, identity: Identity) -> None:
        self._limits = limits
        memory = None if limits.memory_mb is None else limits.memory_mb * _MIB
        movable = os.geteuid() == 0 or members_can_move(os.geteuid())
        self._group = make_group(Wanted(limits.cpus, memory, limits.pids)) if movable else Group()
        hard, watched = set(self._group.enforced), set[str]()
        if "pids" not in hard:
            (watched if identity.several_users else hard).add("pids")
        if "cpus" not in hard and limits.cpus is not None and limits.cpus >= 1:
            hard.add("cpus")  # whole processors; a fraction of one needs a control group
        watched |= {"memory_mb", "storage_mb"}
        asked = {name for name in _NAMES if getattr(limits, name) is not None}
        self.enforced = Enforced(
            tuple(sorted(asked & hard)),
            tuple(sorted((asked & watched) - hard)),
            tuple(sorted(asked - hard - watched)),
        )
        self.pins = self._pins()
        """To how many processors everything inside is pinned; 0 when it is not."""

    def _pins(self) -> int:
        cpus, available = self._limits.cpus, len(os.sched_getaffinity(0))
        if self._limits.visible_cpus:
            return self._limits.visible_cpus if self._limits.visible_cpus < available else 0
        if cpus is None or "cpus" in self._group.enforced:
            return 0
        count = max(1, math.ceil(cpus))
        return count if count < available else 0

    @property
    def per_process(self) -> dict[str, int]:
        """Limits that process 1 sets for itself and that all inside inherit: {name of the rlimit: value}."""
        limits = self._limits
        found = {"CORE": 0, "NOFILE": _OPEN_FILES, "MEMLOCK": _LOCKED_BYTES, "NICE": 0, "RTPRIO": 0}
        if limits.pids is not None:
            found["NPROC"] = limits.pids
        if limits.memory_mb is not None and "memory_mb" in self.enforced.watched:
            # The net below the watch: what one process can take before the next look.
            found["DATA"] = (limits.memory_mb * 2 + 1024) * _MIB
        if limits.storage_mb is not None:
            found["FSIZE"] = limits.storage_mb * _MIB
        return found

    def entered(self) -> AbstractContextManager[None]:
        """For the thread that starts the sandbox; see `Group.entered`."""
        return self._group.entered()

    def apply(self, pid: int) -> None:
        """Put process 1 under the limits for everything inside, before it runs anything.

        Args:
            pid: its host pid.

        Raises:
            InfraError: the kernel refuses.
        """
        with boundary(Boundary.SANDBOX, "limiting the sandbox"):
            self._group.add(pid)
            if self.pins:
                _pin(pid, self.pins)

    def release(self) -> None:
        """Remove the control groups of an ended sandbox."""
        self._group.remove()


def absent_limits(limits: ResourceLimits, identity: Identity) -> tuple[str, ...]:
    """Which of the limits nothing would enforce here."""
    if limits.cpus is None or limits.cpus >= 1:
        return ()  # only a fraction of a processor has no other form than a control group
    confinement = Confinement(limits, identity)
    confinement.release()
    return confinement.enforced.absent


def default_memory_mb() -> int:
    """Memory for a sandbox whose user sets no limit: three quarters of this machine's, in MiB."""
    return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _MIB * 3 // 4)


_NAMES = ("cpus", "memory_mb", "pids", "storage_mb")


def _pin(pid: int, count: int) -> None:
    """Give a process `count` of the processors, another set each time."""
    available = sorted(os.sched_getaffinity(0))
    first = next(_turns) * count
    os.sched_setaffinity(pid, {available[(first + n) % len(available)] for n in range(count)})
