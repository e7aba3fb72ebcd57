#!/bin/bash
# Another way: each failure counts as present from its moment until its window has passed, and every moment is looked at from outside.
set -euo pipefail
cat > /app/detect.py <<'PROGRAM'
import gzip, ipaddress, itertools, json, re, sys
from datetime import datetime, timedelta, timezone
from decimal import Decimal


def usable(raw):
    entry = json.loads(str(raw, "utf-8"))
    if type(entry) is not dict:
        return None
    for key in "id at user ip outcome".split():
        if type(entry.get(key)) is not str:
            return None
    m = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,3}))?(?:Z|([+-])(\d\d):(\d\d))", entry["at"], re.A)
    if not m:
        return None
    shift = timedelta(hours=int(m[9] or 0), minutes=int(m[10] or 0)) * (-1 if m[8] == "-" else 1)
    moment = datetime(*map(int, m.groups()[:6]), tzinfo=timezone.utc) - shift
    fraction = Decimal("0." + (m[7] or "0"))
    seconds = Decimal(int((moment - datetime(2000, 1, 1, tzinfo=timezone.utc)) / timedelta(seconds=1))) + fraction
    user = re.sub(r"(?s)^.*\\", "", entry["user"].strip())
    user = re.sub(r"(?s)@.*$", "", user).strip().lower()
    ip = ipaddress.ip_address(entry["ip"])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return (entry["id"], seconds, user, ip, entry["outcome"]) if user and entry["id"] else None


def show(seconds):
    whole = datetime(2000, 1, 1) + timedelta(seconds=int(seconds))
    return whole.isoformat() + f".{int(seconds % 1 * 1000):03d}Z"


policy = json.load(open(sys.argv[1]), parse_float=Decimal)
span, grace = policy["window_seconds"], policy["grace_seconds"]
free = [ipaddress.ip_network(n) for n in policy["exempt"]]
known, skipped, doubled = {}, 0, 0
for path in sys.argv[3:]:
    data = open(path, "rb").read()
    for raw in (gzip.decompress(data) if path.endswith(".gz") else data).split(b"\n"):
        if raw.strip():
            try:
                entry = usable(raw)
            except ValueError:
                entry = None
            if entry is None:
                skipped += 1
            elif entry[0] in known:
                doubled += 1
            else:
                known[entry[0]] = entry[1:]
groups = {}
for seconds, user, ip, outcome in known.values():
    if outcome in ("failure", "success") and not any(ip in n for n in free):
        net = str(ipaddress.ip_network(f"{ip}/{24 if ip.version == 4 else 64}", strict=False))
        groups.setdefault(net, {"failure": [], "success": []})[outcome].append((seconds, user))
alerts = []
for net, group in groups.items():
    good = {}
    for seconds, user in group["success"]:
        good.setdefault(user, []).append(seconds)
    bad = sorted((s, u) for s, u in group["failure"] if not any(s < g <= s + grace for g in good.get(u, ())))
    low, loud = 0, []
    for high, (moment, _) in enumerate(bad):
        if high + 1 < len(bad) and bad[high + 1][0] == moment:
            continue
        while bad[low][0] + span <= moment:
            low += 1
        part = bad[low : high + 1]
        users = {u for _, u in part}
        if len(users) >= policy["min_users"] and Decimal(len(part)) / len(users) <= policy["max_tries"]:
            loud.append((moment, part[0][0], users))
    cuts = [0] + [i for i in range(1, len(loud)) if loud[i][0] > loud[i - 1][0] + span] + [len(loud)]
    for a, b in itertools.pairwise(cuts):
        if a < b:
            start, end = loud[a][1], loud[b - 1][0]
            users = sorted(set().union(*(l[2] for l in loud[a:b])))
            entered = sorted(u for u, when in good.items() if any(start <= w <= end + span for w in when))
            alerts.append({"network": net, "start": show(start), "end": show(end), "users": users, "entered": entered})
json.dump({"skipped": skipped, "duplicates": doubled, "alerts": alerts}, open(sys.argv[2], "w"))
PROGRAM
