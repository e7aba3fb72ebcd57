import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.shingling import number_shingles, overlap, overlap_bounds, split_words
from skill2env.similarity import shingles, words

ANY_TEXT = st.text(st.one_of(st.characters(), st.sampled_from("aB1_- \n\t’—İßｘ١\u0301\x1c")), max_size=80)
FEW_WORDS = st.lists(st.sampled_from("red green blue one two".split()), max_size=14).map(" ".join)


@given(ANY_TEXT)
def test_words_are_those_of_similarity(text: str) -> None:
    assert [word.decode("utf-8", "surrogatepass") for word in split_words(text)] == words(text)


@given(FEW_WORDS, FEW_WORDS, st.integers(1, 5))
def test_shingles_are_those_of_similarity(one: str, other: str, size: int) -> None:
    mine, theirs = number_shingles(one, size), number_shingles(other, size)
    assert len(mine) == len(shingles(one, size))
    assert overlap(mine, theirs) == overlap(theirs, mine) == len(shingles(one, size) & shingles(other, size))
    assert (np.sort(mine) == mine).all()


@given(FEW_WORDS.filter(bool), st.lists(FEW_WORDS.filter(bool), min_size=1, max_size=5))
def test_bounds_are_never_too_low(one: str, others: list[str]) -> None:
    mine, sets = number_shingles(one, 2), [number_shingles(other, 2) for other in others]
    bounds = overlap_bounds(mine, sets)
    assert all(bound >= overlap(mine, item) for bound, item in zip(bounds, sets, strict=True))


def test_a_short_text_is_no_part_of_a_longer_one() -> None:
    assert overlap(number_shingles("a b c", 5), number_shingles("a b", 5)) == 0
    assert len(number_shingles("...", 5)) == 0
    with pytest.raises(ValueError, match="at least one word"):
        number_shingles("a", 0)
