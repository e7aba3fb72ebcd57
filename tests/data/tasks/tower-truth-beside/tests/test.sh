#!/bin/bash
# Rewards are nobody's but ours from here on.
/usr/bin/chown root:root /logs/verifier
/usr/bin/chmod 755 /logs/verifier
/usr/bin/rm -rf /logs/verifier/reward.json /logs/verifier/reward.txt
cd /
exec /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 /usr/bin/timeout 40 /usr/bin/python3 -I -S -B /tests/grade.py
