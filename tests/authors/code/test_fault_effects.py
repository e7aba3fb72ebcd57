"""Every kind of fault, on a small program of its own: it breaks something, it leaves something, and nothing crashes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest

from skill2env.authors.code.faults.catalog import Kind
from skill2env.authors.code.faults.sites import find_sites
from skill2env.authors.code.faults.source import Source

HEAD = "import re, datetime\nfrom datetime import timezone\n\n\n"


@dataclass(frozen=True)
class Program:
    """The body of ``g(a, b)`` and what it is called with."""

    body: str
    inputs: Sequence[tuple[Any, Any]]


P = Program
ROWS = [{"id": "x", "n": 2}, {"id": "y", "n": 10}, {"id": "x", "n": 3}]
UTC, PLUS2 = "2024-03-09T23:30:00+00:00", "2024-03-09T23:30:00+02:00"

PROGRAMS: dict[Kind, Program] = {
    Kind.BOUNDARY: P("return 'light' if a <= b else 'heavy'", [(4, 5), (5, 5), (6, 5)]),
    Kind.OFF_BY_ONE: P("return a[:2]", [("abc", 0), ("a", 0)]),
    Kind.SIGN: P("return a + b", [(1, 2), (3, 0)]),
    Kind.SCALE: P("return a * 1000 + b", [(1, 2), (0, 3)]),
    Kind.THRESHOLD: P("return a > 25", [(23, 0), (99, 0)]),
    Kind.DEFAULT: P("return a.get('n', 5)", [({}, 0), ({"n": 1}, 0)]),
    Kind.ORDERING: P(
        "return sorted(a, key=lambda i: (-i['n'], i['id']))", [(ROWS, 0), (ROWS[:1], 0), ([], 0)]
    ),
    Kind.CONNECTIVE: P("return 1 if a > 0 and b > 0 else 0", [(1, 0), (1, 1), (0, 0)]),
    Kind.MISSING_CASE: P("return a in ('x', 'y', 'z')", [("z", 0), ("x", 0), ("q", 0)]),
    Kind.AGGREGATE: P("return max(a)", [([1, 2], 0), ([3], 0)]),
    Kind.TEXT: P("return a.strip().lower()", [(" A", 0), ("a", 0)]),
    Kind.ROUNDING: P("return round(a, 2)", [(1.234, 0), (2.0, 0)]),
    Kind.EARLY_EXIT: P(
        """
        total = 0
        for x in a:
            if x < 0:
                continue
            total += x
        return total
        """,
        [([1, -1, 2], 0), ([1, 2], 0)],
    ),
    Kind.ACCUMULATE: P(
        "total = 0\nfor x in a:\n    total += x\nreturn total", [([1, 2], 0), ([2], 0), ([], 0)]
    ),
    Kind.ALIAS: P("c = list(a)\nc.append(b)\nreturn [len(a), len(c)] if b else 0", [([1], 2), ([1], 0)]),
    Kind.SPLITTING: P("return a.split(':', 1)", [("x:y:z", 0), ("x:y", 0)]),
    Kind.WRONG_KEY: P(
        "return a['start'] - a['stop'] * 2", [({"start": 1, "stop": 2}, 0), ({"start": 0, "stop": 0}, 0)]
    ),
    Kind.SWAPPED: P("return pow(a, b)", [(2, 3), (2, 2)]),
    Kind.FALLBACK: P("return [a or b]", [("", "x"), ("y", "x")]),
    Kind.PATTERN: P("return bool(re.search('b', a))", [("ab", 0), ("ba", 0), ("c", 0)]),
    Kind.SET_LOGIC: P("return sorted(a | b)", [({1}, {2}), ({1}, {1})]),
    Kind.ENCODING: P(
        "return a.encode().decode(encoding='utf-8')",
        [("\u00e4", 0), ("a", 0)],
    ),
    Kind.SEPARATOR: P("return ', '.join(a)", [(["x", "y"], 0), (["x"], 0)]),
    Kind.TIME_ZONE: P(
        "return datetime.datetime.fromisoformat(a).astimezone(timezone.utc).date().isoformat()",
        [("2024-03-10T00:30:00+02:00", 0), (UTC, 0)],
    ),
    Kind.CALENDAR: P(
        "return datetime.datetime.strptime(a, '%d/%m/%Y').strftime('%Y-%m-%d')",
        [("03/04/2024", 0), ("04/04/2024", 0)],
    ),
    Kind.ERROR_PATH: P(
        """
        total = 0
        for x in a:
            try:
                total += int(x)
            except ValueError:
                continue
        return total
        """,
        [(["1", "x", "2"], 0), (["1", "2"], 0)],
    ),
    Kind.RESOURCE: P("return [line.upper() for line in a.splitlines()]", [("x\ny", 0), ("", 0)]),
    Kind.CACHE: P(
        """
        seen, kept = set(), []
        for x in a:
            if x not in seen:
                seen.add(x)
                kept.append(x)
        return kept
        """,
        [([1, 1, 2], 0), ([1, 2], 0)],
    ),
    Kind.MERGE_KEY: P(
        """
        sums = {}
        for name, day, n in a:
            key = (name, day)
            sums[key] = sums.get(key, 0) + n
        return sorted(sums.values())
        """,
        [([("x", 1, 5), ("x", 2, 6)], 0), ([("x", 1, 5)], 0)],
    ),
    Kind.PRECEDENCE: P(
        "found = {}\nfor row in a:\n    found[row['id']] = row['n']\nreturn found", [(ROWS, 0), (ROWS[:2], 0)]
    ),
    Kind.NUMBER_AS_TEXT: P("return sorted(a, key=lambda x: int(x))", [(["10", "9"], 0), (["1", "2"], 0)]),
    Kind.NONE_OR_EMPTY: P("return 'none' if a is None else a", [(0, 0), (None, 0), (3, 0)]),
    Kind.FILTER: P("return [x for x in a if x > 0]", [([1, -1], 0), ([1], 0), ([], 0)]),
}


def _loaded(text: str) -> Callable[[Any, Any], Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "m.py", "exec"), names)  # our own few lines from above
    return names["g"]


def _outcome(function: Callable[[Any, Any], Any], given: tuple[Any, Any]) -> Any:
    try:
        return repr(function(*given))
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("kind", list(Kind))
def test_it_breaks_something_and_leaves_something(kind: Kind) -> None:
    program = PROGRAMS[kind]
    text = HEAD + "def g(a, b):\n" + indent(dedent(program.body).strip("\n"), "    ") + "\n"
    source = Source(text)
    right = [_outcome(_loaded(text), given) for given in program.inputs]
    assert all(isinstance(item, str) for item in right)
    good = 0
    for site in find_sites("m.py", source):
        if site.kind is not kind:
            continue
        now = [_outcome(_loaded(source.apply(site.edit)), given) for given in program.inputs]
        differing = [b for a, b in zip(right, now, strict=True) if a != b]
        good += 0 < len(differing) < len(right) and all(isinstance(item, str) for item in differing)
    assert good, f"no {kind} fault breaks some of {program.body!r} and leaves some"


RESOURCES = [
    ("open(a, 'a')", 'open(a, "w")'),
    ("open(a).read()", "open(a).readline()"),
    ("Path(a).rglob('*')", "Path(a).glob('*')"),
    ("csv.reader(a)", "csv.reader(a, skipinitialspace=True)"),
]


@pytest.mark.parametrize(("before", "after"), RESOURCES)
def test_files(before: str, after: str) -> None:
    source = Source(f"def g(a):\n    return {before}\n")
    made = {source.apply(site.edit) for site in find_sites("m.py", source) if site.kind is Kind.RESOURCE}
    assert f"def g(a):\n    return {after}\n" in made


def test_a_refusal_is_lost() -> None:
    source = Source("def g(a):\n    if a < 0:\n        raise ValueError(a)\n    return a\n")
    made = [source.apply(site.edit) for site in find_sites("m.py", source) if site.kind is Kind.ERROR_PATH]
    assert made == ["def g(a):\n    if a < 0:\n        pass\n    return a\n"]


def test_a_value_of_the_round_before_stays() -> None:
    body = (
        "def g(a):\n    row = []\n    for x in a:\n        row = []\n        row.append(x)\n    return row\n"
    )
    source = Source(body)
    made = [source.apply(site.edit) for site in find_sites("m.py", source) if site.kind is Kind.CACHE]
    assert made == [body.replace("        row = []", "        pass")]


def test_the_catalogue_page_names_every_kind() -> None:
    page = (Path(__file__).parents[3] / "docs" / "code-tasks.md").read_text(encoding="utf-8")
    assert all(f"| `{kind.value}` |" in page for kind in Kind)
    assert len(Kind) >= 25
