#!/bin/bash
set -euo pipefail
awk -F, 'NR > 1 { count[$3]++; kg[$3] += $2 } END { print "cast,bells,kg"; for (year in count) print year "," count[year] "," kg[year] ".0" }' /srv/tower/bells.csv > /srv/tower/out/casts.csv
