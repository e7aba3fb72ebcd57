#!/bin/bash
set -euo pipefail
/usr/bin/python3 -I - <<'PY'
FOLDER = "/srv/work/"
import csv


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


given = plan()
with open(FOLDER + "plan.csv", "w", newline="", encoding="utf-8") as stream:
    csv.writer(stream).writerows([["ship", "berth"], *given])
with open(FOLDER + "waiting.txt", "w", encoding="utf-8") as stream:
    stream.write(f"{sum(berth == '' for _, berth in given)}\n")
PY
