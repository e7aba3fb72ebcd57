#!/bin/bash
set -euo pipefail
cat > /srv/work/kiln.ini <<'INI'
[kiln]
top = 1240
rise = 90
hold = 25
INI
