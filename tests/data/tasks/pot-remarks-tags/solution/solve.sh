#!/bin/bash
set -euo pipefail
awk -F, '$3 == "fine" { print $1 }' /srv/work/remarks.csv > /srv/work/fine.txt
