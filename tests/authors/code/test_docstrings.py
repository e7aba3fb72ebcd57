"""Calls in docstrings become cases when their arguments are literals, and nothing else does."""

from pathlib import Path

import pytest

from skill2env.authors.code.docstrings import shown_in_docstrings
from skill2env.authors.code.understand import understand
from skill2env.ingest import load_skill

HEAD = "---\nname: examples\ndescription: Show examples.\nlicense: MIT\n---\n\n# Examples\n\nText.\n"
CODE = '''
"""Tools.

>>> area(2, 3)
6
"""


def area(width, height=1, *, unit="cm"):
    """Area of a plate.

    >>> area(2.5, height=4)
    10.0
    >>> sizes = {"a": (1, 2), "b": {3}}
    >>> area(sizes, unit=None)
    >>> tool.area([1, -2])
    >>> print(area(b"x", area(7)))
    >>> area(open("x"))
    >>> area(*sizes)
    >>> area(**sizes)
    >>> other(1)
    >>> sizes = open("y")
    >>> area(sizes)
    >>> if (
    >>> area(2, 3)
    """
    return width


class Plate:
    """A plate.

    >>> area(11)
      odd indentation
    >>> Plate().area(1)
    """

    def area(self, n):
        return n
'''


def found(folder: Path, code: str) -> list[tuple[tuple[object, ...], dict[str, object]]]:
    (folder / "SKILL.md").write_text(HEAD)
    (folder / "tool.py").write_text(code)
    cases = shown_in_docstrings(understand(load_skill(folder), folder))
    assert all((case.file, case.name, case.test) == ("tool.py", "area", "documentation") for case in cases)
    return [(case.args, dict(case.kwargs)) for case in cases]


def test_calls_with_literals_are_taken(tmp_path: Path) -> None:
    sizes = {
        "$": "dict",
        "v": [["a", {"$": "tuple", "v": [1, 2]}], ["b", {"$": "set", "v": [3]}]],
    }
    assert found(tmp_path, CODE) == [
        ((2, 3), {}),
        (({"$": "float", "v": "2.5"},), {"height": 4}),
        ((sizes,), {"unit": None}),
        (([1, -2],), {}),
        ((7,), {}),
        ((11,), {}),
    ]


@pytest.mark.parametrize(
    "doc",
    [
        ">>>area(1)",
        ">>> area(" + "(" * 500 + ")" * 500 + ")",
        ">>> area(" + "9" * 100_000 + ")",
        ">>> \\0",
        ">>> area('''x",
    ],
)
def test_odd_examples_do_no_harm(tmp_path: Path, doc: str) -> None:
    assert found(tmp_path, f'def area(n):\n    r"""Text.\n\n    {doc}\n    """\n') == []
