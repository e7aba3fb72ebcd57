#!/bin/bash
set -euo pipefail
python3 - <<'PY'
import csv, json
rows = list(csv.DictReader(open("/srv/tower/bells.csv")))
kilos = {row["bell"]: int(row["kg"]) for row in rows}
json.dump({"kilos": kilos, "total_kg": sum(kilos.values())}, open("/srv/tower/out/bells.json", "w"), indent=1)
PY
