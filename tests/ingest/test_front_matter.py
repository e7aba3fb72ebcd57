# ruff: noqa: E501  # tables: one line a case
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skill2env.ingest.fields import first_paragraph, slugify
from skill2env.ingest.front_matter import read
from skill2env.ingest.text import decode, printable
from skill2env.ingest.yaml_block import BadYaml, parse


def values(block: str) -> dict[str, Any]:
    return read(f"---\n{block}\n---\nbody", "SKILL.md").values


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("name: 123\nv: 1.10\nd: 2026-01-02\nb: yes\nn: ~", {"name": "123", "v": "1.10", "d": "2026-01-02", "b": "yes", "n": None}),
        ("name: x\ndescription: Use this: it is good", {"name": "x", "description": "Use this: it is good"}),
        ("name: x\ndescription: >- one line\n  and another", {"name": "x", "description": "one line and another"}),
        ("argument-hint: [a] [b]\nname: x", {"argument-hint": "[a] [b]", "name": "x"}),
        ("description: [Critical] do it", {"description": "[Critical] do it"}),
        ('description: "say "hi" now"', {"description": 'say "hi" now'}),
        ('description: "a\\xzz"', {"description": "a\\xzz"}),
        ("name: x\n  description: indented by mistake", {"name": "x", "description": "indented by mistake"}),
        ("description: >\nnot indented\nname: x", {"description": "not indented", "name": "x"}),
        ("metadata:\n  a: b: c\n  d: e\nname: x", {"metadata": {"a": "b: c", "d": "e"}, "name": "x"}),
        ("name: x\nname: y", {"name": "y"}),
        ("description: 'a --- b'", {"description": "a --- b"}),
        ("description: |\n  a\n  b\n", {"description": "a\nb\n"}),
        ("tags: [a, b]\nm: {k: v}", {"tags": ["a", "b"], "m": {"k": "v"}}),
        ('name: "a\\e[31m"', {"name": "a[31m"}),
        ("? [a, b]\n: c\nname: z", {"?": "c", "name": "z"}),
        ("name: !!python/object:os.system x", {"name": "x"}),
    ],
)  # fmt: skip
def test_values(block: str, expected: dict[str, Any]) -> None:
    assert values(block) == expected


def test_one_bad_line_costs_only_itself() -> None:
    found = read(
        "---\nname: x\ndescription: a: b\nallowed-tools: Read Bash\nmetadata:\n  k: v\n---\n", "SKILL.md"
    )
    assert found.values == {
        "name": "x",
        "description": "a: b",
        "allowed-tools": "Read Bash",
        "metadata": {"k": "v"},
    }
    assert [(item.code, item.where) for item in found.found] == [("unquoted-colon", "SKILL.md:3")]


@pytest.mark.parametrize(
    ("text", "name", "body"),
    [
        ("---\nname: x\n---\n\n# T\n---\nrule", "x", "# T\n---\nrule"),
        ("# T\n\n---\nname: x\n---\nbody", "x", "# T\n\nbody"),
        ("---\nname: x\n\n# Heading\ntext", "x", "# Heading\ntext"),
        ("---\nname: x\n...\nbody", "x", "body"),
        ("```markdown\n---\nname: x\ndescription: d\n---\nbody", "x", "body"),
        ("Text\n```yaml\n---\nname: example\n---\n```", None, "Text\n```yaml\n---\nname: example\n---\n```"),
        ("Text\n\n---\n\nmore text\n\n---\nend", None, "Text\n\n---\n\nmore text\n\n---\nend"),
        ("---\n---\nbody", None, "body"),
    ],
)
def test_where_the_block_is(text: str, name: str | None, body: str) -> None:
    found = read(text, "SKILL.md")
    assert (found.values.get("name"), found.body) == (name, body)


@pytest.mark.parametrize(
    "block",
    [
        "x: " + "[" * 30_000,
        "x: " + "{a: " * 10_000,
        "\n".join(" " * n + f"k{n}:" for n in range(300)),
        "a: &a [x]\n" + "\n".join(f"{n}: &{n} [*{m}{', *' + m}]" for m, n in zip("abcdefghijklmnopqrst", "bcdefghijklmnopqrstu", strict=True)),
        "a: &a " + "y" * 60_000 + "\nb: [" + "*a, " * 1000 + "]",
        "x: &x [*x]",
        "k: v\n" * 30_000,
        "- " * 20_000,
        "? " * 20_000,
        '"' * 60_000,
        "a: b: c\n" * 5_000,
    ],
    ids=["brackets", "braces", "indents", "bomb", "long-bomb", "cycle", "doubles", "lists", "keys", "quotes", "colons"],
)  # fmt: skip
def test_hostile_blocks_are_bounded(block: str) -> None:
    begun = time.process_time()
    found = read(f"---\n{block}\n---\n", "SKILL.md")
    assert time.process_time() - begun < 5
    assert len(repr(found.values)) < 3_000_000


yamlish = st.lists(
    st.sampled_from(["name", "description", ":", ": ", "\n", "---", "\n---\n", " ", "\t", "- ", "[", "]", "{", "}", "&a", "*a", "!!x", '"', "'", ">-", "|", "#", "?", "@", "`", "\\x", "\ud7ff", "é", "\u2028", "%", "x"]),
    max_size=60,
).map("".join)  # fmt: skip


@given(yamlish | st.text(max_size=300))
@settings(max_examples=400, deadline=None)
def test_no_text_fails(text: str) -> None:
    for whole in (text, f"---\n{text}\n---\nbody"):
        found = read(whole, "SKILL.md")
        assert isinstance(found.values, dict)
        assert all(item.message.isprintable() for item in found.found)


@given(st.dictionaries(st.from_regex(r"[a-z][a-z-]{0,12}", fullmatch=True), st.from_regex(r"[A-Za-z][A-Za-z ,.]{0,40}[A-Za-z]", fullmatch=True), min_size=1))  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_plain_values_come_back_as_written(fields: dict[str, str]) -> None:
    block = "\n".join(f"{key}: {value}" for key, value in fields.items())
    assert parse(block).values == {
        key: None if value in ("null", "Null", "NULL") else value for key, value in fields.items()
    }


def test_what_is_no_mapping_is_no_front_matter() -> None:
    for block in ("- a\n- b", "just words", "a: b\n- c"):
        with pytest.raises(BadYaml):
            parse(block)


@given(st.binary(max_size=600))
@settings(max_examples=300, deadline=None)
def test_any_bytes_decode(data: bytes) -> None:
    decoded = decode(data)
    assert "\r" not in decoded.text
    assert "\0" not in decoded.text
    decoded.text.encode()


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "utf-8-sig"])
def test_encodings_are_read(codec: str) -> None:
    text = "---\nname: größe\ndescription: Tells the size of a thing in a plain way.\n---\n"
    assert decode(text.encode(codec)).text == text


@given(st.text(max_size=200))
@settings(deadline=None)
def test_slugs_and_shown_text_are_safe(text: str) -> None:
    slug = slugify(text)
    assert 0 < len(slug) <= 64
    assert set(slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert printable(text, 50).isprintable()
    assert len(printable(text, 50)) <= 50


def test_slugs_differ_where_nothing_latin_is_left() -> None:
    assert slugify("Größe & Co.") == "grosse-co"
    assert slugify("数字") != slugify("文字")


def test_first_paragraph_skips_headings_tables_and_code() -> None:
    body = "# T\n\n```\ncode\n```\n\n| a |\n\nShort.\n\nThis is the first real\nparagraph of it.\n\nNot this."
    assert first_paragraph(body) == "This is the first real paragraph of it."
