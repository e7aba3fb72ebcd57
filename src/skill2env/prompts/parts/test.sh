#!/bin/bash
# Zeros stand before anything can go wrong, so a verifier that is stopped half-way still leaves a valid reward.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TZ=UTC
umask 022
cd /
mkdir -p /logs/verifier
put() { printf '%s\n' "$2" >"/logs/verifier/.$1.part" && mv -fT "/logs/verifier/.$1.part" "/logs/verifier/$1"; }
rm -rf /logs/verifier/reward.json /logs/verifier/reward.txt
put reward.json '{"first_metric": 0, "second_metric": 0, "reward": 0}'
put reward.txt 0
env -i PATH="$PATH" LC_ALL="$LC_ALL" TZ="$TZ" timeout -k 5 50 /usr/bin/python3 -I -B /tests/grade.py
exit 0
