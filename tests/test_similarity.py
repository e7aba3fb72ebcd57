import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.similarity import containment, jaccard, renamed_ratio, shingles, tokens, words

TEXTS = st.lists(st.sampled_from("red green blue one two".split()), max_size=12).map(" ".join)


def test_words_ignore_case_marks_and_underscores() -> None:
    assert words("Use `snake_case`, *Größe* 12!") == ["use", "snake", "case", "größe", "12"]


def test_shingles_of_short_and_empty_texts() -> None:
    assert shingles("a b c", 2) == {("a", "b"), ("b", "c")}
    assert shingles("a b", 5) == {("a", "b")}
    assert shingles("...") == frozenset()
    with pytest.raises(ValueError, match="at least one word"):
        shingles("a", 0)


def test_measures_by_hand() -> None:
    one, other = shingles("a b c d", 2), shingles("b c d e", 2)
    assert jaccard(one, other) == 2 / 4
    assert containment(one, other) == pytest.approx(2 / 3)
    assert jaccard(frozenset(), frozenset()) == containment(frozenset(), one) == 1
    assert jaccard(frozenset(), one) == containment(one, frozenset()) == 0


@given(TEXTS, TEXTS, st.integers(1, 4))
def test_laws(one: str, other: str, size: int) -> None:
    a, b = shingles(one, size), shingles(other, size)
    assert jaccard(a, a) == containment(a, a) == 1
    assert jaccard(a, b) == jaccard(b, a)
    assert 0 <= jaccard(a, b) <= min(containment(a, b), containment(b, a)) <= 1


def test_exchanged_names_are_the_same_text() -> None:
    one = tokens(
        "Sum the crates of each shelf. A shelf with 3 crates or more is full; write each shelf and its crates."
    )
    other = tokens(
        "Sum the hives of each field. A field with 90 hives or more is full; write each field and its hives."
    )
    assert renamed_ratio(one, other) == 1
    assert (
        renamed_ratio(one, tokens("Draw a map of the river that shows all of its seven bridges in red."))
        < 0.4
    )
    assert renamed_ratio((), ()) == 1
    assert renamed_ratio(one, ()) == 0


def test_tokens_are_bounded_words_marks_and_numbers() -> None:
    assert tokens("Read /a_b.csv: 12,5!") == ("read", "/", "a", "b", ".", "csv", ":", "0", ",", "0", "!")
    assert len(tokens("x " * 5000)) == 1200
