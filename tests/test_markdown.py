import pytest

from skill2env.markdown import cell, inert


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<img src=x onerror=a()>", "&lt;img src=x onerror=a()&gt;"),
        ("[here](javascript:a())", "[here]\\(javascript:a())"),
        ("R&D\n of\t it", "R&amp;D of it"),
        ("plain words", "plain words"),
    ],
)
def test_text_of_strangers_stays_text(text: str, shown: str) -> None:
    assert inert(text) == shown


def test_a_cell_ends_no_column() -> None:
    assert cell("a|b") == "a\\|b"
