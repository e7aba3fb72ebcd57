"""Inputs near observed ones: the same call with one to three things changed.

Changes follow what a value looks like: numbers move to the code's own limits and next to them, texts swap with texts
seen in the same place or lose their neatness, rows of a table are dropped, doubled and exchanged. Deterministic for
equal cases, donors and seeds.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# The values here are tagged JSON of any shape; `cases.well_formed` checks them where they come in.

import copy
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from skill2env.authors.code.cases import LISTED, PAIRED, Case
from skill2env.records import canonical_json

MAX_CHANGES = 3
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")


@dataclass(frozen=True, slots=True)
class Palette:
    """What values of one target may be replaced by."""

    numbers: tuple[float, ...] = ()
    """Numeric constants of the code."""
    texts: tuple[str, ...] = ()
    """Short text constants of the code."""
    seen: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    """Place in the inputs -> values observed there."""


type Place = tuple[str, Callable[[], Any], Callable[[Any], None], str]
"""Path without positions, getter, setter, and what it is: leaf, list, pairs, table."""


def palette(cases: Sequence[Case], numbers: Sequence[float], texts: Sequence[str]) -> Palette:
    """Collect the donors of one target from its observed cases."""
    seen: dict[str, list[Any]] = {}
    for case in cases:
        for path, get, _, what in _places(_inputs(case)):
            if what == "leaf" and len(seen.setdefault(path, [])) < 40 and get() not in seen[path]:
                seen[path].append(get())
    return Palette(tuple(numbers), tuple(texts), seen)


def variants(case: Case, donors: Palette, rng: random.Random, count: int) -> list[Case]:
    """Up to `count` distinct cases near `case`."""
    found: dict[str, Case] = {}
    for _ in range(count * 4):
        if len(found) >= count:
            break
        inputs = copy.deepcopy(_inputs(case))
        for _ in range(rng.choice((1, 1, 1, 2, 2, MAX_CHANGES))):
            places = list(_places(inputs))
            if not places:
                return []
            _change(rng.choice(places), donors, rng)
        new = case.derived(tuple(inputs["args"]), inputs["kwargs"])
        if new.id != case.id:
            found.setdefault(new.id, new)
    return list(found.values())


def _inputs(case: Case) -> dict[str, Any]:
    return {"args": list(case.args), "kwargs": dict(case.kwargs)}


def _places(inputs: dict[str, Any]) -> Iterator[Place]:
    for index in range(len(inputs["args"])):
        yield from _walk(inputs["args"], index, f"a{index}")
    for name in sorted(inputs["kwargs"]):
        yield from _walk(inputs["kwargs"], name, f"k:{name}")


def _walk(holder: Any, key: Any, path: str) -> Iterator[Place]:  # noqa: C901  # one branch a tag
    value = holder[key]

    def get() -> Any:
        return holder[key]

    def put(new: Any) -> None:
        holder[key] = new

    tag = value.get("$") if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType,reportUnknownMemberType]
    if tag is None and not isinstance(value, list):
        if value is not None:
            yield path, get, put, "leaf"
    elif tag in ("float", "decimal"):
        yield path, get, put, "leaf"
    elif isinstance(value, list) or tag in LISTED:
        items = value if isinstance(value, list) else value["v"]  # pyright: ignore[reportUnknownVariableType]
        yield path, get, put, "list"
        for index in range(len(items)):  # pyright: ignore[reportUnknownArgumentType]
            yield from _walk(items, index, f"{path}[]")
    elif tag in PAIRED:
        if tag == "dict":
            yield path, get, put, "pairs"
        for pair in value["v"]:
            yield from _walk(pair, 1, f"{path}.{canonical_json(pair[0])}")
    elif tag == "file":
        yield f"{path}/text", lambda: value["text"], lambda new: value.__setitem__("text", new), "table"
    elif tag == "folder":
        for name in sorted(value["files"]):
            files = value["files"]
            yield (
                f"{path}/{name}",
                lambda f=files, n=name: f[n],
                lambda new, f=files, n=name: f.__setitem__(n, new),
                "table",
            )


def _change(place: Place, donors: Palette, rng: random.Random) -> None:
    path, get, put, what = place
    value = get()
    if what == "leaf":
        others = [item for item in donors.seen.get(path, []) if item != value]
        put(rng.choice(others) if others and rng.random() < 0.35 else _leaf(value, donors, rng))
    elif what == "table":
        put(_table(str(value), donors, rng))
    else:
        inner = value if isinstance(value, list) else value["v"]
        changed = _sequence(list(inner), rng, pairs=what == "pairs")  # pyright: ignore[reportUnknownArgumentType]
        put(changed if isinstance(value, list) else {**value, "v": changed})


def _leaf(value: Any, donors: Palette, rng: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        near = [int(n) + d for n in donors.numbers if n == int(n) for d in (-1, 0, 1)]
        return rng.choice(
            [value + 1, value - 1, 0, value * 2, -value, *(rng.sample(near, min(4, len(near))))]
        )
    if isinstance(value, dict):
        number = float(value["v"])
        near = [n + d for n in donors.numbers for d in (-0.01, 0.0, 0.01)]
        options = [number + 0.01, number - 0.01, number * 2, number / 2, 0.0, -number]
        new = round(rng.choice([*options, *rng.sample(near, min(6, len(near)))]), 6)
        return {"$": value["$"], "v": repr(new)}
    return _text(str(value), donors, rng)


def _text(value: str, donors: Palette, rng: random.Random) -> str:
    if _NUMBER.fullmatch(value):
        return _number(value, donors, rng)
    if _NUMBER.search(value) and rng.random() < 0.3:
        return _NUMBER.sub(lambda hit: _number(hit[0], donors, rng), value, count=1)
    options = [
        value.upper(),
        value.lower(),
        f" {value}",
        f"{value} ",
        value.title(),
        value[1:],
        value[:-1],
        value * 2,
    ]
    if "\n" in value:
        options += [_table(value, donors, rng)] * 4
    elif " " in value:
        words = value.split(" ")
        options += [
            " ".join(words[1:]),
            " ".join(words[:-1]),
            " ".join(reversed(words)),
            value.replace(" ", "  "),
        ]
    if donors.texts:
        options += rng.sample(donors.texts, min(3, len(donors.texts)))
    return rng.choice(options)


def _number(value: str, donors: Palette, rng: random.Random) -> str:
    if "." in value:
        digits = len(value.partition(".")[2])
        number = float(value)
        options = [
            number + 10.0**-digits,
            number - 10.0**-digits,
            number / 2,
            number * 2,
            0.0,
            *donors.numbers,
        ]
        return f"{rng.choice(options):.{digits}f}"
    whole = [n + d for n in donors.numbers if n == int(n) for d in (-1, 0, 1)]
    return str(int(rng.choice([int(value) + 1, int(value) - 1, int(value) * 2, int(value) // 2, 0, *whole])))


def _sequence(items: list[Any], rng: random.Random, *, pairs: bool) -> list[Any]:
    if not items:
        return items
    at = rng.randrange(len(items))
    choice = rng.choice(
        ("drop", "drop", "reverse") if pairs else ("drop", "double", "reverse", "swap", "short")
    )
    if choice == "drop":
        return items[:at] + items[at + 1 :]
    if choice == "double":
        return [*items[: at + 1], copy.deepcopy(items[at]), *items[at + 1 :]]
    if choice == "reverse":
        return items[::-1]
    if choice == "swap":
        other = rng.randrange(len(items))
        items[at], items[other] = items[other], items[at]
        return items
    return items[: max(1, len(items) // 2)]


def _table(text: str, donors: Palette, rng: random.Random) -> str:
    """A text file with lines or cells changed; the first line, often a header, mostly stays."""
    lines = text.split("\n")
    body = [index for index, line in enumerate(lines) if index > 0 and line.strip()]
    if not body:
        return _NUMBER.sub(lambda hit: _number(hit[0], donors, rng), text, count=1)
    at = rng.choice(body)
    choice = rng.choice(("cell", "cell", "cell", "cross", "cross", "drop", "double", "swap", "case"))
    other = rng.choice(body)
    if choice == "drop" and len(body) > 1:
        del lines[at]
    elif choice == "double":
        lines.insert(at, lines[at])
    elif choice == "swap":
        lines[at], lines[other] = lines[other], lines[at]
    elif choice == "cross":
        lines[at] = _cross(lines[at], lines[other], rng)
    elif choice == "case":
        lines[at] = _cell(
            lines[at], rng, lambda cell: rng.choice((cell.lower(), cell.upper(), f" {cell}", f"{cell} "))
        )
    else:
        hits = list(_NUMBER.finditer(lines[at]))
        if hits:
            hit = rng.choice(hits)
            lines[at] = lines[at][: hit.start()] + _number(hit[0], donors, rng) + lines[at][hit.end() :]
        else:
            lines[at] = _cross(lines[at], lines[other], rng)
    return "\n".join(lines)


def _delimiter(line: str) -> str:
    return max("\t,;|", key=line.count) if any(mark in line for mark in "\t,;|") else " "


def _cell(line: str, rng: random.Random, change: Callable[[str], str]) -> str:
    mark = _delimiter(line)
    cells = line.split(mark)
    at = rng.randrange(len(cells))
    cells[at] = change(cells[at])
    return mark.join(cells)


def _cross(line: str, other: str, rng: random.Random) -> str:
    """One cell takes the value of the same column in another line."""
    mark = _delimiter(line)
    mine, theirs = line.split(mark), other.split(mark)
    at = rng.randrange(min(len(mine), len(theirs)))
    mine[at] = theirs[at]
    return mark.join(mine)
