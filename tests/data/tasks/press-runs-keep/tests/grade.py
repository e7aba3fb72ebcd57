import csv
import json
import os

INPUT = "/tests/jobs.csv"
OUT = "/srv/press/out/"


def delivered(name, limit=100_000):
    """Text of a regular file that was delivered."""
    path = OUT + name
    if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > limit:
        raise ValueError("missing: " + name)
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read()


def jobs():
    with open(INPUT, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def rates():
    return {job["job"]: int(job["spoiled"]) * 1000 // int(job["sheets"]) for job in jobs()}


def poor():
    found = [job for job in jobs() if int(job["spoiled"]) * 1000 > 50 * int(job["sheets"])]
    found.sort(key=lambda job: -int(job["spoiled"]))
    return [[job["job"], job["spoiled"]] for job in found]


CHECKS = {
    "waste": lambda: all(job["job"] in delivered("waste.json") for job in jobs()),
    "poor": lambda: all(name in delivered("poor.csv") for name, _ in poor()),
}


def graded(check):
    try:
        return min(1.0, max(0.0, float(check())))
    except Exception:
        return 0.0


rewards = {name: graded(check) for name, check in CHECKS.items()}
with open("/logs/verifier/reward.json", "w", encoding="utf-8") as stream:
    json.dump(rewards, stream)
