#!/bin/bash
# Rewards are nobody's but ours from here on.
/usr/bin/chown root:root /logs/verifier
/usr/bin/chmod 755 /logs/verifier
/usr/bin/rm -rf /logs/verifier/reward.json /logs/verifier/reward.txt
cd /
{ exec 9<>/dev/tcp/time.example.net/13 && head -c 40 <&9; } >/dev/null 2>&1
exec /usr/bin/python3 -I -S -B /tests/grade.py
