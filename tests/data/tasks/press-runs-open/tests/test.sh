#!/bin/bash
cd /
exec /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 /usr/bin/timeout 40 /usr/bin/python3 -I -S -B /tests/grade.py
