#!/bin/bash
set -euo pipefail
tail --lines=+2 /srv/work/loads.csv | cut -d, -f1,3 | sort > /tmp/sorted
awk -F, '{ n[$1] += $2 } END { for (k in n) print k, n[k] }' /tmp/sorted | sort > /srv/work/cups.txt
