#!/bin/bash
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cp "$here/capfit.py" /app/capfit.py
