import json
import os
import subprocess
import sys

CASES = [(1000, 1), (1, 1), (49, 2), (51, 3), (12345, 4), (700, 2)]


def want(sheets, inks):
    return sheets * 20 // 1000 + 5 * (inks - 1)


sys.path.insert(0, "/srv/press")


def numbers():
    import allow

    return all(allow.allow(*case) == want(*case) for case in CASES)


CHECKS = {"numbers": numbers}


def graded(check):
    try:
        return min(1.0, max(0.0, float(check())))
    except Exception:
        return 0.0


rewards = {name: graded(check) for name, check in CHECKS.items()}
with open("/logs/verifier/reward.json", "w", encoding="utf-8") as stream:
    json.dump(rewards, stream)
