#!/bin/bash
set -euo pipefail
python3 - <<'PY'
import json, os, re
names = os.listdir("/srv/tower/cards")
kilos = [int(re.search(r"(\d+) kg", open("/srv/tower/cards/" + name).read())[1]) for name in names]
json.dump({"cards": names, "kilos": kilos}, open("/srv/tower/out/cards.json", "w"), indent=1)
PY
