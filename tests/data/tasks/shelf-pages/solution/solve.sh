#!/bin/bash
set -euo pipefail
python3 - <<'PY'
import json, os
os.makedirs("/srv/work/pages", exist_ok=True)
pages = {}
for line in open("/srv/work/shelves.txt"):
    title, number = line.rsplit(":", 1)
    pages[title.strip().lower().replace(" ", "-") + ".txt"] = int(number)
for name, number in pages.items():
    open("/srv/work/pages/" + name, "w").write(f"{number}\n")
json.dump({"sum": sum(pages.values()), "by_page": pages}, open("/srv/work/sum.json", "w"))
PY
