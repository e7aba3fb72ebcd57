#!/bin/bash
set -euo pipefail
latest=$(ls /var/backups/nightly/*.txt | sort | tail -n 1)
cp "$latest" /srv/work/glazes.txt
wc -l < /srv/work/glazes.txt > /srv/work/count.txt
