"""Other spellings of a file: equal in meaning, and left alone where the instruction asks for a form."""

import csv
import json

import pytest

from skill2env.verify.rewriting import REWRITINGS, rewritten
from skill2env.verify.wording import Wording

BY_NAME = {rewriting.name: rewriting for rewriting in REWRITINGS}


def other(name: str, path: str, text: str, instruction: str = "Write it.") -> str | None:
    found = rewritten(BY_NAME[name], {path: text.encode()}, {path: Wording(instruction, path, [path])})
    return found[path].decode() if found else None


DOCUMENT = '{\n "b": [1, 2.50],\n "a": {"z": "ü", "y": null}\n}\n'.replace("2.50", "2.5")


@pytest.mark.parametrize("name", ["json-layout", "json-keys", "json-escapes", "json-end"])
def test_a_document_keeps_its_meaning(name: str) -> None:
    text = other(name, "/a.json", DOCUMENT)
    assert text is not None
    assert text != DOCUMENT
    assert json.loads(text) == json.loads(DOCUMENT)


def test_keys_are_turned_at_every_depth() -> None:
    text = other("json-keys", "/a.json", DOCUMENT)
    assert text is not None
    assert [*json.loads(text)] == ["a", "b"]
    assert [*json.loads(text)["a"]] == ["y", "z"]


@pytest.mark.parametrize(
    ("name", "instruction"),
    [
        ("json-layout", "Indent it by two blanks."),
        ("json-keys", "Keys are sorted."),
        ("json-escapes", "Write UTF-8."),
        ("json-end", "No trailing newline."),
        ("json-layout", "It is compared byte for byte."),
    ],
)
def test_a_form_that_is_asked_for_stays(name: str, instruction: str) -> None:
    assert other(name, "/a.json", DOCUMENT, instruction) is None


def test_numbers_that_would_not_survive_are_left_alone() -> None:
    assert other("json-layout", "/a.json", '{"a": 1.50}') is None
    assert other("json-layout", "/a.json", '{"a": 1e5}') is None
    assert (
        other("json-numbers", "/a.json", '{"a": 3.0, "b": 1.5, "c": "3.0"}')
        == '{"a": 3, "b": 1.5, "c": "3.0"}'
    )
    assert other("json-numbers", "/a.json", '{"a": 3.0}', "With one decimal.") is None


def test_entries_in_a_free_order() -> None:
    text = '[{"n": 1, "path": [1, 2]}, {"n": 2, "path": [3]}]'
    assert other("json-rows", "/a.json", text) is None
    free = other("json-rows", "/a.json", text, "Write `/a.json`. List order is free.")
    assert free is not None
    assert json.loads(free) == [{"n": 2, "path": [3]}, {"n": 1, "path": [1, 2]}]


TABLE = 'a,b\n1,"x, y"\n2,z\n'


@pytest.mark.parametrize("name", ["csv-quotes", "csv-line-ends", "csv-end"])
def test_a_table_keeps_its_meaning(name: str) -> None:
    text = other(name, "/a.csv", TABLE)
    assert text is not None
    assert text != TABLE
    assert list(csv.reader(text.splitlines())) == list(csv.reader(TABLE.splitlines()))


def test_rows_move_only_where_nothing_sounds_like_an_order() -> None:
    assert other("csv-rows", "/a.csv", TABLE, "Write `/a.csv` in any order.") == 'a,b\n2,z\n1,"x, y"\n'
    assert other("csv-rows", "/a.csv", TABLE, "Write `/a.csv`.") is None
    assert other("csv-rows-likely", "/a.csv", TABLE, "Write `/a.csv`.") == 'a,b\n2,z\n1,"x, y"\n'
    assert other("csv-rows-likely", "/a.csv", TABLE, "Write `/a.csv`, first things first.") is None


def test_texts_with_an_open_layout() -> None:
    assert other("text-layout", "/a.txt", "x\ny\n", "Put a readable list into `/a.txt`.") == "- x\n\n- y\n\n"
    assert other("text-end", "/a.txt", "x\n", "Put a readable list into `/a.txt`.") == "x"
    assert other("text-end", "/a.txt", "x\n", "Write `/a.txt`, one name per line.") is None
    assert other("text-end-likely", "/a.txt", "x\n", "Write `/a.txt`, one name per line.") == "x"
    assert other("text-end", "/a.py", "x\n") is None
    assert other("text-end", "/a.txt", "\n") is None
