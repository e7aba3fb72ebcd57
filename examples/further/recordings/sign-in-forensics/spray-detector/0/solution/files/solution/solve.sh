#!/bin/bash
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cp "$here/detect.py" /app/detect.py
