"""The fault catalogue: every operator does what it says, and every site is a clean, reversible edit."""

import inspect
import shlex
import statistics
import textwrap
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.authors.code.faults.catalog import Kind
from skill2env.authors.code.faults.operators import OPERATORS
from skill2env.authors.code.faults.sites import find_sites
from skill2env.authors.code.faults.source import Edit, Source, parses
from skill2env.records import meanings

EXAMPLES: list[tuple[Kind, str, str]] = [
    (Kind.BOUNDARY, "return a < b", "return a <= b"),
    (Kind.BOUNDARY, "return 1 <= a < b", "return 1 < a < b"),
    (Kind.OFF_BY_ONE, "return a[2:]", "return a[3:]"),
    (Kind.OFF_BY_ONE, "return list(range(5))", "return list(range(4))"),
    (Kind.OFF_BY_ONE, "return a + 1", "return a + 0"),
    (Kind.SIGN, "return a + b", "return a - b"),
    (Kind.SIGN, "return -a", "return a"),
    (Kind.SCALE, "return a * 1000", "return a * 100"),
    (Kind.SCALE, "return a / b", "return a * b"),
    (Kind.THRESHOLD, "return a > 0.9", "return a > 1.4"),
    (Kind.THRESHOLD, "return a > 25", "return a > 20"),
    (Kind.DEFAULT, "return a.get('x', 0)", "return a.get('x', 1)"),
    (Kind.ORDERING, "return sorted(a, reverse=True)", "return sorted(a, reverse=False)"),
    (
        Kind.ORDERING,
        "return sorted(a, key=lambda i: (-i[0], i[1]))",
        "return sorted(a, key=lambda i: (i[0], i[1]))",
    ),
    (Kind.CONNECTIVE, "return 1 if a and b else 0", "return 1 if a or b else 0"),
    (Kind.CONNECTIVE, "return not a", "return a"),
    (Kind.MISSING_CASE, "return a in {'x', 'y', 'z'}", "return a in {'x', 'y'}"),
    (Kind.MISSING_CASE, "return a in ('x', 'y')", "return a in ('x',)"),
    (Kind.AGGREGATE, "return max(a)", "return min(a)"),
    (Kind.AGGREGATE, "return a[0]", "return a[-1]"),
    (Kind.TEXT, "return (a or b).strip().lower()", "return (a or b).lower()"),
    (Kind.TEXT, "return a.startswith(b)", "return a.endswith(b)"),
    (Kind.ROUNDING, "return round(a, 2)", "return round(a, 1)"),
    (Kind.ROUNDING, "return a / b", "return a // b"),
    (Kind.EARLY_EXIT, "for x in a:\n        continue", "for x in a:\n        break"),
    (Kind.ACCUMULATE, "a += b", "a = b"),
    (Kind.ALIAS, "return dict(a)", "return a"),
    (Kind.ALIAS, "return a.copy()", "return a"),
    (Kind.SPLITTING, "return a.split(':', 1)", "return a.rsplit(':', 1)"),
    (Kind.WRONG_KEY, "return a['start'] - a['stop']", "return a['stop'] - a['stop']"),
    (Kind.SWAPPED, "return f(a, b)", "return f(b, a)"),
    (Kind.FALLBACK, "return a or b", "return a"),
    (Kind.PATTERN, "return re.search('x', a)", "return re.match('x', a)"),
    (Kind.SET_LOGIC, "return a | b", "return a & b"),
    (Kind.SET_LOGIC, "return sorted(set(a))", "return sorted(a)"),
    (Kind.ENCODING, "return open(a, encoding='utf-8-sig')", 'return open(a, encoding="utf-8")'),
    (Kind.SEPARATOR, "return ', '.join(a)", 'return ",".join(a)'),
    (Kind.TIME_ZONE, "return a.astimezone(b)", "return a.replace(tzinfo=b)"),
    (Kind.TIME_ZONE, "return a.replace(tzinfo=b)", "return a.astimezone(b)"),
    (Kind.CALENDAR, "return a.weekday()", "return a.isoweekday()"),
    (Kind.CALENDAR, "return timedelta(days=a)", "return timedelta(hours=a)"),
    (Kind.ERROR_PATH, "if a:\n        raise b", "if a:\n        pass"),
    (Kind.RESOURCE, "return open(a, 'w')", 'return open(a, "a")'),
    (Kind.CACHE, "a.add(b)", "pass"),
    (Kind.MERGE_KEY, "return a.get((b, 1))", "return a.get((b,))"),
    (Kind.PRECEDENCE, "return {**a, **b}", "return {**b, **a}"),
    (Kind.NUMBER_AS_TEXT, "return int(a) < int(b)", "return str(a) < str(b)"),
    (Kind.NONE_OR_EMPTY, "return 1 if a is None else 2", "return 1 if not a else 2"),
    (Kind.FILTER, "return [x for x in a if x]", "return [x for x in a]"),
]


def _function(body: str) -> str:
    return f"def g(a, b):\n    {body}\n"


@pytest.mark.parametrize(("kind", "before", "after"), EXAMPLES)
def test_operator(kind: Kind, before: str, after: str) -> None:
    source = Source(_function(before))
    made = {source.apply(site.edit) for site in find_sites("m.py", source) if site.kind is kind}
    assert _function(after) in made


def test_every_kind_has_an_operator_an_example_and_a_meaning() -> None:
    kinds = {kind for kind, _ in OPERATORS}
    assert kinds == set(Kind) == {kind for kind, _, _ in EXAMPLES}
    assert len(kinds) >= 12
    assert all(meanings(Kind)[kind.value] for kind in Kind)


@pytest.mark.parametrize("module", [statistics, textwrap, shlex], ids=lambda module: module.__name__)
def test_sites_of_real_modules(module: ModuleType) -> None:
    text = inspect.getsource(module)
    source = Source(text)
    sites = find_sites("m.py", source)
    assert len(sites) > 20
    assert sites == find_sites("m.py", Source(text))
    assert len({site.key for site in sites}) == len(sites)
    for site in sites:
        broken = source.apply(site.edit)
        assert broken != text
        assert parses(broken)
        back = Edit(
            site.edit.start,
            site.edit.start + len(site.edit.text.encode()),
            source.data[site.edit.start : site.edit.end].decode(),
        )
        assert Source(broken).apply(back) == text


@given(st.text(alphabet="aé€😀 #'+-<\n", max_size=12), st.integers(0, 9))
def test_offsets_count_bytes(comment: str, number: int) -> None:
    clean = " ".join(comment.split())
    text = f'NAME = "{clean.replace(chr(39), "")}"  # {clean}\n\n\ndef g(a):\n    return a < {number}  # {clean}\n'
    source = Source(text)
    made = [source.apply(site.edit) for site in find_sites("m.py", source) if site.kind is Kind.BOUNDARY]
    assert made == [text.replace(f"a < {number}", f"a <= {number}")]


@pytest.mark.parametrize(
    "body",
    [
        'raise ValueError("a < b")',
        'print(f"{a < 1}")',
        "log.info(a[0])",
        "assert a < b",
        "x: list[int] = None",
        '"""a or b"""',
    ],
)
def test_messages_docs_and_annotations_stay(body: str) -> None:
    assert find_sites("m.py", Source(_function(body))) == []


def test_the_main_guard_stays() -> None:
    assert find_sites("m.py", Source('if __name__ == "__main__":\n    run(1 < 2)\n')) == []


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        Source("abc = 1\n").apply(Edit(0, 3, "x"), Edit(2, 5, "y"))
