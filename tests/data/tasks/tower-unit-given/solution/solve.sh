#!/bin/bash
set -euo pipefail
python3 - <<'PY'
import json, os
bells = len(open("/srv/tower/bells.csv").read().splitlines()) - 1
json.dump({"unit": "tower-north", "bells": bells}, open("/srv/tower/out/machine.json", "w"), indent=1)
PY
