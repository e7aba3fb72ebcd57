#!/bin/bash
# grade.py writes zeros first and replaces them in one rename, so every way out leaves a valid reward.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
here=$(cd "$(dirname "$0")" && pwd)
cd /
exec env -i PATH="$PATH" LC_ALL=C.UTF-8 TZ=UTC timeout -k 2 45 python3 -I -S -B "$here/grade.py"
