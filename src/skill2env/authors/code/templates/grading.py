"""What all verifiers of the `code` author share: rewards, taking what was delivered, running it as somebody else.

Standard library only, Python 3.9 or newer.
"""

import json
import os
import shutil
import signal
import stat
import subprocess
from pathlib import Path

OUT = Path("/logs/verifier")
NOBODY = 65534
MAX_FILES = 2000
MAX_BYTES = 32 * 2**20


def write_reward(scores: dict[str, float]) -> None:
    """Write both reward files, each in one step."""
    total = sum(scores.values()) / len(scores)
    for name, text in (("reward.json", json.dumps({**scores, "reward": total})), ("reward.txt", repr(total))):
        fresh = OUT / f".{name}.new"
        fresh.write_text(text + "\n", encoding="utf-8")
        os.replace(fresh, OUT / name)


def take(project: Path, target: Path) -> None:
    """Copy the delivered project: regular files only, no links, nothing huge."""
    files = size = 0
    for folder, names, found in os.walk(project):
        names[:] = sorted(
            n for n in names if n not in ("__pycache__", ".git") and not Path(folder, n).is_symlink()
        )
        place = target / Path(folder).relative_to(project)
        place.mkdir(parents=True, exist_ok=True)
        for name in sorted(found):
            path = Path(folder, name)
            info = path.lstat()
            if not stat.S_ISREG(info.st_mode) or name.endswith(".pyc"):
                continue
            files, size = files + 1, size + info.st_size
            if files > MAX_FILES or size > MAX_BYTES:
                raise ValueError("the project has grown too large")
            shutil.copyfile(path, place / name)
            (place / name).chmod(0o644)
        place.chmod(0o755)


def several_users() -> bool:
    """False where the container has one user id only, so that nobody can become another user."""
    lines = Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()
    return os.geteuid() == 0 and sum(int(line.split()[2]) for line in lines) > 1


def unprivileged() -> None:
    """In the child: a session of its own, and another user where that is possible."""
    os.setsid()
    if several_users():
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def end_group(leader: int) -> None:
    """End a process that leads a group, and the group."""
    for _ in range(2):
        try:
            os.killpg(leader, signal.SIGKILL)
        except OSError:
            break


def end_others() -> None:
    """End whatever runs as the user that untrusted code runs as, where that is another one than ours."""
    if os.geteuid() != 0:
        return
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and entry.stat().st_uid == NOBODY:
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            continue


def sweep(process: "subprocess.Popen[bytes]") -> None:
    """End the child and whatever it left running."""
    end_group(process.pid)
    process.wait()
    end_others()
