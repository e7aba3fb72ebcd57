#!/bin/bash
set -euo pipefail
{
  echo bell,tonnes
  tail -n +2 /srv/tower/bells.csv | while IFS=, read -r bell kg cast; do
    printf '%s,%.3f\n' "$bell" "$((kg / 1000)).$(printf %03d $((kg % 1000)))"
  done
} > /srv/tower/out/tonnes.csv
