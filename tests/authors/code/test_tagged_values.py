"""The tagged form: what is encoded comes back equal, and comparison forgives exactly what it says."""

import datetime as dt
import math
from argparse import Namespace
from collections import OrderedDict, defaultdict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.authors.code.cases import well_formed
from skill2env.authors.code.report import literal
from skill2env.authors.code.templates.tagged_values import Decoder, Encoder, Unsupported, canonical, same

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    | st.binary(max_size=8)
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.datetimes()
    | st.dates()
    | st.times()
    | st.timedeltas()
)
KEYS = st.text(max_size=4) | st.integers() | st.tuples(st.integers(), st.text(max_size=2))
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.sets(st.integers() | st.text(max_size=3), max_size=4)
        | st.frozensets(st.integers(), max_size=3)
    ),
    max_leaves=12,
)


def encode(value: Any) -> Any:
    return Encoder(lambda _: None).encode(value)


def decode(form: Any, work: Path = Path("/nowhere")) -> Any:
    return Decoder(Path("/root-of-project"), work, lambda file, name: (file, name)).decode(form)


@given(VALUES)
def test_round_trip(value: Any) -> None:
    form = encode(value)
    assert well_formed(form)
    back = decode(form)
    assert type(back) is type(value)
    assert back == value
    assert same(form, encode(back))
    assert canonical(form) == canonical(encode(value))


@given(VALUES, VALUES)
def test_comparison_agrees_with_equality(left: Any, right: Any) -> None:
    if same(encode(left), encode(right)):
        assert (
            repr(left) == repr(right)
            or left == right
            or isinstance(left, float | list | tuple | dict | set | frozenset)
        )
    else:
        # A set equals a frozenset of the same members, within a tuple too; they are not the same answer.
        assert (
            type(left) is not type(right) or left != right or repr(left) != repr(right) or "nan" in repr(left)
        )


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (0.1 + 0.2, 0.3, True),
        (1e300, 1e300 * (1 + 1e-12), True),
        (1.0, 1.0001, False),
        (math.nan, math.nan, True),
        (math.nan, 1.0, False),
        (math.inf, -math.inf, False),
        (1, 1.0, False),
        (True, 1, False),
        ([1, 2], (1, 2), False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({1, 2}, frozenset({1, 2}), False),
        ([1], [1, 2], False),
        ("a", b"a", False),
    ],
)
def test_same(left: Any, right: Any, equal: bool) -> None:
    assert same(encode(left), encode(right)) is equal
    assert same(encode(right), encode(left)) is equal


@pytest.mark.parametrize(
    "value", [object(), lambda: None, {"a": open}, Unsupported, "x" * 50_000, list(range(7000)), "\ud800"]
)
def test_what_has_no_form(value: Any) -> None:
    with pytest.raises(Unsupported):
        encode(value)


def test_deep_nesting_is_refused() -> None:
    value: list[Any] = []
    for _ in range(40):
        value = [value]
    with pytest.raises(Unsupported):
        encode(value)


def test_special_forms() -> None:
    assert encode(Namespace(b=1, a="x")) == {"$": "namespace", "v": [["a", "x"], ["b", 1]]}
    assert decode(encode(iter([]).__class__ and (i for i in (1, 2)))).__class__.__name__ == "list_iterator"
    assert encode(OrderedDict(a=1)) == encode({"a": 1}) == encode(defaultdict(int, a=1))
    assert decode(encode(Decimal("1.50"))).as_tuple().exponent == -2
    assert decode(encode(Fraction(1, 3))) == Fraction(1, 3)
    assert decode(encode(dt.timedelta(days=-1, microseconds=5))) == dt.timedelta(days=-1, microseconds=5)


def test_placed_inputs(tmp_path: Path) -> None:
    form = [
        {"$": "file", "name": "d/in.csv", "text": "a\n", "as": "path"},
        {"$": "folder", "name": "f", "files": {"x/y.txt": "z"}, "as": "str"},
        {"$": "fresh", "name": "out", "as": "path"},
        {"$": "root", "v": "data.csv", "as": "str"},
    ]
    assert well_formed(form)
    one, two, three, four = decode(form, tmp_path)
    assert one == tmp_path / "d/in.csv"
    assert one.read_text() == "a\n"
    assert (Path(two) / "x/y.txt").read_text() == "z"
    assert not three.exists()
    assert four == "/root-of-project/data.csv"


@pytest.mark.parametrize(
    "form",
    [
        {"$": "file", "name": "../x", "text": "", "as": "path"},
        {"$": "file", "name": "/etc/x", "text": "", "as": "path"},
        {"$": "file", "name": "x", "text": 3, "as": "path"},
        {"$": "folder", "name": "x", "files": {"../../y": ""}, "as": "str"},
        {"$": "fresh", "name": "x", "as": "bytes"},
        {"$": "dict", "v": [[1]]},
        {"$": "tuple", "v": "x"},
        {"$": "float", "v": 3},
        {"$": "object", "file": "a.py", "class": "A", "v": None},
        1.5,
        object(),
    ],
)
def test_malformed_forms_from_the_sandbox_are_refused(form: Any) -> None:
    assert not well_formed(form)
    assert not well_formed([form])


class FakeFrame:
    """Looks like a data frame to the encoder, which imports neither numpy nor pandas."""

    columns = ("a", "b")

    def to_dict(self) -> None: ...

    def __len__(self) -> int:
        return 2

    def __getitem__(self, name: str) -> "FakeFrame":
        return self

    def tolist(self) -> list[object]:
        return [1, 2.5]


FakeFrame.__module__ = "pandas.core"


def test_a_data_frame_is_its_columns_and_is_written_as_one() -> None:
    form = Encoder(lambda _: None).encode(FakeFrame())
    column = [1, {"$": "float", "v": "2.5"}]
    assert form == {"$": "frame", "v": [["a", column], ["b", column]]}
    assert well_formed(form)
    assert literal(form) == "__import__('pandas').DataFrame({'a': [1, 2.5], 'b': [1, 2.5]})"
    assert literal({"$": "array", "v": [1]}) == "__import__('numpy').array([1])"
    assert not well_formed({"$": "frame", "v": [[1, 2]]})
    assert not well_formed({"$": "array", "v": "x"})
