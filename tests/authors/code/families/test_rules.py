"""Rules of migration: what they say of recorded data and what their code does are the same."""

from typing import Any

import pytest

from skill2env.authors.code.cases import Case
from skill2env.authors.code.families.rules import RULES, Rule, camel
from skill2env.authors.code.templates.tagged_values import Encoder

BY_NAME = {rule.name: rule for rule in RULES}


def tagged(value: Any) -> Any:
    return Encoder(lambda _: None).encode(value)


def by_code(rule: Rule, value: Any) -> Any:
    """What the reference solution makes of a returned value."""
    body = rule.body.format(call="_old(value)", old="_old")
    names: dict[str, Any] = {}
    exec(f"def _old(value):\n    return value\n\n{rule.helper}\n\ndef new(value):\n{body}", names)
    return names["new"](value)


VALUES: dict[str, list[Any]] = {
    "camel-case keys": [
        {"gene_symbol": 1, "a": [{"x_y_z": ({"p_q": 2},)}]},
        {"_private": 1, "trailing_": 2, "A_B": 3, "a__b": 4, "n_1": 5, 7: 8},
        [],
    ],
    "numbers as text": [{"a": 1.23456, "b": [2.0, (3.5, 1)], "c": True, "d": "1.0"}, 0.0005, float("inf"), 3],
    "rows to columns": [[{"a": 1, "b": 2}, {"b": 3, "a": 4}], [], [{"a": None}]],
    "envelope": [None, {"a": 1}, 3.5],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in VALUES.items() for value in values]
)
def test_words_on_data_and_code_agree(name: str, value: Any) -> None:
    rule = BY_NAME[name]
    changed = rule.change(Case("function", "m.py", "f"), {"value": tagged(value)}, ())
    assert changed is not None
    assert changed[1]["value"] == tagged(by_code(rule, value))


def test_every_rule_says_what_function_it_is_about() -> None:
    assert len(BY_NAME) == 5
    assert all("`f`" in rule.words.format(function="`f`") for rule in RULES)


def test_rules_that_do_not_fit() -> None:
    case = Case("function", "m.py", "f", (1,))
    assert BY_NAME["rows to columns"].change(case, {"value": tagged([{"a": 1}, {"b": 1}])}, ()) is None
    assert BY_NAME["rows to columns"].change(case, {"value": 3}, ()) is None
    assert BY_NAME["camel-case keys"].change(case, {"raised": "ValueError"}, ()) is None
    assert BY_NAME["camel-case keys"].change(case, {"value": tagged({"not an_identifier": 1})}, ()) is None
    assert BY_NAME["one request"].change(case, {"value": 1}, ()) is None


def test_errors_become_answers() -> None:
    changed = BY_NAME["envelope"].change(Case("function", "m.py", "f"), {"raised": "KeyError"}, ())
    assert changed is not None
    assert changed[1] == {"value": tagged({"ok": False, "error": "KeyError"})}


def test_one_request_holds_all_arguments() -> None:
    case = Case("function", "m.py", "f", (1, "x"), {"c": 3})
    changed = BY_NAME["one request"].change(case, {"value": 1}, ("a", "b", "c"))
    assert changed is not None
    assert changed[0].args == (tagged({"a": 1, "b": "x", "c": 3}),)


@pytest.mark.parametrize(
    ("before", "after"),
    [("a_b", "aB"), ("_a_b", "_aB"), ("a_", "a_"), ("a__b", "a__b"), ("A_B", "A_B"), ("x1_2", "x12"), (3, 3)],
)
def test_camel(before: Any, after: Any) -> None:
    assert camel(before) == after
