"""Limits on processes, memory and processor time: cgroups where they can be written, rlimits otherwise.

Each result says which limits were ``hard`` (the kernel refuses), ``watched`` (we notice and kill) or ``absent``.
"""

import contextlib
import itertools
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

_V1 = Path("/sys/fs/cgroup")
_numbers = itertools.count(1)
_CPU_PERIOD_US = 100_000


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """What one sandbox may use; None means no limit."""

    cpus: float | None = None
    memory_mb: int | None = None
    pids: int | None = 512
    storage_mb: int | None = None


@dataclass(slots=True)
class Enforced:
    """How each requested limit is enforced, and the cgroups to remove at the end."""

    hard: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    groups: list[Path] = field(default_factory=list[Path])


def _settings(limits: ResourceLimits) -> dict[str, dict[str, str]]:
    """{v1 controller: {file: value}} for the limits that were asked for."""
    wanted: dict[str, dict[str, str]] = {}
    if limits.pids is not None:
        wanted["pids"] = {"pids.max": str(limits.pids)}
    if limits.memory_mb is not None:
        size = str(limits.memory_mb * 2**20)
        wanted["memory"] = {"memory.limit_in_bytes": size, "memory.memsw.limit_in_bytes": size}
    if limits.cpus is not None:
        wanted["cpu"] = {
            "cpu.cfs_period_us": str(_CPU_PERIOD_US),
            "cpu.cfs_quota_us": str(int(limits.cpus * _CPU_PERIOD_US)),
        }
    return wanted


_NAMES = {"pids": "pids", "memory": "memory_mb", "cpu": "cpus"}


def _v2_settings(limits: ResourceLimits) -> dict[str, str]:
    values: dict[str, str] = {}
    if limits.pids is not None:
        values["pids.max"] = str(limits.pids)
    if limits.memory_mb is not None:
        values["memory.max"] = str(limits.memory_mb * 2**20)
        values["memory.swap.max"] = "0"
    if limits.cpus is not None:
        values["cpu.max"] = f"{int(limits.cpus * _CPU_PERIOD_US)} {_CPU_PERIOD_US}"
    return values


def apply_limits(pid: int, limits: ResourceLimits) -> Enforced:
    """Put process 1 of a sandbox under its limits before it runs anything.

    Args:
        pid: host pid of process 1; everything inside descends from it.
        limits: what was asked for.
    """
    name = f"skill2env-{os.getpid()}-{next(_numbers)}"
    enforced, hard = Enforced(), set[str]()
    if (_V1 / "cgroup.controllers").exists():
        _apply_v2(pid, name, limits, enforced, hard)
    else:
        for controller, files in _settings(limits).items():
            group = _V1 / controller / name
            try:
                group.mkdir()
                enforced.groups.append(group)
                for file, value in files.items():
                    with (
                        contextlib.suppress(FileNotFoundError, PermissionError)
                        if "memsw" in file
                        else contextlib.nullcontext()
                    ):
                        (group / file).write_text(value)
                (group / "cgroup.procs").write_text(str(pid))
                hard.add(_NAMES[controller])
            except OSError:
                continue
    asked = {n for n in ("cpus", "memory_mb", "pids", "storage_mb") if getattr(limits, n) is not None}
    if "pids" in asked:
        hard.add("pids")  # RLIMIT_NPROC inside the namespace, set by the init for every command
    enforced.hard = tuple(sorted(asked & hard))
    enforced.absent = tuple(sorted(asked - hard))
    return enforced


def _apply_v2(pid: int, name: str, limits: ResourceLimits, enforced: Enforced, hard: set[str]) -> None:
    with contextlib.suppress(OSError):
        own = Path("/proc/self/cgroup").read_text().strip().splitlines()[-1].partition("::")[2].lstrip("/")
        parent = _V1 if os.geteuid() == 0 else _V1 / own
        group = parent / name
        group.mkdir()
        enforced.groups.append(group)
        for file, value in _v2_settings(limits).items():
            with contextlib.suppress(OSError):
                (group / file).write_text(value)
                hard.add({"pids.max": "pids", "memory.max": "memory_mb", "cpu.max": "cpus"}.get(file, ""))
        (group / "cgroup.procs").write_text(str(pid))


def release_limits(enforced: Enforced) -> None:
    """Remove the cgroups of an ended sandbox; the kernel may need a moment to empty them."""
    for group in enforced.groups:
        for _ in range(50):
            try:
                group.rmdir()
                break
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.01)
    enforced.groups.clear()
