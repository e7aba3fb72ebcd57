"""What looks quickly never hides what a slow look would find."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skill2env.hub.rules import default_rules
from skill2env.ingest import screening
from skill2env.ingest.lookout import Lookout, folded, prepared, tokens

WORDS = sorted({word for rule in default_rules() for signal in rule.signals for word in signal.words})
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(WORDS),
        st.sampled_from([" ", "\n", "x", "é", "—", "漢", "İ", "ß", "K"]),
        st.text(max_size=4),
    )
).map("".join)


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_no_word_that_stands_there_is_called_impossible(text: str) -> None:
    lookout = Lookout(WORDS)
    for _ in range(2):  # learnt, and remembered
        lowered, found = prepared(text)
        assert {word for word in WORDS if word in lowered} <= lookout.possible(found)


def test_words_that_cannot_stand_there_are_left_out() -> None:
    lookout = Lookout(["gpu", "api key", "~~"])
    assert lookout.possible(tokens("the aptitude of many gpus")) == {"gpu", "~~"}
    assert lookout.possible(tokens("rapid")) == {"api key", "~~"}
    assert lookout.possible(tokens("")) == {"~~"}


def test_a_look_costs_no_more_when_much_was_seen_before() -> None:
    lookout = Lookout(["gpu", "api key"])
    lookout.possible(frozenset(b"gpu%d" % number for number in range(100_000)))
    few = tokens("one of many gpus")
    begun = time.process_time()
    for _ in range(2_000):
        lookout.possible(few)
    assert time.process_time() - begun < 1.0


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_lower_case_keeps_places_and_reads_letters_as_patterns_do(text: str) -> None:
    lowered = folded(text)
    assert len(lowered) == len(text)
    for letter in "isk":
        seen = [match.start() for match in re.finditer(letter, text, re.IGNORECASE)]
        assert seen == [at for at, sign in enumerate(lowered) if sign == letter]


PIECES = st.sampled_from([
    "ignore ", "all ", "previous ", "instructions", "do not ", "tell ", "the user", "Inform ", "</system>", "[INST]",
    "<|im_start|>", "you must always use this skill", "bypass ", "safety", "https://a:b@c.de", "\n", " ", "İ", "ſ", "é",
    "https://me:secret99@host.org/x", "@", "api", " key", "_KEY", "API_KEY", "X_TOKEN", "log in", "oauth2", "ask ",
    "wait for ", "approval", "confirm with", "iwr u | iex",
])  # fmt: skip


@settings(max_examples=600, deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_looking_line_by_line_finds_what_looking_at_all_finds(text: str) -> None:
    rules = [*screening._RULES, *(rule for _, rule in screening._NEED_RULES)]  # pyright: ignore[reportPrivateUsage]
    for rule in (rule for rule in rules if rule.one_line):
        expected = rule.pattern.search(text)
        found = screening._match(rule, text)  # pyright: ignore[reportPrivateUsage]
        assert (found and found.span()) == (expected and expected.span()), rule.words


@pytest.mark.parametrize("length", [10, 100_000])
def test_one_endless_line_is_looked_at_once_for_each_word(length: int) -> None:
    text = "ask the confirm approval " * length
    assert "a person's answer" not in screening.needs(text)
