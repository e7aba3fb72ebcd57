"""Shrink lists by stretching rules over each other and dropping the idle ones; equality is a comparison of all cells."""

import csv
import ipaddress
from bisect import bisect_left
from pathlib import Path

WIDE = {"any": (0, 2**32)}


def bounds(word):
    """Half-open interval of addresses."""
    if word in WIDE:
        return WIDE[word]
    if "-" in word:
        first, last = map(ipaddress.IPv4Address, word.split("-"))
        return int(first), int(last) + 1
    network = ipaddress.IPv4Network(word)
    return int(network[0]), int(network[-1]) + 1


def read(path):
    """[(line number, rule)]; a rule is [verdict, protocol word, source, destination, ports], intervals half open."""
    found = []
    for number, line in enumerate(path.read_text().split("\n"), 1):
        words = line.partition("!")[0].split()
        if words:
            logged = words[-1] == "log"
            action, protocol, source, destination, *rest = words[: len(words) - logged]
            low, high = 0, 65536
            if rest and rest != ["any"]:
                low, high = int(rest[0].split("-")[0]), int(rest[0].split("-")[-1]) + 1
            found.append((number, (action + "+log" * logged, protocol, bounds(source), bounds(destination), (low, high))))
    return found


class Space:
    """All cells that the bounds of one list make, numbered for each protocol; a set of cells is one big integer."""

    def __init__(self, rules):
        self.edges = [sorted({edge for rule in rules for edge in rule[2 + axis]} | {0}) for axis in range(3)]
        self.sizes = [len(edges) for edges in self.edges]
        self.layer = self.sizes[0] * self.sizes[1] * self.sizes[2]
        self.known = {}

    def cells(self, rule):
        key = rule[1:]
        if key not in self.known:
            spans = [(bisect_left(edges, a), bisect_left(edges, b)) for edges, (a, b) in zip(self.edges, rule[2:])]
            line = ((1 << (spans[2][1] - spans[2][0])) - 1) << spans[2][0]
            plane = sum(line << (self.sizes[2] * d) for d in range(*spans[1]))
            block = sum(plane << (self.sizes[2] * self.sizes[1] * s) for s in range(*spans[0]))
            layers = range(3) if rule[1] == "ip" else [("tcp", "udp", "icmp").index(rule[1])]
            self.known[key] = sum(block << (self.layer * n) for n in layers)
        return self.known[key]

    def told(self, rules):
        """{verdict: cells} of a whole list, without the default."""
        taken, said = 0, {}
        for rule in rules:
            new = self.cells(rule) & ~taken
            taken |= new
            said[rule[0]] = said.get(rule[0], 0) | new
        return {verdict: cells for verdict, cells in said.items() if cells and verdict != "deny"}


def stretched(rule, other):
    return (rule[0], rule[1], *((min(a, c), max(b, d)) for (a, b), (c, d) in zip(rule[2:], other[2:])))


def idle_out(space, rules, truth):
    for index in range(len(rules) - 1, -1, -1):
        fewer = rules[:index] + rules[index + 1 :]
        if space.told(fewer) == truth:
            rules = fewer
    return rules


def shrink(rules):
    space = Space(rules)
    truth = space.told(rules)
    rules = idle_out(space, rules, truth)
    changed = True
    while changed:
        changed = False
        for one in range(len(rules)):
            for other in range(len(rules)):
                if one == other or rules[one][:2] != rules[other][:2]:
                    continue
                larger = stretched(rules[one], rules[other])
                trial = rules[:one] + [larger] + rules[one + 1 :]
                if larger != rules[one] and space.told(trial) == truth:
                    fewer = idle_out(space, trial, truth)
                    if len(fewer) < len(rules):
                        rules, changed = fewer, True
                        break
            if changed:
                break
    return rules


def spell(low, high):
    return "any" if (low, high) == WIDE["any"] else f"{ipaddress.IPv4Address(low)}-{ipaddress.IPv4Address(high - 1)}"


with open("/app/out/dead.csv", "w", encoding="utf-8", newline="") as handle:
    table = csv.writer(handle)
    table.writerow(["list", "line"])
    for path in sorted(Path("/app/lists").iterdir()):
        given = read(path)
        space, taken = Space([rule for _, rule in given]), 0
        for number, rule in given:
            if not space.cells(rule) & ~taken:
                table.writerow([path.name, number])
            taken |= space.cells(rule)
        with open(Path("/app/out", path.name), "w", encoding="utf-8") as listed:
            fewer = shrink([rule for _, rule in given])
            print(path.name, len(fewer))
            for verdict, protocol, source, destination, (low, high) in fewer:
                action, _, log = verdict.partition("+")
                ports = f"{low}-{high - 1}" if protocol in ("tcp", "udp") else ""
                print(action, protocol, spell(*source), spell(*destination), ports, log, file=listed)
