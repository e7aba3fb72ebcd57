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


def plan():
    free = sorted(rows("berths.csv"), key=lambda berth: float(berth["length"]))
    given = []
    for ship in rows("requests.csv"):
        for berth in free:
            deep = float(berth["depth"]) >= float(ship["draught"]) + 0.5
            if deep and float(berth["length"]) >= float(ship["length"]):
                free.remove(berth)
                given.append([ship["ship"], berth["berth"]])
                break
        else:
            given.append([ship["ship"], ""])
    return given


def table():
    lines = csv.reader(io.StringIO(delivered("/srv/work/plan.csv"), newline=""))
    return [[field.strip() for field in line] for line in lines if any(field.strip() for field in line)]


WANT = plan()
CHECKS = {
    "plan": lambda: table() == [["ship", "berth"], *WANT],
    "waiting": lambda: int(delivered("/srv/work/waiting.txt").strip()) == sum(berth == "" for _, berth in WANT),
}


def graded(check):
    try:
        return float(bool(check()))
    except Exception:
        return 0.0


rewards = {name: graded(check) for name, check in CHECKS.items()}
with open("/logs/verifier/reward.json", "w", encoding="utf-8") as stream:
    json.dump(rewards, stream)
