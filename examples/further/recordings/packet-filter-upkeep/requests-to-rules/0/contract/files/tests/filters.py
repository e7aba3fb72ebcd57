"""Rule lists as ordered boxes, and the exact comparison of two of them. Knows nothing about deliveries."""

import ipaddress
import re
from bisect import bisect_right

PROTOCOLS = ("tcp", "udp", "icmp")
ALL = (0, 2**32 - 1)
PORTS = (0, 65535)
MAX_RULES = 5000


def addresses(text):
    """Interval of `any`, an address or a prefix."""
    if text == "any":
        return ALL
    if not re.fullmatch(r"\d+\.\d+\.\d+\.\d+(/\d+)?", text, re.ASCII):
        raise ValueError(f"no address: {text[:40]}")
    network = ipaddress.IPv4Network(text)
    return int(network[0]), int(network[-1])


def ports(text):
    if text == "any":
        return PORTS
    found = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", text, re.ASCII)
    low, high = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if not low <= high <= PORTS[1]:
        raise ValueError(f"no ports: {text[:40]}")
    return low, high


def rule(line):
    """(verdict, protocols, (source, destination, ports)); ValueError when the line is no rule."""
    words = line.split()
    log = words[-1] == "log"
    words = words[:-1] if log else words
    with_ports = words[1:2] in (["tcp"], ["udp"])
    if len(words) != 4 + with_ports or words[0] not in ("permit", "deny") or words[1] not in (*PROTOCOLS, "ip"):
        raise ValueError(f"no rule: {line[:60]}")
    box = addresses(words[2]), addresses(words[3]), ports(words[4]) if with_ports else PORTS
    return words[0] + " log" * log, PROTOCOLS if words[1] == "ip" else (words[1],), box


def rules(text):
    """All rules of a list; ValueError when one is none, or there are far too many."""
    lines = [line for line in text.split("\n") if line.strip() and not line.strip().startswith("#")]
    if len(lines) > MAX_RULES:
        raise ValueError("far too many rules")
    return [rule(line) for line in lines]


def subtract(box, hole):
    """Boxes without overlap that make up `box` outside of `hole`."""
    shared = [(max(a[0], b[0]), min(a[1], b[1])) for a, b in zip(box, hole)]
    if any(low > high for low, high in shared):
        return [box]
    left, rest = [], list(box)
    for axis, (low, high) in enumerate(shared):
        if rest[axis][0] < low:
            left.append((*rest[:axis], (rest[axis][0], low - 1), *rest[axis + 1 :]))
        if rest[axis][1] > high:
            left.append((*rest[:axis], (high + 1, rest[axis][1]), *rest[axis + 1 :]))
        rest[axis] = (low, high)
    return left


def without(boxes, holes):
    for hole in holes:
        boxes = [piece for box in boxes for piece in subtract(box, hole)]
    return boxes


def dead(listed):
    """Indices of the rules that decide no packet."""
    found = []
    for index, (_, protocols, box) in enumerate(listed):
        before = [[other for _, names, other in listed[:index] if protocol in names] for protocol in protocols]
        if not any(without([box], holes) for holes in before):
            found.append(index)
    return found


def _cuts(boxes, axis, more=()):
    """First values of the cells of one axis."""
    return sorted({0, *more, *(box[axis][0] for _, box in boxes), *(box[axis][1] + 1 for _, box in boxes)})


def _within(boxes, axis, value):
    return tuple((verdict, box) for verdict, box in boxes if box[axis][0] <= value <= box[axis][1])


def _differs_in_ports(one, other):
    for port in _cuts(one + other, 2):
        if port <= PORTS[1]:
            first = [next((verdict for verdict, box in boxes if box[2][0] <= port <= box[2][1]), "deny") for boxes in (one, other)]
            if first[0] != first[1]:
                return True
    return False


def different_zones(one, other, zones):
    """Names of the zones (name -> first destination, sorted) into which some packet gets different verdicts."""
    starts = sorted(zones.values())
    names = {start: name for name, start in zones.items()}
    found = set()
    for protocol in PROTOCOLS:
        mine, yours = ([(verdict, box) for verdict, names_, box in listed if protocol in names_] for listed in (one, other))
        seen, known = set(), {}
        for source in _cuts(mine + yours, 0):
            left, right = _within(mine, 0, source), _within(yours, 0, source)
            if source > ALL[1] or (left, right) in seen:
                continue
            seen.add((left, right))
            for destination in _cuts(left + right, 1, starts):
                if destination > ALL[1]:
                    continue
                key = _within(left, 1, destination), _within(right, 1, destination)
                if key not in known:
                    known[key] = _differs_in_ports(*key)
                if known[key]:
                    found.add(names[starts[bisect_right(starts, destination) - 1]])
    return found
