#!/bin/bash
set -euo pipefail
mkdir -p /srv/press/out
/usr/bin/python3 -I - <<'PY'
import csv
import json

with open("/srv/press/jobs.csv", newline="") as stream:
    jobs = list(csv.DictReader(stream))
waste = {}
poor = []
for job in jobs:
    spoiled, sheets = int(job["spoiled"]), int(job["sheets"])
    waste[job["job"]] = spoiled * 1000 // sheets
    if spoiled * 1000 > 50 * sheets:
        poor.append((spoiled, job["job"]))
poor.sort(key=lambda entry: -entry[0])
with open("/srv/press/out/waste.json", "w") as stream:
    json.dump(waste, stream)
with open("/srv/press/out/poor.csv", "w", newline="") as stream:
    writer = csv.writer(stream)
    writer.writerow(["job", "spoiled"])
    writer.writerows((name, spoiled) for spoiled, name in poor)
PY
