#!/bin/bash
set -euo pipefail
mkdir -p /srv/press/out
tail --lines=+2 /srv/press/jobs.csv | sort --field-separator=, --key=4n | cut --delimiter=, --fields=1 > /srv/press/out/order.txt
tail --lines=+2 /srv/press/jobs.csv | cut --delimiter=, --fields=4 | sort | uniq --count |
    awk 'BEGIN { printf "{" } { printf "%s\"%s\": %d", (NR > 1 ? ", " : ""), $2, $1 } END { print "}" }' > /srv/press/out/inks.json
