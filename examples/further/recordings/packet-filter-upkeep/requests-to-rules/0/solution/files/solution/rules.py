"""Exceptions first, then prohibitions, then grants; merged as intervals, written as prefixes, checked cell by cell."""

import csv
import ipaddress
import itertools
import sys
from pathlib import Path

app, target = Path(sys.argv[1]), Path(sys.argv[2])
DAY = "2026-04-01"
ANY = (0, 2**32 - 1)
PORTS = (0, 65535)
PROTOCOLS = ("tcp", "udp", "icmp")


def table(name):
    with open(app / f"{name}.csv", newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def holds(row):
    return (not row["from"] or row["from"] <= DAY) and (not row["until"] or DAY <= row["until"])


def interval(text):
    if "-" in text:
        low, high = text.split("-")
        return int(ipaddress.IPv4Address(low)), int(ipaddress.IPv4Address(high))
    network = ipaddress.IPv4Network(text)
    return int(network.network_address), int(network.broadcast_address)


INVENTORY = [row for row in table("inventory") if holds(row)]
SERVICES = table("services")


def joined(intervals):
    """Neighbouring and overlapping intervals made one."""
    found = []
    for low, high in sorted(intervals):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found


def addresses(name):
    found = []
    for row in INVENTORY:
        if row["name"] == name:
            for word in row["value"].split():
                found += addresses(word) if row["kind"] == "group" else [interval(word)]
    return joined(found)


def service(name):
    found = []
    for row in SERVICES:
        if row["service"] != name:
            continue
        if row["protocol"] == "group":
            found += itertools.chain.from_iterable(service(word) for word in row["ports"].split())
        elif row["protocol"] == "any":
            found.append(("ip", PORTS))
        else:
            low, _, high = row["ports"].partition("-")
            found.append((row["protocol"], (int(low), int(high or low)) if low else PORTS))
    return found


def boxes(row):
    found = []
    for protocol, span in service(row["service"]):
        for pair in itertools.product(addresses(row["source"]), addresses(row["destination"])):
            found.append((protocol, (*pair, span)))
    return found


def minus(box, hole):
    """Pieces of a box outside of a hole."""
    common = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, hole))
    if any(a > b for a, b in common):
        return [box]
    pieces = []
    for axis in range(3):
        (a, b), (c, d) = box[axis], common[axis]
        for part in ((a, c - 1), (d + 1, b)):
            if part[0] <= part[1]:
                pieces.append((*common[:axis], part, *box[axis + 1 :]))
    return pieces


def merged(rules):
    """Rules of one verdict and protocol: two whose union is a box become one, until none is left."""
    rules = list(dict.fromkeys(rules))
    again = True
    while again:
        again = False
        for one, other in itertools.combinations(rules, 2):
            if one[0] != other[0]:
                continue
            unlike = [axis for axis in range(3) if one[1][axis] != other[1][axis]]
            union = tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(one[1], other[1]))
            touching = len(unlike) == 1 and len(joined([one[1][unlike[0]], other[1][unlike[0]]])) == 1
            if touching or union in (one[1], other[1]):
                rules = [rule for rule in rules if rule not in (one, other)] + [(one[0], union)]
                again = True
                break
    return rules


# ---- the list, with intervals: each exception behind the prohibitions that refuse it and before those that let it through
approved = [row for row in table("requests") if row["state"] == "approved"]
replaced = {row["replaces"] for row in approved if not row["from"] or row["from"] <= DAY}
requests = {row["id"]: boxes(row) for row in approved if holds(row) and row["id"] not in replaced}
prohibitions = {row["id"]: (set(row["exceptions"].split()), boxes(row)) for row in table("prohibitions")}


def touch(some, others):
    return any(
        (p == q or "ip" in (p, q)) and all(a <= d and c <= b for (a, b), (c, d) in zip(box, hole))
        for p, box in some
        for q, hole in others
    )


before, behind = {}, {}
for name, wanted in requests.items():
    met = {word for word, (_, refused) in prohibitions.items() if touch(wanted, refused)}
    behind[name] = {word for word in met if name not in prohibitions[word][0]}
    before[name] = met - behind[name]
early = {name for name in requests if before[name]}
waiting, ordered = sorted(early) + sorted(prohibitions), []
while waiting:
    for item in waiting:
        if item in early and not behind[item] & set(waiting):
            ordered.append(("permit", requests[item]))
        elif item in prohibitions and not any(item in before[name] for name in early & set(waiting)):
            ordered.append(("deny log", prohibitions[item][1]))
        else:
            continue
        waiting.remove(item)
        break
    else:
        raise SystemExit("no order serves these exceptions: cut their boxes")
ordered.append(("permit", [rule for name, wanted in requests.items() if name not in early for rule in wanted]))
ordered = [
    (verdict, *rule)
    for verdict, block in itertools.groupby(ordered, key=lambda item: item[0])
    for rule in merged([rule for _, found in block for rule in found])
]


# ---- prefixes, and out with what decides nothing
def prefixes(span):
    first, last = (ipaddress.IPv4Address(end) for end in span)
    return [interval(str(network)) for network in ipaddress.summarize_address_range(first, last)]


ordered = [
    (verdict, protocol, (source, destination, box[2]))
    for verdict, protocol, box in ordered
    for source in prefixes(box[0])
    for destination in prefixes(box[1])
]


def reached(index, rules):
    """What rule number `index` really decides, protocol by protocol."""
    verdict, protocol, box = rules[index]
    for name in PROTOCOLS if protocol == "ip" else (protocol,):
        left = [box]
        for _, other, hole in rules[:index]:
            if other in (name, "ip"):
                left = [part for piece in left for part in minus(piece, hole)]
        yield name, left


def needless(index, rules):
    """True when everything that a rule decides would get the same verdict from the rules after it."""
    for name, left in reached(index, rules):
        for verdict, other, hole in rules[index + 1 :]:
            if other not in (name, "ip"):
                continue
            rest = [part for piece in left for part in minus(piece, hole)]
            if verdict != rules[index][0] and rest != left:
                return False
            left = rest
        if left and rules[index][0] != "deny":
            return False
    return True


index = 0
while index < len(ordered):
    if needless(index, ordered):
        del ordered[index]
    else:
        index += 1


def shown(span):
    if span == ANY:
        return "any"
    return str(next(ipaddress.summarize_address_range(*map(ipaddress.IPv4Address, span)))).removesuffix("/32")


with open(target, "w", encoding="utf-8") as handle:
    handle.write("# edge filter as of 2026-04-01; what no rule matches is denied\n")
    for verdict, protocol, (source, destination, span) in ordered:
        ports = [] if protocol in ("ip", "icmp") else ["any" if span == PORTS else "-".join(map(str, sorted(set(span))))]
        action, *log = verdict.split()
        handle.write(" ".join([action, protocol, shown(source), shown(destination), *ports, *log]) + "\n")
