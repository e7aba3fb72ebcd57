"""The quick reader says what the parser says, or nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skill2env.ingest import yaml_block
from skill2env.ingest.simple_block import Simple, read_simple
from skill2env.ingest.yaml_block import BadYaml, Block, parse

PIECES = st.sampled_from([
    "name", "key", "a", "b c", ": ", ":", " ", "  ", "- ", "#", " #", "[", "]", ", ", '"', "'", "{", "}", "|", ">-",
    "true", ": a\n  b", "yes", "null", "~", "1.0", "1.2.3", "2026-01-01", "\n", "\n  ", "\n  ",
    ": >-\n  ", ": |\n  ", ": >\n ", "\n- ", "\t", "&x", "*x", "!t", "?", "%", "@",
    "é", "\\n", "---", "...",
])  # fmt: skip


def by_the_parser(block: str, monkeypatch: pytest.MonkeyPatch) -> Block | None:
    with monkeypatch.context() as patch:
        patch.setattr(yaml_block, "read_simple", lambda _: None)
        try:
            return parse(block)
        except BadYaml:
            return None


@settings(max_examples=600, deadline=None)
@given(st.lists(PIECES, max_size=24).map("".join))
def test_whatever_is_read_quickly_is_read_alike(block: str) -> None:
    simple = read_simple(block)
    if simple is not None:
        expected = by_the_parser(block, pytest.MonkeyPatch())
        assert expected == Block(simple.values, not_text=simple.not_text, multi_line=simple.multi_line)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.from_regex(r"[a-z][a-z-]{0,8}", fullmatch=True),
            st.from_regex(r"[A-Za-z(/\"'0-9\[][ -~]{0,24}", fullmatch=True),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["", "\n  inner: text\n  other: 12", "\n- one\n- two", "\n  - one", "\n"]),
)
def test_lines_of_any_text_are_read_alike(pairs: list[tuple[str, str]], after: str) -> None:
    block = "\n".join(f"{key}: {text}" for key, text in pairs) + ("\nlast:" + after if after else "")
    simple = read_simple(block)
    if simple is not None:
        expected = by_the_parser(block, pytest.MonkeyPatch())
        assert expected == Block(simple.values, not_text=simple.not_text, multi_line=simple.multi_line)


@pytest.mark.parametrize("style", [">", ">-", "|", "|-"])
@pytest.mark.parametrize("after", ["", "\n", "\n\n", "\nname: x", "\n  "])
def test_paragraphs_are_read_alike(style: str, after: str) -> None:
    block = f"about: {style}\n  One: line # kept\n  - and another{after}"
    simple = read_simple(block)
    assert simple is not None or after == "\n  "
    if simple is not None:
        expected = by_the_parser(block, pytest.MonkeyPatch())
        assert expected == Block(simple.values, not_text=simple.not_text, multi_line=simple.multi_line)


def test_common_blocks_are_read_quickly() -> None:
    block = (
        'name: sums\ndescription: "Adds: numbers"\nversion: 1.2.3\ntags: [a, b-c, 3]\n'
        "metadata:\n  author: x\n  since: 2026\n"
        "allowed-tools:\n- Read\n- Bash\n"
    )
    assert read_simple(block) == Simple(
        {
            "name": "sums", "description": "Adds: numbers", "version": "1.2.3", "tags": ["a", "b-c", "3"],
            "metadata": {"author": "x", "since": "2026"}, "allowed-tools": ["Read", "Bash"],
        },
        {"tags": "list", "metadata": "map", "allowed-tools": "list"},
        set(),
    )  # fmt: skip


@pytest.mark.parametrize(
    "block",
    [
        "",
        "a",
        "a: b: c",
        "a: b #c",
        "a: null",
        "a: 1",
        "a: |",
        "a: b\n  c: d",
        "a: b\n\n  c",
        "a: b\n  - c",
        "a: x\na: y",
        "a: \tb",
        "yes: a",
        'a: "\\n"',
        "a:",
    ],
)
def test_the_rest_is_left_to_the_parser(block: str) -> None:
    assert read_simple(block) is None
