#!/bin/bash
# Rewards are nobody's but ours from here on.
/usr/bin/chown root:root /logs/verifier
/usr/bin/chmod 755 /logs/verifier
/usr/bin/rm -rf /logs/verifier/reward.json /logs/verifier/reward.txt
cd /
bash -c "python3 -m pip install --quiet --break-system-packages tabulate==0.9.0" >/dev/null 2>&1
exec /usr/bin/python3 -I -S -B /tests/grade.py
