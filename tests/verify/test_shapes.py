"""Worthless copies: the form stays, every value changes."""

import json

import pytest

from skill2env.verify.shapes import SHAPES, constant, garbage, hollow, is_code

TEXT = "an object with `count` and `names`"


def test_json_keeps_stated_keys_and_no_value() -> None:
    true = b'{"count": 3, "names": ["a", "b"], "zoe": 1}'
    assert json.loads(constant("x.json", true, TEXT) or b"") == {"count": 0, "names": ["x"]}
    assert json.loads(hollow("x.json", true, TEXT) or b"") == {"count": 0, "names": []}


@pytest.mark.parametrize("true", [b'{"count": 0}', b"[]", b"[true]", b'[""]', b'{"names": []}'])
def test_a_value_that_is_the_constant_already_changes_too(true: bytes) -> None:
    assert json.loads(constant("x.json", true, TEXT) or b"") != json.loads(true)


def test_tables_have_another_number_of_rows() -> None:
    assert constant("x.csv", b"job,n\na,1\nb,2\n", TEXT) == b"job,n\nx,0\n"
    assert constant("x.csv", b"job,n\na,1\n", TEXT) == b"job,n\nx,0\nx,0\n"
    assert hollow("x.csv", b"job,n\na,1\n", TEXT) == b"job,n\n"


def test_entries_keep_their_names_and_texts_nothing() -> None:
    assert constant("x.txt", b"total: 12\nbest: ada\n", TEXT) == b"total: 0\nbest: x\n"
    assert garbage("x.html", b"<b>Total 12</b>", TEXT) == b"<x>x 0</x>"


@pytest.mark.parametrize("name", sorted(SHAPES))
@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00", b"\n\n", b"{", b"a,b\n", b'"\n'])
def test_any_content_has_a_form_or_none(name: str, data: bytes) -> None:
    SHAPES[name]("x.csv", data, TEXT)


def test_programs_are_known_by_name_and_first_line() -> None:
    assert is_code("/app/tool", b"#!/bin/sh\n")
    assert is_code("/app/Makefile", b"")
    assert not is_code("/app/notes.txt", b"import os")
