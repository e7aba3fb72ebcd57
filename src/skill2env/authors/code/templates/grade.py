"""Grades a repaired project: runs it on recorded inputs and compares with what the original gives.

Standard library only. The project's code runs as a child process (`child.py`) that knows inputs and no answers; as
another user when this one is root. Zeros are on disk before anything else happens.

cases.json: {"project": DIR, "groups": [{"reported": [ID], "unreported": [ID]}], "kept": [ID], "cases": [...],
"expected": {ID: outcome}}
"""

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
from tagged_values import same  # noqa: E402

OUT = Path("/logs/verifier")
METRICS = ("reported_cases", "unreported_cases", "kept_behaviour")
NOBODY = 65534
SECONDS = 50
MAX_FILES = 2000
MAX_BYTES = 32 * 2**20
MAX_ANSWERS = 64 * 2**20


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


def drain(reader: int, kept: list[bytes]) -> None:
    """Read the child's answers to their end; beyond the limit they are thrown away."""
    size = 0
    while data := os.read(reader, 65536):
        size += len(data)
        if size <= MAX_ANSWERS:
            kept.append(data)


def run_child(scratch: Path, tree: Path, cases: list[Any]) -> bytes:
    """Everything that the child answers within the time."""
    work = scratch / "work"
    work.mkdir()
    if several_users():
        os.chown(work, NOBODY, NOBODY)
    reader, writer = os.pipe()
    # -I would also ignore the hash seed; the environment is ours alone, so -s -P leave nothing for others to plant
    command = [
        "/usr/bin/python3",
        "-s",
        "-P",
        "-B",
        str(scratch / "run" / "child.py"),
        str(tree),
        str(work / "w"),
    ]
    process = subprocess.Popen(
        [*command, str(writer)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={
            "PATH": "/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "HOME": str(work),
            "PYTHONHASHSEED": "0",
        },
        cwd=work,
        pass_fds=(writer,),
        preexec_fn=unprivileged,
    )
    os.close(writer)
    answers: list[bytes] = []
    reading = threading.Thread(target=drain, args=(reader, answers), daemon=True)
    reading.start()
    try:
        process.communicate(json.dumps(cases).encode(), timeout=SECONDS)
    except subprocess.TimeoutExpired:
        print("the project's code did not end in time")
    finally:
        sweep(process)
    reading.join(2)
    return b"".join(answers)


def sweep(process: "subprocess.Popen[bytes]") -> None:
    """End the child and whatever it left running."""
    for _ in range(2):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except OSError:
            break
    process.wait()
    if os.geteuid() == 0:
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and entry.stat().st_uid == NOBODY:
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                continue


def read_answers(data: bytes) -> dict[str, Any]:
    """First answer of every case; anything malformed is no answer."""
    found: dict[str, Any] = {}
    for line in data.splitlines():
        try:
            answer = json.loads(line)
            found.setdefault(answer["id"], answer["outcome"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return found


def is_right(outcome: Any, expected: Any) -> bool:
    """Compare without trusting the shape of what was answered."""
    try:
        return same(outcome, expected)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def score(right: set[str], groups: list[Any], kept: list[str]) -> dict[str, float]:
    """A fault counts when all its cases are right; what must stay counts once a fault is wholly gone."""
    reported = [right.issuperset(group["reported"]) for group in groups]
    hidden = [right.issuperset(group["unreported"]) for group in groups]
    mended = any(a and b for a, b in zip(reported, hidden))
    return {
        "reported_cases": sum(reported) / len(groups),
        "unreported_cases": sum(hidden) / len(groups),
        "kept_behaviour": float(mended and right.issuperset(kept)),
    }


def main() -> None:
    """Zeros, run, compare, scores."""
    OUT.mkdir(parents=True, exist_ok=True)
    write_reward(dict.fromkeys(METRICS, 0.0))
    spec = json.loads((HERE / "cases.json").read_text(encoding="utf-8"))
    scratch = Path(tempfile.mkdtemp(prefix="grade-"))
    try:
        scratch.chmod(0o755)
        (scratch / "run").mkdir(mode=0o755)
        for name in ("child.py", "tagged_values.py"):
            shutil.copyfile(HERE / name, scratch / "run" / name)
            (scratch / "run" / name).chmod(0o644)
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):  # some mount it read-only
                HERE.chmod(0o700)  # the answers lie here
        take(Path(spec["project"]), scratch / "tree")
        answers = read_answers(run_child(scratch, scratch / "tree", spec["cases"]))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    right = {
        key
        for key, expected in spec["expected"].items()
        if key in answers and is_right(answers[key], expected)
    }
    for number, group in enumerate(spec["groups"], 1):
        for part in ("reported", "unreported"):
            print(
                f"fault {number}, {part}: {len(right & set(group[part]))} of {len(group[part])} cases right"
            )
    print(f"kept: {len(right & set(spec['kept']))} of {len(spec['kept'])} cases right")
    scores = score(right, spec["groups"], spec["kept"])
    write_reward(scores)
    print(json.dumps(scores))


if __name__ == "__main__":
    main()
