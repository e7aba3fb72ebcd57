#!/bin/bash
set -euo pipefail
/usr/bin/python3 -I - <<'PY'
FOLDER = "/srv/work/"
import csv


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


given = roster()
with open(FOLDER + "roster.csv", "w", newline="", encoding="utf-8") as stream:
    csv.writer(stream).writerows([["horse", "stall"], *given])
with open(FOLDER + "outside.txt", "w", encoding="utf-8") as stream:
    stream.write(f"{sum(stall == '' for _, stall in given)}\n")
PY
