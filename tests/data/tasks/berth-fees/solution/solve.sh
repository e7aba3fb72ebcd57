#!/bin/bash
set -euo pipefail
/usr/bin/python3 -I - <<'PY'
import csv
import json
import math

FOLDER = "/srv/work/"


def fees():
    with open(FOLDER + "requests.csv", newline="", encoding="utf-8") as stream:
        ships = list(csv.DictReader(stream))
    return {
        ship["ship"]: 12 * math.floor(float(ship["length"]))
        + 30 * math.ceil(float(ship["draught"]))
        + 250 * (float(ship["length"]) > 100)
        for ship in ships
    }


found = fees()
with open(FOLDER + "fees.json", "w", encoding="utf-8") as stream:
    json.dump(found, stream)
with open(FOLDER + "total.txt", "w", encoding="utf-8") as stream:
    stream.write(f"{sum(found.values())}\n")
PY
