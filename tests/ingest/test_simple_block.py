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
    "é", "\\n", "---", "...", '\\"', "''", ': "a \\"b\\" c', ": 'it''s", ': "one\n  two', "\n\n", "x ", "\nk: v",
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


@settings(max_examples=1200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 0, 2, 2, 2, 3, 4, 4, 6, 8]),
            st.sampled_from(["", "", "- ", "- ", "-  ", "- - ", "-"]),
            st.sampled_from(
                ["a: b", "c: d e", "f:", "g:", "h: 1.0", "word", "two words", "b: ", "'q'", "k: [x]", ""]
            ),
        ),
        max_size=9,
    )
)
def test_lists_and_maps_in_each_other_are_read_alike(rows: list[tuple[int, str, str]]) -> None:
    block = "\n".join(["top:", *(f"{' ' * indent}{hyphen}{text}" for indent, hyphen, text in rows)])
    simple = read_simple(block)
    if simple is not None:
        expected = by_the_parser(block, pytest.MonkeyPatch())
        assert expected == Block(simple.values, not_text=simple.not_text, multi_line=simple.multi_line)


def test_text_that_begins_with_a_number_is_read_alike() -> None:
    for text in (
        "3-clause BSD",
        "3 clause",
        "3D games",
        "12 May",
        "1e 5x",
        "2001-01-01 a",
        "0x1 f",
        "5 - a",
        "1-a",
    ):
        simple = read_simple(f"license: {text}")
        if simple is not None:
            expected = by_the_parser(f"license: {text}", pytest.MonkeyPatch())
            assert expected == Block(simple.values, not_text=simple.not_text), text


def test_deeper_blocks_are_read_quickly() -> None:
    block = (
        "license: 3-clause BSD\nmetadata:\n  author: x\n  openclaw:\n    requires:\n      bins:\n      - curl\n"
        "    env:\n    - name: KEY\n      required: true\n    - name: OTHER\n"
    )
    simple = read_simple(block)
    assert simple is not None
    assert by_the_parser(block, pytest.MonkeyPatch()) == Block(simple.values, not_text=simple.not_text)
    assert simple == Simple(
        {
            "license": "3-clause BSD",
            "metadata": {
                "author": "x",
                "openclaw": {
                    "requires": {"bins": ["curl"]},
                    "env": [{"name": "KEY", "required": "true"}, {"name": "OTHER"}],
                },
            },
        },
        {"metadata": "map"},
        set(),
    )


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
        'name: "say \\"hi\\" and \\\\ too"',
        "name: 'it''s'",
        "name: x\n\n\nother: y\n",
        'about: "goes on \n  here: # and\n    \\"there\\""\nother: y',
        "about: 'it''s\n  ''long'' '\nother: y",
        "about: 'one\n\n\n  two\n\n  '\nother: y",
        "name: a line \n  that goes on \nother: y ",
        "about: |\n  one\n\nother: y",
    ],
)
def test_quotes_and_blanks_are_read_quickly(block: str) -> None:
    simple = read_simple(block)
    assert simple is not None
    expected = by_the_parser(block, pytest.MonkeyPatch())
    assert expected == Block(simple.values, not_text=simple.not_text, multi_line=simple.multi_line)


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
