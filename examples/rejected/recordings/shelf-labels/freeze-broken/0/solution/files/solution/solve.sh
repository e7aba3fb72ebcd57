#!/bin/bash
set -euo pipefail
python3 - <<'PY'
import csv
from decimal import ROUND_HALF_UP, Decimal
base = {"g": ("kg", 1000), "ml": ("l", 1000), "piece": ("piece", 1)}
rows = list(csv.DictReader(open("/app/in/articles.csv")))
with open("/app/out/labels.csv", "w", newline="") as handle:
    out = csv.writer(handle)
    out.writerow(["article", "base", "cents"])
    for row in rows:
        name, factor = base[row["unit"]]
        cents = Decimal(row["cents"]) * factor / Decimal(row["size"])
        out.writerow([row["article"], name, cents.quantize(Decimal(1), ROUND_HALF_UP)])
PY
