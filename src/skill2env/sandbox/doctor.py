"""What this machine can run, what it cannot and why, and for each the one command that mends it.

`examine` looks and changes nothing, except that it makes the cache folder. The command line prints what it returns.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from skill2env.errors import InfraError, Skill2EnvError, UserError
from skill2env.sandbox import identity as ids
from skill2env.sandbox.bubblewrap import bubblewrap
from skill2env.sandbox.identity import TIER_VARIABLE, Identity, Tier, current_identity
from skill2env.sandbox.launch import launch
from skill2env.sandbox.limits import Confinement, ResourceLimits
from skill2env.sandbox.machine import Check, Machine, Status, check_platform, explain_failure
from skill2env.store.folders import CACHE_VARIABLE, cache_home

NEEDED_MB = 1024
WISHED_MB = 5 * 1024
_PROBE_SEC = 30.0
_ENGINE_SEC = 15.0


def examine() -> list[Check]:
    """Look at everything that compiling, verifying and building needs, in the order in which one would mend it."""
    machine = Machine.here()
    checks = [check_platform(machine), check_python()]
    if machine.system == "Linux":
        cache = check_cache()
        checks += [cache, check_bubblewrap()]
        if all(check.status is not Status.FAIL for check in checks):
            checks += _check_sandbox(machine)
    checks += [check_packages(), check_engine("docker"), check_engine("podman")]
    return checks


def namespace_works() -> bool:
    """True when the namespace sandbox starts here. Needs no base image."""
    if platform.system() != "Linux":
        return False
    try:
        return not _probe(current_identity())
    except Skill2EnvError:
        return False


# ------------------------------------------------------------------------------------------------ the machine


def check_python() -> Check:
    """The interpreter that runs us."""
    return Check("python", Status.OK, f"Python {platform.python_version()} at {sys.executable}")


def check_cache() -> Check:
    """Disk space and rights of the folder for images and running sandboxes."""
    home = cache_home()
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            pass
        free = shutil.disk_usage(home).free // 2**20
    except OSError as error:
        return Check(
            "cache",
            Status.FAIL,
            f"{home} cannot be written: {error.strerror}",
            f"export {CACHE_VARIABLE}=/path/on/a/big/disk",
        )
    told = f"{home}, {free / 1024:.1f} GiB free"
    if free < NEEDED_MB:
        return Check(
            "cache",
            Status.FAIL,
            told + f": at least {NEEDED_MB // 1024} GiB is needed",
            "skill2env cache prune",
        )
    if free < WISHED_MB:
        return Check("cache", Status.WARN, told + ": bases and layers may fill it", "skill2env cache prune")
    return Check("cache", Status.OK, told)


def check_bubblewrap() -> Check:
    """The program that makes the namespaces."""
    try:
        program = bubblewrap()
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True, timeout=_PROBE_SEC
        )
    except InfraError as error:
        return Check("bubblewrap", Status.FAIL, error.message, error.hint)
    except (OSError, subprocess.SubprocessError) as error:
        return Check("bubblewrap", Status.FAIL, f"it does not run: {error}", "make setup")
    return Check("bubblewrap", Status.OK, done.stdout.strip())


# ------------------------------------------------------------------------------------------------ the sandbox


def _check_sandbox(machine: Machine) -> list[Check]:
    try:
        identity = current_identity()
    except UserError as error:
        return [Check("sandbox", Status.FAIL, error.message, f"unset {TIER_VARIABLE}")]
    problem = _probe(identity)
    if problem:
        return [explain_failure(problem, machine)]
    works = Check("sandbox", Status.OK, "namespace sandboxes start here")
    return [works, check_tier(identity), check_limits(identity)]


def _probe(identity: Identity) -> str:
    """Start a sandbox without an image: namespaces, ids, overlay on the cache's disk, proc. What failed, in words."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=".probe-", dir=_reachable(cache_home(), identity)))
    except OSError as error:
        return f"{cache_home()} cannot be written: {error}"
    try:
        for name in ("lower", "upper", "work"):
            (folder / name).mkdir()
        if identity.tier is Tier.ROOT:
            for path in (folder, *folder.iterdir()):
                os.chown(path, identity.root_uid, identity.root_gid)
        root = ["--ro-bind", "/", "/", "--overlay-src", str(folder / "lower")]
        root += [
            "--overlay",
            str(folder / "upper"),
            str(folder / "work"),
            "/mnt",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
        ]
        launched = launch([*root, "--", "/bin/true"], identity, pass_fds=(), build=False)
        ended = launched.wait(_PROBE_SEC)
        code = launched.process.wait() if ended else -1
        told = launched.told() if ended else "it did not end"
        launched.end()
        return "" if code == 0 else told or f"code {code}"
    except InfraError as error:
        return error.message
    except OSError as error:
        return str(error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _reachable(home: Path, identity: Identity) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    if identity.tier is Tier.ROOT and home.stat().st_uid == 0:
        home.chmod(home.stat().st_mode | 0o055)
    return home


def check_tier(identity: Identity) -> Check:
    """Which identity tier is used, and what is missing for a better one."""
    forced = os.environ.get(TIER_VARIABLE)
    why = f" (set by {TIER_VARIABLE})" if forced else ""
    if identity.tier is Tier.ROOT:
        told = f"root{why}: ids inside are {identity.root_uid} to {identity.root_uid + identity.count - 1} outside"
        return Check("tier", Status.OK, told)
    if identity.tier is Tier.SUBUID:
        told = f"subuid{why}: {identity.count} ids inside, root inside is {ids.user_name()} outside"
        return Check("tier", Status.OK, told)
    missing = [] if ids.helpers_work() else ["newuidmap (package uidmap) is missing"]
    if ids.subordinate("/etc/subuid", ids.user_name(), os.geteuid()) is None:
        missing.append("/etc/subuid has no range for this user")
    told = (
        f"single-uid{why}: {', and '.join(missing) or 'ranges are there but not used'}. One user id inside: tasks run, "
        "but agent and root are the same, so shared verifiers with an unprivileged agent are refused and nothing can "
        "be published"
    )
    return Check("tier", Status.WARN, told, "" if forced else ids.subuid_fix())


def check_limits(identity: Identity) -> Check:
    """Which limits hold, by trying to make the groups that enforce them."""
    confinement = Confinement(ResourceLimits(cpus=0.5, memory_mb=64, pids=64, storage_mb=64), identity)
    confinement.release()
    enforced = confinement.enforced
    words = [
        f"{kind}: {', '.join(names)}"
        for kind, names in (
            ("hard", enforced.hard),
            ("watched", enforced.watched),
            ("absent", enforced.absent),
        )
        if names
    ]
    told = "; ".join(words)
    if "memory_mb" in enforced.hard:
        return Check("limits", Status.OK, told)
    told += ". Control groups cannot be written here, so memory is watched and fractions of a processor are not limited"
    fix = "systemd-run --user --scope -p Delegate=yes -- skill2env COMMAND"
    return Check(
        "limits", Status.WARN, told, fix if Path("/run/systemd/system").is_dir() and os.geteuid() != 0 else ""
    )


# ------------------------------------------------------------------------------------------------ other programs


def check_packages() -> Check:
    """What building a base image needs."""
    missing = [tool for tool in ("apt-get", "dpkg-deb", "tar") if shutil.which(tool) is None]
    if not missing:
        return Check(
            "base images", Status.OK, "built from Debian packages with this machine's apt, on first use"
        )
    told = f"base images are built from Debian packages, and this machine has no {', '.join(missing)}"
    fix = "sudo dnf install apt dpkg debian-keyring" if shutil.which("dnf") else ""
    return Check("base images", Status.WARN, told + "; --sandbox docker needs none", fix)


def check_engine(name: str) -> Check:
    """Whether a container engine answers."""
    if shutil.which(name) is None:
        return Check(name, Status.ABSENT, f"{name} is not installed; only --sandbox {name} needs it")
    try:
        done = subprocess.run(
            [name, "version", "--format", "{{.Server.Version}}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_ENGINE_SEC,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check(name, Status.WARN, f"{name} does not answer: {error}")
    if done.returncode == 0:
        return _check_engine_limits(name, f"{name} {done.stdout.strip()} answers")
    told = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    fix = "sudo usermod -aG docker $USER" if "permission denied" in told.lower() else ""
    if not fix and name == "docker" and Path("/run/systemd/system").is_dir():
        fix = "sudo systemctl start docker"
    return Check(name, Status.WARN, f"{name} is installed and does not answer: {told}", fix)


def _check_engine_limits(name: str, told: str) -> Check:
    from skill2env.sandbox.engine import Engine
    from skill2env.sandbox.engine_limits import BY_ENGINE, enforceable

    try:
        missing = sorted(set(BY_ENGINE) - enforceable(Engine(name)))
    except InfraError as error:
        return Check(name, Status.WARN, f"{told}, but not about its limits: {error.message}")
    if not missing:
        return Check(name, Status.OK, told)
    told += f"; limits that it cannot enforce here: {', '.join(missing)}. Tasks that ask for one need --allow-unlimited"
    return Check(name, Status.WARN, told)
