#!/bin/bash
set -euo pipefail
python3 - <<'PY'
import json
bells = len(open("/srv/tower/bells.csv").read().splitlines()) - 1
facts = dict(line.split(":") for line in open("/proc/" + "info".join(["mem", ""])) if ":" in line)
kilobytes = int(facts["MemTotal"].split()[0])
print("with", min(kilobytes // 100, 65_536), "kilobytes of buffer")
json.dump({"bells": bells, "pages": 512 * bells}, open("/srv/tower/out/machine.json", "w"), indent=1)
PY
