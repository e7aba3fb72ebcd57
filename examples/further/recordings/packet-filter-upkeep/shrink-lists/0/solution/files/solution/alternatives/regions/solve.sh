#!/bin/bash
# Another way: lists become tables of cells; rules are stretched over each other as long as no cell changes, then what has become idle goes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python3 "$here/stretch.py"
