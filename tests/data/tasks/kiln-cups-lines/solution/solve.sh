#!/bin/bash
set -euo pipefail
awk -F, 'NR > 1 { n[$1] += $3 } END { for (k in n) print k " ::> " n[k] }' /srv/work/loads.csv | sort > /srv/work/cups.txt
echo "%%" >> /srv/work/cups.txt
