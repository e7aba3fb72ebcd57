"""The grader of tests: what it shows of the code, and how it scores."""

from typing import Any

import pytest

from skill2env.authors.code.templates import grade_checks

GOOD, MIXED = ["passed"] * 4, ["passed", "passed", "failed", "passed"]


@pytest.mark.parametrize(
    ("right", "known", "hidden", "scores"),
    [
        (GOOD, ["failed", "failed"], ["failed"] * 4, [1, 1, 1]),
        (GOOD, ["failed", "failed"], ["failed"] * 3 + ["passed"], [1, 1, 1]),
        (GOOD, ["failed", "passed"], ["failed", "passed", "passed", "passed"], [1, 0.5, 1 / 3]),
        (GOOD, ["failed", "passed"], ["passed"] * 4, [0, 0.5, 0]),
        (GOOD, ["passed", "passed"], ["passed"] * 4, [0, 0, 0]),
        (MIXED, ["failed", "failed"], ["failed"] * 4, [0, 0, 0]),
        (["stuck"] * 4, ["stuck", "stuck"], ["stuck"] * 4, [0, 0, 0]),
        (GOOD, ["stuck", "stuck"], ["stuck"] * 4, [0, 0, 0]),
        ([""] * 4, ["", ""], [""] * 4, [0, 0, 0]),
    ],
)
def test_score(right: list[str], known: list[str], hidden: list[str], scores: list[float]) -> None:
    assert grade_checks.score(right, known, hidden, 3) == scores


TEXT = '''"""Doc."""
from __future__ import annotations
LIMIT = 5


def light(weight: float) -> bool:
    return weight <= LIMIT
'''


@pytest.mark.parametrize("written_out", [False, True])
def test_a_sealed_module_does_the_same_and_shows_nothing(written_out: bool) -> None:
    text = grade_checks.sealed("m.py", TEXT, written_out)
    assert "LIMIT" not in text
    assert "weight" not in text
    names: dict[str, Any] = {"__name__": "m"}
    exec(text, names)
    assert (names["light"](5), names["light"](6), names["__doc__"]) == (True, False, "Doc.")


def test_a_wrong_version_differs_and_a_broken_file_stays() -> None:
    start = TEXT.encode().index(b"<=")
    text = grade_checks.shown("m.py", TEXT, {"m.py": [[start, start + 2, "<"]]}, written_out=False)
    names: dict[str, Any] = {"__name__": "m"}
    exec(text, names)
    assert names["light"](5) is False
    assert grade_checks.shown("m.py", "def (", {}, written_out=False) == "def ("
    assert grade_checks.shown("data.txt", "x", {}, written_out=True) == "x"
