#!/bin/bash
set -euo pipefail
python3 - <<'PY'
import csv, json, os
kilos = {}
for row in csv.DictReader(open("/srv/tower/bells.csv")):
    kilos[row["cast"]] = kilos.get(row["cast"], 0) + int(row["kg"])
with open("/home/agent/weights.json", "w") as stream:
    json.dump(kilos, stream, indent=1)
PY
echo "written by $(id -un), whose home is $HOME"
