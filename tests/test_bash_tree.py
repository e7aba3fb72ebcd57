"""Parsing strangers' scripts neither ends nor holds up the process."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env import bash_tree
from skill2env.verify.static import bash

PIECES = (
    "<< <<- <<< $( ) ( { } ` ' \" \\ EOF $ ${ # [[ ]] =~ ~ case esac in ;; if fi a = * @ % : - | & > < ! 0 ^ ,"
).split()


@pytest.mark.parametrize("character", ["\U000d8c4c", "\U0010ea33", "\uffff", "\u0100", "\x80"])
@pytest.mark.parametrize("before", ["{", "${", "$", "", "<<", "#", "((", "[["])
def test_characters_beyond_the_tables_of_the_c_library(before: str, character: str) -> None:
    assert bash_tree.parse(f"{before}{character}".encode()) is not None


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=60))
def test_any_pieces_are_survived(pieces: list[str]) -> None:
    bash.read("".join(pieces))


def test_words_keep_their_characters() -> None:
    (command,) = bash.read("echo 'grün' \"käse $x\" brücke\n").commands
    assert command.words == ("echo", "grün", "käse $x", "brücke")
    assert bash.read("x=né; echo $x\n").commands[0].words == ("echo", "né")


def test_offsets_count_bytes() -> None:
    script = "echo é\nls\n".encode()
    root = bash_tree.parse(script)
    assert root is not None
    assert [script[node.start_byte : node.end_byte] for node in root.named_children] == [
        "echo é".encode(),
        b"ls",
    ]


@pytest.mark.parametrize("unit", ["a|", "$(", "(", "\0", "{ ", "cat <<E\n", "case a in b) ", "$a"])
def test_repeated_patterns_end_soon(unit: str) -> None:
    """None or a tree, but not minutes: without the limit on steps the first one needs hours."""
    bash.read(unit * 100_000)
    assert bash_tree.parse(b"a|" * 100_000) is None


def test_long_plain_scripts_are_read() -> None:
    rng = random.Random(3)
    lines = [f"cp file{rng.randrange(9)} out{number} && echo 'done {number}'" for number in range(5_000)]
    assert len(bash.read("\n".join(lines)).commands) == 10_000
