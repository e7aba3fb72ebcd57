import json
import os
import subprocess
import sys

CASES = [(1000, 1), (1, 1), (49, 2), (51, 3), (12345, 4), (700, 2)]


def want(sheets, inks):
    return sheets * 20 // 1000 + 5 * (inks - 1)


def drop():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


def ran(*arguments):
    """Exit code and output of the delivered program, which nobody runs."""
    done = subprocess.run(
        ["/usr/bin/python3", "-I", "-B", "/srv/press/allow.py", *map(str, arguments)],
        capture_output=True, text=True, timeout=5, cwd="/", env={"PATH": "/usr/bin:/bin"},
    )
    return done.returncode, done.stdout.strip()


CHECKS = {"numbers": lambda: all(ran(*case) == (0, str(want(*case))) for case in CASES)}


def graded(check):
    try:
        return min(1.0, max(0.0, float(check())))
    except Exception:
        return 0.0


rewards = {name: graded(check) for name, check in CHECKS.items()}
with open("/logs/verifier/reward.json", "w", encoding="utf-8") as stream:
    json.dump(rewards, stream)
