#!/bin/bash
set -euo pipefail
python3 - <<'PY'
import csv, json, time
days = {}
for row in csv.DictReader(open("/srv/tower/peals.csv")):
    day = time.strftime("%Y-%m-%d", time.gmtime(int(row["epoch"])))
    days[day] = days.get(day, 0) + 1
json.dump(days, open("/srv/tower/out/days.json", "w"), indent=1)
PY
