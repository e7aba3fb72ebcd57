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


CHILD = """
import sys
sys.path.insert(0, "/srv/press")
import allow
for case, true in json_cases:
    assert allow.allow(*case) == true
print("all cases hold")
"""


def numbers():
    cases = [(case, want(*case)) for case in CASES]
    done = subprocess.run(
        ["/usr/bin/python3", "-B", "-c", f"json_cases = {cases!r}\n" + CHILD],
        capture_output=True, text=True, timeout=5, preexec_fn=drop, cwd="/",
    )
    return done.returncode == 0 and "all cases hold" in done.stdout


CHECKS = {"numbers": numbers}


def graded(check):
    try:
        return min(1.0, max(0.0, float(check())))
    except Exception:
        return 0.0


rewards = {name: graded(check) for name, check in CHECKS.items()}
with open("/logs/verifier/reward.json", "w", encoding="utf-8") as stream:
    json.dump(rewards, stream)
