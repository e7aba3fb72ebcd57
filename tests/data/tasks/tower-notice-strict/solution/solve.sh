#!/bin/bash
set -euo pipefail
python3 - <<'PY'
import csv
casts = {}
for row in csv.DictReader(open("/srv/tower/bells.csv")):
    casts.setdefault(row["cast"], []).append(row["bell"])
with open("/srv/tower/out/notice.txt", "w") as notice:
    for year in sorted(casts):
        notice.write(f"{year}: {', '.join(sorted(casts[year]))}\n")
PY
