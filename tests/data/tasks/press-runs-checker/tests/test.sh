#!/bin/bash
/usr/bin/chown root:root /logs/verifier
/usr/bin/chmod 755 /logs/verifier
cd /
good=0
/usr/bin/su agent -c "/usr/bin/python3 -I /srv/press/tools/check.py" && good=1
echo "{\"waste\": $good}" > /logs/verifier/reward.json
