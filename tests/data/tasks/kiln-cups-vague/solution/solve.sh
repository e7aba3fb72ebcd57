#!/bin/bash
set -euo pipefail
python3 - <<'PY'
import csv, json
found = {}
for row in csv.DictReader(open("/srv/work/loads.csv")):
    found[row["kiln"]] = found.get(row["kiln"], 0) + int(row["cups"])
json.dump(found, open("/srv/work/cups.json", "w"))
PY
