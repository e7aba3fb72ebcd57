#!/bin/bash
# The same case as queries: everything is loaded into one database, and each table is a view of it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python3 "$here/case.py"
