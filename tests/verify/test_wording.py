"""What an instruction settles about the form of a file: in doubt it has asked for it."""

import pytest

from skill2env.verify.wording import Wording

OUT = "/app/out/a.txt"


def wording(text: str, path: str = OUT, others: tuple[str, ...] = ()) -> Wording:
    return Wording(text, path, (path, *others))


@pytest.mark.parametrize(
    ("text", "free"),
    [
        (f"Write `{OUT}`. Row order is up to you.", True),
        (f"Write `{OUT}` with one row per image in any order.", True),
        (f"Write `{OUT}`. The order of the lines does not matter.", True),
        (f"Write `{OUT}` in any order, ties sorted by name.", False),
        (f"Write `{OUT}` sorted by name.", False),
        (f"Write `{OUT}`.", False),
    ],
)
def test_a_free_order(text: str, free: bool) -> None:
    assert wording(text).order_free is free


def test_what_is_said_of_another_file_does_not_count() -> None:
    text = f"Write `{OUT}` in any order. Write `/app/out/b.txt`, sorted."
    assert wording(text, others=("/app/out/b.txt",)).order_free
    assert not wording(text, "/app/out/b.txt", (OUT,)).order_free


@pytest.mark.parametrize(
    "text",
    [
        "It is compared byte for byte.",
        "Copy it verbatim.",
        "Lines look exactly like the sample.",
        "Its sha256 counts.",
    ],
)
def test_exact_text(text: str) -> None:
    assert wording(f"Write `{OUT}`. {text}").exact


@pytest.mark.parametrize("text", ["Use exactly this arithmetic.", "One byte per sample.", "Plain text."])
def test_no_exact_text(text: str) -> None:
    assert not wording(f"Write `{OUT}`. {text}").exact


def test_an_open_layout() -> None:
    assert wording(f"Put a readable list of who sits where into `{OUT}`.").shape_open
    assert not wording(f"Put a readable list into `{OUT}`, one name per line.").shape_open
    assert not wording(f"Put a readable list into `{OUT}`:\n\n```\na: b\n```\n").shape_open
    assert not wording(f"Write the sums to `{OUT}`.").shape_open
