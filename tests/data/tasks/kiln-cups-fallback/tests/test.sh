#!/bin/bash
# Rewards are nobody's but ours from here on.
/usr/bin/chown root:root /logs/verifier
/usr/bin/chmod 755 /logs/verifier
/usr/bin/rm -rf /logs/verifier/reward.json /logs/verifier/reward.txt
cd /
if ! command -v python3 >/dev/null; then
    apt-get update && apt-get install --yes python3
fi
exec /usr/bin/env -i PATH=/usr/bin:/bin /usr/bin/python3 -I -S -B /tests/grade.py
