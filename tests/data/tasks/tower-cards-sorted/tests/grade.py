import csv
import datetime
import json
import os
import random
import shutil
import time

BELLS = {"Clement": (310, 1702), "Dunstan": (1240, 1688), "Faith": (95, 1911), "Gabriel": (1980, 1702), "Hilda": (640, 1850), "Ives": (410, 1911)}


def delivered(name, limit=100_000):
    """Text of a delivered file, empty when there is no regular one."""
    path = "/srv/tower/out/" + name
    if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > limit:
        return ""
    with open(path, encoding="utf-8", errors="replace", newline="") as stream:
        return stream.read()


def document(name):
    try:
        return json.loads(delivered(name))
    except ValueError:
        return None


def table(name):
    return [row for row in csv.reader(delivered(name).splitlines()) if row]


def graded(check):
    try:
        return float(bool(check()))
    except Exception:
        return 0.0


def write(rewards):
    with open("/logs/verifier/reward.json", "w", encoding="utf-8") as stream:
        json.dump(rewards, stream)


YEARS = sorted({year for _, year in BELLS.values()})
FOUNDRIES = {str(year): sorted(name for name in BELLS if BELLS[name][1] == year) for year in YEARS}
TOTAL = sum(kg for kg, _ in BELLS.values())
import subprocess

NAMES = sorted(name + ".txt" for name in BELLS)
KILOS = [BELLS[name.removesuffix(".txt")][0] for name in NAMES]
CHECKS = {"cards": lambda: document("cards.json")["cards"] == NAMES, "kilos": lambda: document("cards.json")["kilos"] == KILOS}


write({name: graded(check) for name, check in CHECKS.items()})
