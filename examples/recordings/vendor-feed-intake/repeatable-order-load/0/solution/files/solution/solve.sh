#!/bin/bash
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cat "$here/load.py" > /app/load.py
