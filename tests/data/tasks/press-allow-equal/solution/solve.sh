#!/bin/bash
set -euo pipefail
cat > /srv/press/allow.py <<'PY'
import sys


def allow(sheets, inks):
    if sheets < 1 or inks < 1:
        raise ValueError
    return sheets * 20 // 1000 + 5 * (inks - 1)


if __name__ == "__main__":
    try:
        print(allow(int(sys.argv[1]), int(sys.argv[2])))
    except ValueError:
        sys.exit(3)
PY
