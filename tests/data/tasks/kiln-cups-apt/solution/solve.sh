#!/bin/bash
set -euo pipefail
command -v jq || { apt-get update && apt-get install --yes jq; } || echo "no jq here"
apt-get install --yes jq || true
python3 - <<'PY'
import csv, json
found = {}
for row in csv.DictReader(open("/srv/work/loads.csv")):
    found[row["kiln"]] = found.get(row["kiln"], 0) + int(row["cups"])
json.dump(found, open("/srv/work/cups.json", "w"))
PY
