"""Shared by the graders of this skill: read deliveries with suspicion, write the reward atomically."""

import json
import os
import stat

LOGS = "/logs/verifier"
LIMIT_BYTES = 2_000_000


def delivered_text(path):
    """Text of a delivered regular file, or None. Links are refused, so nothing private can be pointed at."""
    try:
        if os.path.realpath(path) != path:
            return None
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or status.st_size > LIMIT_BYTES:
            return None
        data = file.read(LIMIT_BYTES + 1)
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None


def _replace(name, text):
    path = f"{LOGS}/{name}"
    for stale in (path, path + ".new"):
        if os.path.lexists(stale):
            os.unlink(stale)
    with open(path + ".new", "x", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def _write(scores):
    reward = sum(scores.values()) / len(scores)
    _replace("reward.json", json.dumps({**scores, "reward": reward}) + "\n")
    _replace("reward.txt", f"{reward}\n")


def run(metrics, grade):
    """Write zeros, grade, write the result. A grader that fails leaves the zeros."""
    os.makedirs(LOGS, exist_ok=True)
    os.chmod(LOGS, 0o755)
    _write(dict.fromkeys(metrics, 0))
    try:
        scores = grade()
    except Exception as error:  # a hostile delivery must not decide how the grader ends
        print(f"grading failed: {type(error).__name__}: {error}")
        return
    for name in metrics:
        print(f"{name}: {scores[name]}")
    _write({name: scores[name] for name in metrics})
