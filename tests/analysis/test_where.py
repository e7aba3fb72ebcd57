"""Filters."""

from pathlib import Path
from typing import Any

import pytest

from skill2env.analysis.reading import read_corpus
from skill2env.analysis.where import parse_where, select
from skill2env.errors import UserError


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        ([], "a b c"),
        (["domain=cybersecurity"], "a"),
        (["domain!=cybersecurity"], "b c"),
        (["licence=mit|bsd*"], "a b"),
        (["axis.tone=terse"], "a c"),
        (["tone=terse", "license=MIT"], "a"),
        (["skill=pdf-*"], "b"),
        (["persona=unknown"], "a b c"),
        (["name=org/c"], "c"),
        (["language=shell"], "a b c"),
    ],
)
def test_filters(make_task: Any, tmp_path: Path, filters: list[str], kept: str) -> None:
    make_task("a", domain="cybersecurity", axes={"tone": "terse"})
    make_task("b", licence="BSD-3-Clause", skill="pdf-forms")
    make_task("c", licence="GPL-3.0-only", axes={"tone": "terse"})
    found = select(read_corpus(tmp_path / "data").tasks, parse_where(filters))
    assert [task.key for task in found] == kept.split()


@pytest.mark.parametrize("text", ["domain", "domain=", "colour=red", "=x", ""])
def test_what_is_no_filter(text: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_where([text])
    assert caught.value.hint
