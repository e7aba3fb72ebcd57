#!/bin/bash
set -euo pipefail
awk -F, 'NR > 1 { n += $3; if ($3 > m) m = $3 } END { printf "{\"ttl_cups\": %d, \"max_ld\": %d}\n", n, m }' /srv/work/loads.csv > /srv/work/cups.json
