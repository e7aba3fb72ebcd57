"""Variants: well formed, distinct, near, and the same every time."""

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skill2env.authors.code.cases import Case, well_formed
from skill2env.authors.code.templates.tagged_values import Encoder
from skill2env.authors.code.vary import palette, variants

PLAIN = st.recursive(
    st.booleans() | st.integers(-1000, 1000) | st.floats(-1e6, 1e6) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, min_size=1, max_size=3)
    ),
    max_leaves=6,
)


def case_of(*args: Any) -> Case:
    return Case("function", "m.py", "f", tuple(Encoder(lambda _: None).encode(arg) for arg in args))


@given(st.lists(PLAIN, min_size=1, max_size=3), st.integers(0, 99))
def test_variants(args: list[Any], seed: int) -> None:
    case = case_of(*args)
    donors = palette([case], (0.9, 25), ("loss", "gain"))
    found = variants(case, donors, random.Random(seed), 8)
    again = variants(case, palette([case], (0.9, 25), ("loss", "gain")), random.Random(seed), 8)
    assert [item.id for item in found] == [item.id for item in again]
    assert len({item.id for item in found}) == len(found) <= 8
    for item in found:
        assert item.id != case.id
        assert item.origin == case.id
        assert len(item.args) == len(case.args)
        assert well_formed(list(item.args))


def test_numbers_move_to_the_limits_of_the_code() -> None:
    case = case_of(7.0)
    found = variants(case, palette([case], (0.9,), ()), random.Random(1), 40)
    assert {"0.89", "0.9", "0.91"} & {item.args[0]["v"] for item in found}


def test_tables_keep_their_header() -> None:
    table = {"$": "file", "name": "t.csv", "text": "id,weight\na,1\nb,2\nc,3\n", "as": "path"}
    case = Case("command", "m.py", args=("--input", table))
    texts = [item.args[1]["text"] for item in variants(case, palette([case], (), ()), random.Random(3), 30)
             if isinstance(item.args[1], dict)]  # fmt: skip
    assert len(set(texts)) > 8
    assert all(text.startswith("id,weight\n") for text in texts)


def test_nothing_to_vary() -> None:
    case = Case("command", "m.py")
    assert variants(case, palette([case], (), ()), random.Random(0), 5) == []
