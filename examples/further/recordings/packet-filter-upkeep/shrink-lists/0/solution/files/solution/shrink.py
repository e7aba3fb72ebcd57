"""Name the dead rules, then drop and merge until nothing more can go, each step proved on the whole list."""

import csv
import ipaddress
import itertools
import sys
from pathlib import Path

source, target = Path(sys.argv[1]), Path(sys.argv[2])
PROTOCOLS = ("tcp", "udp", "icmp")
EVERY_PORT = (0, 65535)


def span(text):
    if text == "any":
        return 0, 2**32 - 1
    if "-" in text:
        low, high = text.split("-")
        return int(ipaddress.ip_address(low)), int(ipaddress.ip_address(high))
    network = ipaddress.ip_network(text)
    return int(network[0]), int(network[-1])


def parse(line):
    """(verdict, protocols, box)"""
    words = line.split()
    verdict = words[0] + (" log" if words[-1] == "log" else "")
    ports = EVERY_PORT
    if words[1] in ("tcp", "udp") and words[4] != "any":
        low, _, high = words[4].partition("-")
        ports = int(low), int(high or low)
    protocols = frozenset(PROTOCOLS if words[1] == "ip" else [words[1]])
    return verdict, protocols, (span(words[2]), span(words[3]), ports)


def pieces(box, hole):
    """What is left of a box outside of a hole."""
    shared = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, hole)]
    if any(low > high for low, high in shared):
        return [box]
    left = []
    for axis, (low, high) in enumerate(shared):
        for part in ((box[axis][0], low - 1), (high + 1, box[axis][1])):
            if part[0] <= part[1]:
                left.append((*shared[:axis], part, *box[axis + 1 :]))
    return [tuple(piece) for piece in left]


def left_over(boxes, hole):
    return [piece for box in boxes for piece in pieces(box, hole)]


def decided(rules, index, protocol):
    """What a rule decides of one protocol: its box without all earlier ones."""
    boxes = [rules[index][2]]
    for _, protocols, hole in rules[:index]:
        if protocol in protocols:
            boxes = left_over(boxes, hole)
    return boxes


def dead(rules, index):
    return not any(decided(rules, index, protocol) for protocol in rules[index][1])


def told_by(boxes, rules, protocol, verdict):
    """Whether a list gives one verdict to everything in some boxes."""
    for said, protocols, hole in rules:
        if protocol in protocols:
            rest = left_over(boxes, hole)
            if said != verdict and rest != boxes:
                return False
            boxes = rest
    return not boxes or verdict == "deny"


def same(old, new):
    """Whether two lists tell the same: every part that a rule of the one decides gets its verdict from the other."""
    for index, (verdict, protocols, _) in enumerate(old):
        if not all(told_by(decided(old, index, protocol), new, protocol, verdict) for protocol in protocols):
            return False
    for index, (verdict, protocols, _) in enumerate(new):
        if not all(told_by(decided(new, index, protocol), old, protocol, verdict) for protocol in protocols):
            return False
    return True


def union(one, other):
    """The box that two boxes make, or None."""
    outer = tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(one, other))
    unlike = [axis for axis in range(3) if one[axis] != other[axis]]
    if outer in (one, other):
        return outer
    if len(unlike) == 1 and max(one[unlike[0]][0], other[unlike[0]][0]) <= min(one[unlike[0]][1], other[unlike[0]][1]) + 1:
        return outer
    return None


def shorter(rules):
    """A list that is one rule shorter and tells the same, or None."""
    for index in reversed(range(len(rules))):
        verdict, protocols, _ = rules[index]
        rest = rules[index + 1 :]
        if all(told_by(decided(rules, index, protocol), rest, protocol, verdict) for protocol in protocols):
            return rules[:index] + rest
    for first, second in itertools.combinations(range(len(rules)), 2):
        (verdict, protocols, one), (other_verdict, other_protocols, other) = rules[first], rules[second]
        box = union(one, other)
        if box is None or (verdict, protocols) != (other_verdict, other_protocols):
            continue
        merged = (verdict, protocols, box)
        between = rules[first + 1 : second]
        for middle in ([merged, *between], [*between, merged]):
            new = rules[:first] + middle + rules[second + 1 :]
            if same(rules, new):
                return new
    return None


def shown(bounds):
    if bounds == (0, 2**32 - 1):
        return "any"
    networks = list(ipaddress.summarize_address_range(*map(ipaddress.IPv4Address, bounds)))
    if len(networks) == 1:
        return str(networks[0])
    return "-".join(str(ipaddress.IPv4Address(end)) for end in bounds)


def written(rule):
    verdict, protocols, box = rule
    action, *log = verdict.split()
    name = "ip" if len(protocols) > 1 else min(protocols)
    ports = [] if name in ("ip", "icmp") else ["any" if box[2] == EVERY_PORT else f"{box[2][0]}-{box[2][1]}"]
    return " ".join([action, name, shown(box[0]), shown(box[1]), *ports, *log])


unused = []
for path in sorted(source.glob("*.rules")):
    lines = path.read_text(encoding="utf-8").splitlines()
    numbers = [n for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("!")]
    original = [parse(lines[n - 1]) for n in numbers]
    unused += [(path.name, n) for index, n in enumerate(numbers) if dead(original, index)]
    rules = original
    while (fewer := shorter(rules)) is not None:
        rules = fewer
    if not same(original, rules):
        raise SystemExit(f"{path.name}: the shorter list differs")
    print(f"{path.name}: {len(original)} rules, now {len(rules)}")
    (target / path.name).write_text("".join(written(rule) + "\n" for rule in rules), encoding="utf-8")
with open(target / "dead.csv", "w", newline="", encoding="utf-8") as handle:
    writer = csv.writer(handle)
    writer.writerow(["list", "line"])
    writer.writerows(unused)
