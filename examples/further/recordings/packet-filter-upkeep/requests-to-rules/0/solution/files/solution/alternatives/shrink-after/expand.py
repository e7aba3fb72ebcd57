"""Write the rules of requests and prohibitions in a given order, join sibling prefixes, drop what is never reached."""

import csv
from ipaddress import IPv4Network, collapse_addresses, ip_address, summarize_address_range

# Prohibitions in an order in which each exception stands in front of its own and behind the others that refuse it.
ORDER = "R015 R043 R017 R041 R032 P1 P2 P3 P4 P5 R013 P6 P7 P8 P9".split()
DAY = "2026-04-01"


def rows(name):
    with open(f"/app/{name}.csv", newline="", encoding="utf-8") as handle:
        yield from csv.DictReader(handle)


def now(row):
    return row["from"] <= DAY and (row["until"] >= DAY or row["until"] == "")


def networks(name):
    """Fewest prefixes behind a name."""
    found = []
    for row in filter(now, rows("inventory")):
        if row["name"] != name:
            continue
        if row["kind"] == "group":
            for member in row["value"].split():
                found += networks(member)
        elif row["kind"] == "range":
            found += summarize_address_range(*map(ip_address, row["value"].split("-")))
        else:
            found += map(IPv4Network, row["value"].split())
    return list(collapse_addresses(found))


def services(name):
    for row in rows("services"):
        if row["service"] == name and row["protocol"] == "group":
            for member in row["ports"].split():
                yield from services(member)
        elif row["service"] == name:
            yield ("ip" if row["protocol"] == "any" else row["protocol"]), row["ports"]


def written(verdict, row):
    return [(verdict, protocol, s, d, ports) for protocol, ports in services(row["service"]) for s in networks(row["source"]) for d in networks(row["destination"])]


def span(ports):
    low, _, high = ports.partition("-")
    return (int(low), int(high or low)) if ports else (0, 65535)


def joined(block):
    """Join ports that meet, then sources, then destinations, as long as the rest of the rules is the same."""
    ports = {}
    for verdict, protocol, source, destination, text in block:
        ports.setdefault((verdict, protocol, source, destination), []).append(span(text))
    flat = []
    for key, spans in ports.items():
        spans.sort()
        merged = [spans[0]]
        for low, high in spans[1:]:
            if low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        flat += [(*key, ports_) for ports_ in merged]
    for axis in (2, 3, 2, 3):
        groups = {}
        for rule in flat:
            groups.setdefault((*rule[:axis], None, *rule[axis + 1 :]), []).append(rule[axis])
        flat = [(*key[:axis], network, *key[axis + 1 :]) for key, members in groups.items() for network in collapse_addresses(members)]
    return flat


def inside(rule, other):
    """Whether a rule is hidden behind another one."""
    return (
        other[1] in (rule[1], "ip") and rule[2].subnet_of(other[2]) and rule[3].subnet_of(other[3])
        and other[4][0] <= rule[4][0] and rule[4][1] <= other[4][1]
    )


approved = {row["id"]: row for row in rows("requests") if row["state"] == "approved"}
gone = {row["replaces"] for row in approved.values() if row["from"] <= DAY}
requests = {name: row for name, row in approved.items() if now(row) and name not in gone}
prohibitions = {row["id"]: row for row in rows("prohibitions")}
placed = ORDER
blocks = [written("permit", requests[name]) if name in requests else written("deny log", prohibitions[name]) for name in placed]
blocks.append([rule for name, row in requests.items() if name not in placed for rule in written("permit", row)])

rules = []
for block in blocks:
    for rule in joined(block):
        if not any(inside(rule, earlier) for earlier in rules):
            rules.append(rule)
# A permit in front of a wider permit, with no refusal in between that meets it, says nothing of its own.
kept = []
for place, rule in enumerate(rules):
    for later in rules[place + 1 :]:
        meets = later[2].overlaps(rule[2]) and later[3].overlaps(rule[3]) and (later[1] in (rule[1], "ip") or rule[1] == "ip")
        if meets and later[0] != rule[0]:
            kept.append(rule)
            break
        if later[0] == rule[0] and inside(rule, later):
            break
    else:
        kept.append(rule)

with open("/app/out/edge.rules", "w", encoding="utf-8") as handle:
    for verdict, protocol, source, destination, (low, high) in kept:
        ports = "" if protocol in ("ip", "icmp") else f" {low}-{high}"
        action, _, log = verdict.partition(" ")
        handle.write(f"{action} {protocol} {source} {destination}{ports} {log}".rstrip() + "\n")
