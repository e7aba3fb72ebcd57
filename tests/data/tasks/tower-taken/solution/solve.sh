#!/bin/bash
set -euo pipefail
python3 - <<'PY'
import csv, json
rows = list(csv.DictReader(open("/srv/tower/bells.csv")))
casts = {}
for row in sorted(rows, key=lambda row: row["bell"]):
    casts.setdefault(row["cast"], []).append(row["bell"])
total = sum(int(row["kg"]) for row in rows)
json.dump({"casts": casts, "total_kg": total}, open("/srv/tower/out/bells.json", "w"), indent=1)
PY
