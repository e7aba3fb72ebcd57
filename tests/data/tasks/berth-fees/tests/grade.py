import csv
import json
import math
import os

FOLDER = "/tests/"


def delivered(path, limit=100_000):
    """Text of a regular file that was delivered; empty when there is none."""
    if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > limit:
        return ""
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read()


def fees():
    with open(FOLDER + "requests.csv", newline="", encoding="utf-8") as stream:
        ships = list(csv.DictReader(stream))
    return {
        ship["ship"]: 12 * math.floor(float(ship["length"]))
        + 30 * math.ceil(float(ship["draught"]))
        + 250 * (float(ship["length"]) > 100)
        for ship in ships
    }


WANT = fees()
CHECKS = {
    "fees": lambda: json.loads(delivered("/srv/work/fees.json")) == WANT,
    "total": lambda: int(delivered("/srv/work/total.txt").strip()) == sum(WANT.values()),
}


def graded(check):
    try:
        return float(bool(check()))
    except Exception:
        return 0.0


rewards = {name: graded(check) for name, check in CHECKS.items()}
with open("/logs/verifier/reward.json", "w", encoding="utf-8") as stream:
    json.dump(rewards, stream)
