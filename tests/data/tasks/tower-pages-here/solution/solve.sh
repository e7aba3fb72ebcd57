#!/bin/bash
set -euo pipefail
python3 - <<'PY'
import json
bells = len(open("/srv/tower/bells.csv").read().splitlines()) - 1
facts = dict(line.split(":") for line in open("/proc/" + "info".join(["mem", ""])) if ":" in line)
kilobytes = int(facts["MemTotal"].split()[0])
json.dump({"bells": bells, "pages": kilobytes // 4}, open("/srv/tower/out/machine.json", "w"), indent=1)
PY
