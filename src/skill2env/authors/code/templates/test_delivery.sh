#!/bin/bash
# Grades what was delivered with grade_delivery.py. Nothing of the caller's environment reaches it.
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
mkdir -p /logs/verifier
rm -f /logs/verifier/reward.json /logs/verifier/reward.txt
cd / || exit 1
exec env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 TZ=UTC /usr/bin/python3 -I "$here/grade_delivery.py"
