#!/bin/bash
/usr/bin/chown root:root /logs/verifier
/usr/bin/chmod 755 /logs/verifier
export PATH=/srv/press/bin:/usr/sbin:/usr/bin:/sbin:/bin
cd /
timeout 40 python3 -I -S -B /tests/grade.py
