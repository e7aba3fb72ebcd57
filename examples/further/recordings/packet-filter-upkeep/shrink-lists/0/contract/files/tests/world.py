"""Four grown lists, made from seeds. `lists()` returns what lies in /app/lists, byte for byte."""

import ipaddress
import random

VERDICTS = ("permit", "permit", "permit", "permit log", "permit log", "deny log", "deny log", "deny")
SERVICES = ((22, 22), (53, 53), (80, 89), (443, 443), (1024, 2047), (3000, 3099), (5060, 5091), (8000, 8191), (0, 65535))
REMARKS = (
    "asked for by the warehouse, ticket lost", "do not touch before the audit", "temporary, until the move", "see mail of Tuesday",
    "scanner project, phase 2", "was needed once", "for the old telephone system", "copied from the other site", "who asked for this?",
)
SITES = {"edge": (11, "10.1.0.0", "172.16.0.0"), "branch": (23, "10.2.0.0", "172.17.0.0"), "lab": (35, "10.3.0.0", "172.18.0.0"), "voice": (48, "10.4.0.0", "172.19.0.0")}


class Grown:
    """One list: a short core, and what nine years made of it."""

    def __init__(self, seed, source, destination):
        self.random = random.Random(seed).random
        self.bases = [int(ipaddress.ip_address(source)), int(ipaddress.ip_address(destination))]
        self.rules = [self.core() for _ in range(16)]

    def below(self, limit):
        return int(self.random() * limit)

    def pick(self, items):
        return items[self.below(len(items))]

    def span(self, axis):
        """Some addresses of this site, seldom aligned."""
        size = self.pick([16, 32, 48, 64, 96, 128, 256, 300])
        low = self.bases[axis] + self.below(8) * 64 + self.pick([0, 0, 0, 8, 20])
        return low, low + size - 1

    def core(self):
        protocol = self.pick(["tcp", "tcp", "tcp", "udp", "udp", "icmp", "ip"])
        ports = self.pick(SERVICES) if protocol in ("tcp", "udp") else (0, 65535)
        return self.pick(VERDICTS), protocol, (self.span(0), self.span(1), ports)

    def grow(self):
        for _ in range(9):
            self.split(self.below(len(self.rules)))
        for _ in range(5):
            self.bridge(self.below(len(self.rules)))
        for _ in range(5):
            self.shadowed_part(self.below(len(self.rules)))
        for _ in range(3):
            self.lead(self.below(len(self.rules)))
        for _ in range(2):
            _, protocol, box = self.core()
            self.rules.append(("deny", protocol, box))

    def cut(self, box):
        """An axis and a value at which the box can be cut in two."""
        axes = [axis for axis in range(3) if box[axis][1] - box[axis][0] >= 7 and box[axis] != (0, 65535)]
        axis = self.pick(axes)
        low, high = box[axis]
        return axis, low + (high - low + 1) * self.pick([1, 2, 2, 3]) // 4

    def split(self, index):
        """Two rules for one; in part they overlap."""
        verdict, protocol, box = self.rules[index]
        axis, at = self.cut(box)
        more = self.pick([0, 0, 1, 2])
        first = (*box[:axis], (box[axis][0], at - 1 + more), *box[axis + 1 :])
        second = (*box[:axis], (at, box[axis][1]), *box[axis + 1 :])
        halves = [(verdict, protocol, first), (verdict, protocol, second)]
        self.rules[index : index + 1] = halves if self.random() < 0.5 else halves[::-1]
        self.sink(index + 1)

    def sink(self, index):
        """Move a rule down past rules that it has nothing in common with."""
        for _ in range(self.below(6)):
            if index + 1 >= len(self.rules) or _meet(self.rules[index], self.rules[index + 1]):
                return
            self.rules[index : index + 2] = self.rules[index + 1], self.rules[index]
            index += 1

    def bridge(self, index):
        """A rule behind two halves of another one that hides behind both together."""
        verdict, protocol, box = self.rules[index]
        axis, at = self.cut(box)
        if self.random() < 0.8:
            halves = [(*box[:axis], part, *box[axis + 1 :]) for part in ((box[axis][0], at - 1), (at, box[axis][1]))]
            self.rules[index : index + 1] = [(verdict, protocol, half) for half in halves]
        low, high = box[axis]
        hidden = (*box[:axis], (low + (at - low) // 2, at + (high - at) // 2), *box[axis + 1 :])
        place = index + 2 + self.below(max(1, len(self.rules) - index - 2))
        self.rules.insert(place, (self.pick(VERDICTS), protocol, hidden))

    def shadowed_part(self, index):
        """A piece of a later rule, said once more in front of it."""
        verdict, protocol, box = self.rules[index]
        axis, at = self.cut(box)
        self.rules.insert(index, (verdict, protocol, (*box[:axis], (at, box[axis][1]), *box[axis + 1 :])))

    def lead(self, index):
        """A copy further down with another verdict."""
        _, protocol, box = self.rules[index]
        self.rules.insert(index + 1 + self.below(len(self.rules) - index), (self.pick(VERDICTS), protocol, box))

    def text(self, name):
        lines = [f"! list {name}, exported"]
        for number, (verdict, protocol, box) in enumerate(self.rules):
            if self.random() < 0.3:
                lines += [""] * (number % 5 == 0) + ["! " + self.pick(REMARKS)]
            action, *log = verdict.split()
            ports = [] if protocol in ("ip", "icmp") else [_ports(box[2])]
            lines.append(" ".join([action, protocol.ljust(4), self.shown(box[0]), self.shown(box[1]), *ports, *log]))
        return "\n".join(lines) + "\n"

    def shown(self, span):
        networks = list(ipaddress.summarize_address_range(*map(ipaddress.ip_address, span)))
        if len(networks) == 1 and self.random() < 0.9:
            return str(networks[0]).removesuffix("/32")
        return f"{ipaddress.ip_address(span[0])}-{ipaddress.ip_address(span[1])}"


def _ports(span):
    return "any" if span == (0, 65535) else "-".join(str(end) for end in sorted(set(span)))


def _meet(one, other):
    same = one[1] == other[1] or "ip" in (one[1], other[1])
    return same and all(a <= d and c <= b for (a, b), (c, d) in zip(one[2], other[2]))


def lists():
    """{file name: text} of the lists as they are."""
    found = {}
    for name, (seed, source, destination) in SITES.items():
        grown = Grown(seed, source, destination)
        grown.grow()
        found[f"{name}.rules"] = grown.text(name)
    return found


if __name__ == "__main__":
    import pathlib
    import sys

    for name, text in lists().items():
        pathlib.Path(sys.argv[1], name).write_text(text, encoding="utf-8")
