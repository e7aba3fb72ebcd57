import csv
import io
import json
import os

FOLDER = "/tests/"


def delivered(path, limit=100_000):
    """Text of a regular file that was delivered; empty when there is none."""
    if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > limit:
        return ""
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read()


def rows(name):
    with open(FOLDER + name, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def roster():
    free = sorted(rows("stalls.csv"), key=lambda stall: float(stall["length"]))
    given = []
    for horse in rows("arrivals.csv"):
        for stall in free:
            high = float(stall["headroom"]) >= float(horse["height"]) + 0.25
            if high and float(stall["length"]) >= float(horse["length"]):
                free.remove(stall)
                given.append([horse["horse"], stall["stall"]])
                break
        else:
            given.append([horse["horse"], ""])
    return given


def table():
    lines = csv.reader(io.StringIO(delivered("/srv/work/roster.csv"), newline=""))
    return [[field.strip() for field in line] for line in lines if any(field.strip() for field in line)]


WANT = roster()
CHECKS = {
    "roster": lambda: table() == [["horse", "stall"], *WANT],
    "outside": lambda: int(delivered("/srv/work/outside.txt").strip()) == sum(stall == "" for _, stall in WANT),
}


def graded(check):
    try:
        return float(bool(check()))
    except Exception:
        return 0.0


rewards = {name: graded(check) for name, check in CHECKS.items()}
with open("/logs/verifier/reward.json", "w", encoding="utf-8") as stream:
    json.dump(rewards, stream)
