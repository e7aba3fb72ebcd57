"""Find password sprays by detection standard 14.

Usage: python3 detect.py POLICY OUT LOG [LOG ...]
"""

import gzip
import json
import re
import sys
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from datetime import datetime, timezone
from fractions import Fraction
from ipaddress import ip_address, ip_network

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
SHAPE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,3}))?(Z|[+-][0-9]{2}:[0-9]{2})")


def milliseconds(text):
    """Exact moment in milliseconds since 1970."""
    shape = SHAPE.fullmatch(text)
    if not shape:
        raise ValueError(text)
    moment = datetime.strptime(shape[1] + shape[3].replace("Z", "+00:00"), "%Y-%m-%dT%H:%M:%S%z")
    since = moment - EPOCH
    return (since.days * 86400 + since.seconds) * 1000 + int((shape[2] or "0").ljust(3, "0"))


def shown(moment):
    whole = datetime.fromtimestamp(moment // 1000, timezone.utc)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{moment % 1000:03d}Z"


def person(text):
    return text.strip().split("\\")[-1].split("@")[0].strip().lower()


def record_of(line):
    """(id, moment, user, address, outcome), or ValueError when the line is to be skipped."""
    data = json.loads(line.decode("utf-8"))
    if not isinstance(data, dict):
        raise ValueError("no object")
    values = [data.get(key) for key in ("id", "at", "user", "ip", "outcome")]
    if not all(isinstance(value, str) for value in values):
        raise ValueError("a field is missing")
    identifier, at, user, ip, outcome = values
    address = ip_address(ip)
    if address.version == 6 and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if not identifier or not person(user):
        raise ValueError("empty")
    return identifier, milliseconds(at), person(user), address, outcome


def read(paths, exempt):
    """({network: (failures, successes)}, skipped, duplicates); each event is (moment, user)."""
    networks, seen, skipped, duplicates = defaultdict(lambda: ([], [])), set(), 0, 0
    for path in paths:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as handle:
            for line in handle:
                if not line.strip():
                    continue
                try:
                    identifier, moment, user, address, outcome = record_of(line)
                except (ValueError, RecursionError):
                    skipped += 1
                    continue
                if identifier in seen:
                    duplicates += 1
                    continue
                seen.add(identifier)
                if outcome in ("failure", "success") and not any(address in network for network in exempt):
                    width = 24 if address.version == 4 else 64
                    network = ip_network((address, width), strict=False)
                    networks[str(network)][outcome == "success"].append((moment, user))
    return networks, skipped, duplicates


def unexcused(failures, successes, grace):
    """Failures, in order of time, that their users do not mend in time."""
    moments = defaultdict(list)
    for moment, user in sorted(successes):
        moments[user].append(moment)
    kept = []
    for moment, user in sorted(failures):
        later = bisect_right(moments[user], moment)
        if later == len(moments[user]) or moments[user][later] - moment > grace:
            kept.append((moment, user))
    return kept


def alarms(failures, window, min_users, max_tries):
    """Yield (moment, earliest moment of the window, users) of each moment that alarms."""
    inside, tries = deque(), Counter()
    for number, (moment, user) in enumerate(failures):
        inside.append((moment, user))
        tries[user] += 1
        if number + 1 < len(failures) and failures[number + 1][0] == moment:
            continue
        while inside[0][0] <= moment - window:
            _, old = inside.popleft()
            tries[old] -= 1
            if not tries[old]:
                del tries[old]
        if len(tries) >= min_users and len(inside) <= max_tries * len(tries):
            yield moment, inside[0][0], set(tries)


def alerts(network, failures, successes, policy):
    window = Fraction(str(policy["window_seconds"])) * 1000
    grace = Fraction(str(policy["grace_seconds"])) * 1000
    found = []
    kept = unexcused(failures, successes, grace)
    for moment, earliest, users in alarms(kept, window, policy["min_users"], Fraction(str(policy["max_tries"]))):
        if found and moment - found[-1][1] <= window:
            found[-1][1] = moment
            found[-1][2] |= users
        else:
            found.append([earliest, moment, users])
    for start, end, users in found:
        entered = {user for moment, user in successes if start <= moment <= end + window}
        yield {"network": network, "start": shown(start), "end": shown(end), "users": sorted(users), "entered": sorted(entered)}


def main(policy_path, out, *paths):
    with open(policy_path, encoding="utf-8") as handle:
        policy = json.load(handle)
    networks, skipped, duplicates = read(paths, [ip_network(text) for text in policy["exempt"]])
    found = [alert for network in sorted(networks) for alert in alerts(network, *networks[network], policy)]
    with open(out, "w", encoding="utf-8") as handle:
        json.dump({"alerts": found, "skipped": skipped, "duplicates": duplicates}, handle, indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
