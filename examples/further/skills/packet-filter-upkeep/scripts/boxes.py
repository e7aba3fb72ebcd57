"""Intervals and boxes for packet filter rules; a small self-test runs with `python3 boxes.py`.

A box is a tuple of closed intervals (low, high), one a dimension.
"""

import ipaddress


def addresses(text):
    """Interval of `any`, an address, a prefix, or a range `a-b`, as integers."""
    if text == "any":
        return 0, 2**32 - 1
    if "-" in text:
        low, high = (int(ipaddress.IPv4Address(part)) for part in text.split("-"))
        return low, high
    network = ipaddress.ip_network(text)
    return int(network[0]), int(network[-1])


def overlap(one, other):
    """The box that both share, or None."""
    shared = tuple((max(a[0], b[0]), min(a[1], b[1])) for a, b in zip(one, other))
    return shared if all(low <= high for low, high in shared) else None


def subtract(box, hole):
    """Boxes without overlap that make up `box` outside of `hole`."""
    shared = overlap(box, hole)
    if shared is None:
        return [box]
    left, rest = [], list(box)
    for axis, (low, high) in enumerate(shared):
        if rest[axis][0] < low:
            left.append((*rest[:axis], (rest[axis][0], low - 1), *rest[axis + 1 :]))
        if rest[axis][1] > high:
            left.append((*rest[:axis], (high + 1, rest[axis][1]), *rest[axis + 1 :]))
        rest[axis] = (low, high)
    return left


def uncovered(box, holes):
    """What is left of `box` when all `holes` are taken out."""
    left = [box]
    for hole in holes:
        left = [piece for part in left for piece in subtract(part, hole)]
    return left


if __name__ == "__main__":
    square = ((0, 9), (0, 9))
    assert uncovered(square, [((0, 4), (0, 9)), ((5, 9), (0, 9))]) == []
    assert sum((h - l + 1) * (k - m + 1) for (l, h), (m, k) in uncovered(square, [((3, 5), (3, 5))])) == 91
    assert addresses("10.0.0.0/30") == addresses("10.0.0.0-10.0.0.3")
    print("boxes: all well")
