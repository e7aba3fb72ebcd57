"""Facts about a machine and the rules over them: which platform it is, and why a sandbox did not start on it."""

import os
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from skill2env.store.folders import CACHE_VARIABLE

OLDEST_KERNEL = (5, 11)
"""The first that lets an ordinary user mount an overlay."""


class Status(StrEnum):
    """How a check went."""

    OK = "ok"
    WARN = "warn"
    """Works with a loss that the text names."""
    FAIL = "fail"
    """Does not work."""
    ABSENT = "absent"
    """Not there and not needed."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    status: Status
    told: str
    """What was found and what it means, one sentence or two."""
    fix: str = ""
    """The one command that mends it; empty when there is nothing to mend, or no command can."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts about the machine, gathered once so that the rules over them can be tested."""

    system: str
    release: str
    architecture: str
    euid: int
    container: str
    """``docker``, ``podman`` or another sign of an outer container; empty outside."""
    settings: dict[str, str]
    """Kernel settings that may forbid user namespaces; those that do not exist are missing."""

    @classmethod
    def here(cls) -> "Machine":
        """Look at this machine."""
        names = (
            "user/max_user_namespaces",
            "kernel/unprivileged_userns_clone",
            "kernel/apparmor_restrict_unprivileged_userns",
        )
        settings = {name: text for name in names if (text := _read(Path("/proc/sys") / name))}
        system, release, architecture = platform.system(), platform.release(), platform.machine()
        return cls(system, release, architecture, os.geteuid(), _container(), settings)

    @property
    def wsl(self) -> int:
        """Version of the Windows Subsystem for Linux that this is; 0 when it is none."""
        if "microsoft" not in self.release.lower():
            return 0
        return 2 if "wsl2" in self.release.lower() or "standard" in self.release.lower() else 1

    @property
    def kernel(self) -> tuple[int, int]:
        """Version of the kernel."""
        match = re.match(r"(\d+)\.(\d+)", self.release)
        return (int(match[1]), int(match[2])) if match else (0, 0)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _container() -> str:
    if Path("/.dockerenv").exists():
        return "docker"
    if Path("/run/.containerenv").exists():
        return "podman"
    match = re.search(r"docker|containerd|kubepods|lxc", _read(Path("/proc/1/cgroup")))
    return match[0] if match else ""


def check_platform(machine: Machine) -> Check:
    """Operating system, kernel and architecture."""
    name = "platform"
    told = f"{machine.system} {machine.release} on {machine.architecture}"
    if machine.system == "Darwin":
        told += ": macOS has no namespaces; with --sandbox docker, tasks run in Docker Desktop, OrbStack or colima"
        return Check(name, Status.WARN, told, "brew install colima docker docker-compose && colima start")
    if machine.system != "Linux":
        told += ": only Linux and macOS are supported; on Windows use WSL2"
        return Check(name, Status.FAIL, told, "wsl --install")
    if machine.wsl == 1:
        return Check(
            name, Status.FAIL, told + ": WSL1 has no namespaces", "wsl --set-version $WSL_DISTRO_NAME 2"
        )
    if machine.kernel < OLDEST_KERNEL:
        oldest = ".".join(map(str, OLDEST_KERNEL))
        told += f": user namespaces with overlays need Linux {oldest}; --sandbox docker works"
        return Check(name, Status.WARN if machine.euid == 0 else Status.FAIL, told)
    if machine.architecture not in ("x86_64", "aarch64"):
        return Check(name, Status.WARN, told + ": only x86_64 and aarch64 are tested")
    if machine.architecture == "aarch64":
        return Check(name, Status.OK, told + "; images built here carry arm64 digests of their own")
    if machine.wsl == 2:
        return Check(
            name, Status.OK, told + " (WSL2); keep checkout and cache on the Linux side, not below /mnt"
        )
    return Check(name, Status.OK, told + (f", inside {machine.container}" if machine.container else ""))


_PROFILES = ("seccomp", "apparmor", "systempaths")
_REASONS: tuple[tuple[str, Callable[[Machine], bool], str, str], ...] = (
    (
        "user/max_user_namespaces",
        lambda m: m.settings.get("user/max_user_namespaces") == "0",
        "the kernel allows no user namespaces (user.max_user_namespaces is 0)",
        "sudo sysctl -w user.max_user_namespaces=15000",
    ),
    (
        "kernel/unprivileged_userns_clone",
        lambda m: m.euid != 0 and m.settings.get("kernel/unprivileged_userns_clone") == "0",
        "this kernel keeps user namespaces to root",
        "sudo sysctl -w kernel.unprivileged_userns_clone=1",
    ),
    (
        "apparmor",
        lambda m: m.euid != 0 and m.settings.get("kernel/apparmor_restrict_unprivileged_userns") == "1",
        "AppArmor restricts user namespaces of programs that it does not know (Ubuntu 23.10 and newer)",
        "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    (
        "container",
        lambda m: bool(m.container),
        "the outer container's profile forbids namespaces, mounts or a fresh /proc",
        f"docker run {' '.join(f'--security-opt {name}=unconfined' for name in _PROFILES)} IMAGE",
    ),
)


def explain_failure(problem: str, machine: Machine) -> Check:
    """Why the sandbox did not start, from what it said and what the machine's settings are."""
    told = f"namespace sandboxes do not start here ({problem})"
    low = problem.lower()
    if "execvp" in low and "permission denied" in low:
        why = "the program lies where the sandbox's user may not go, or on a disk mounted noexec"
        return Check(
            "sandbox", Status.FAIL, f"{told}: {why}", f"export {CACHE_VARIABLE}=/path/on/another/disk"
        )
    if (
        "overlay" in low
        and "userxattr" not in low
        and machine.settings.get("user/max_user_namespaces") != "0"
    ):
        why = "the cache folder lies on a disk that cannot carry an overlay (an overlay itself, NFS, encryption)"
        return Check(
            "sandbox", Status.FAIL, f"{told}: {why}", f"export {CACHE_VARIABLE}=/path/on/ext4/or/xfs"
        )
    for _, holds, why, fix in _REASONS:
        if holds(machine):
            return Check("sandbox", Status.FAIL, f"{told}: {why}; --sandbox auto uses docker", fix)
    return Check("sandbox", Status.FAIL, f"{told}; --sandbox auto uses docker where an engine runs")
