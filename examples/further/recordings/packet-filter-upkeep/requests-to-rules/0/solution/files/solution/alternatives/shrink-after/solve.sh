#!/bin/bash
# The other way round: an order chosen by reading the tables, written out name by name, then shrunk as prefixes only.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python3 "$here/expand.py"
