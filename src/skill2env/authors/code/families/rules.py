"""Rules of migration: how a function's results or arguments change form, in words, on recorded data and as code.

Each rule is complete in its words: the new outcome of a recorded call follows from the old one and the rule alone.
Values are in the tagged form of `templates.tagged_values`.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# The values here are tagged JSON of any shape; `cases.well_formed` checks them where they come in.

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from skill2env.authors.code.cases import Case

type Changed = tuple[Case, Any] | None
"""The call in its new form and its right outcome; None when the rule says nothing about it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One change of form."""

    name: str
    words: str
    """What changes; ``{function}`` is the function's name in backquotes."""
    change: Callable[[Case, Any, Sequence[str]], Changed]
    """(recorded call, its outcome, parameter names) -> the call in the new form."""
    helper: str
    """Code of the reference solution, above the new function."""
    body: str
    """Body of the new function; ``{call}`` stands for the call of the old one, ``{old}`` for its name."""
    takes: str = ""
    """Parameters of the new function; empty to keep them."""


def _mapped(value: Any, leaf: Callable[[Any], Any], key: Callable[[Any], Any]) -> Any:
    """A tagged value with its keys and other parts replaced, through lists, tuples and dicts only."""
    if isinstance(value, list):
        return [_mapped(item, leaf, key) for item in value]
    tag = value.get("$") if isinstance(value, dict) else None
    if tag == "tuple":
        return {"$": "tuple", "v": [_mapped(item, leaf, key) for item in value["v"]]}
    if tag == "dict":
        return {"$": "dict", "v": [[key(pair[0]), _mapped(pair[1], leaf, key)] for pair in value["v"]]}
    return leaf(value)


def camel(text: Any) -> Any:
    """``gene_symbol`` -> ``geneSymbol``."""
    return (
        re.sub(r"(?<=[A-Za-z0-9])_([a-z0-9])", lambda m: m[1].upper(), text)
        if isinstance(text, str)
        else text
    )


def _camel_case(case: Case, outcome: Any, _: Sequence[str]) -> Changed:
    if "value" not in outcome:
        return None
    names: list[Any] = []
    new = _mapped(outcome["value"], lambda v: v, lambda key: (names.append(key), camel(key))[1])
    odd = any(isinstance(name, str) and "_" in name and not name.isidentifier() for name in names)
    return None if odd else (case, {**outcome, "value": new})


def _decimals(case: Case, outcome: Any, _: Sequence[str]) -> Changed:
    if "value" not in outcome:
        return None

    def text(value: Any) -> Any:
        is_float = isinstance(value, dict) and value.get("$") == "float"
        return format(float(value["v"]), ".3f") if is_float else value

    return case, {**outcome, "value": _mapped(outcome["value"], text, lambda k: k)}


def _envelope(case: Case, outcome: Any, _: Sequence[str]) -> Changed:
    if "value" in outcome:
        pairs = [["ok", True], ["value", outcome["value"]]]
        return case, {**outcome, "value": {"$": "dict", "v": pairs}}
    if set(outcome) == {"raised"}:
        return case, {"value": {"$": "dict", "v": [["ok", False], ["error", outcome["raised"]]]}}
    return None


def _columns(case: Case, outcome: Any, _: Sequence[str]) -> Changed:
    rows = outcome.get("value")
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and row.get("$") == "dict" for row in rows
    ):
        return None
    keys = [[pair[0] for pair in row["v"]] for row in rows]
    if any(sorted(map(str, found)) != sorted(map(str, keys[0])) for found in keys):
        return None
    if not all(isinstance(key, str) for key in (keys[0] if keys else [])):
        return None
    columns = [[key, [dict(row["v"])[key] for row in rows]] for key in (keys[0] if keys else [])]
    return case, {**outcome, "value": {"$": "dict", "v": columns}}


def _request(case: Case, outcome: Any, parameters: Sequence[str]) -> Changed:
    if len(case.args) > len(parameters) or "arguments" in outcome or "raised" in outcome:
        return None
    pairs = [[name, value] for name, value in zip(parameters, case.args, strict=False)]
    pairs += [[name, value] for name, value in sorted(case.kwargs.items())]
    return case.derived(({"$": "dict", "v": pairs},), {}), outcome


RULES: tuple[Rule, ...] = (
    Rule(
        name="camel-case keys",
        words=(
            "{function} names the fields of its result in the style of the new interface: in every dict of the result, at any depth "
            "inside lists, tuples and dicts, a key that is a text loses each underscore that stands between a letter or digit and a small "
            "letter or digit, and what follows becomes a capital (`first_name` becomes `firstName`). Values stay as they are."
        ),
        change=_camel_case,
        helper=(
            "def _camel(value):\n"
            '    """Keys of dicts in camel case, at any depth."""\n'
            "    import re\n\n"
            "    if isinstance(value, dict):\n"
            "        return {_camel_key(re, key): _camel(item) for key, item in value.items()}\n"
            "    if type(value) in (list, tuple):\n"
            "        return type(value)(_camel(item) for item in value)\n"
            "    return value\n\n\n"
            "def _camel_key(re, key):\n"
            "    if not isinstance(key, str):\n"
            "        return key\n"
            '    return re.sub(r"(?<=[A-Za-z0-9])_([a-z0-9])", lambda found: found[1].upper(), key)\n'
        ),
        body="    return _camel({call})\n",
    ),
    Rule(
        name="numbers as text",
        words=(
            "{function} hands on decimals as text: every float of its result, at any depth inside lists, tuples and dicts, becomes "
            'the text that Python\'s `format(x, ".3f")` gives. Whole numbers (int), truth values, keys and everything else stay as they are.'
        ),
        change=_decimals,
        helper=(
            "def _decimals(value):\n"
            '    """Floats as text with three digits, at any depth."""\n'
            "    if isinstance(value, float):\n"
            '        return format(value, ".3f")\n'
            "    if isinstance(value, dict):\n"
            "        return {key: _decimals(item) for key, item in value.items()}\n"
            "    if type(value) in (list, tuple):\n"
            "        return type(value)(_decimals(item) for item in value)\n"
            "    return value\n"
        ),
        body="    return _decimals({call})\n",
    ),
    Rule(
        name="rows to columns",
        words=(
            "{function} no longer returns a list with one dict a row but one dict with a list a field: each field name leads to the "
            "values of that field in the order of the rows. No rows give an empty dict."
        ),
        change=_columns,
        helper=(
            "def _columns(rows):\n"
            '    """Rows with equal fields as one list a field."""\n'
            "    return {key: [row[key] for row in rows] for key in (rows[0] if rows else ())}\n"
        ),
        body="    return _columns({call})\n",
    ),
    Rule(
        name="envelope",
        words=(
            '{function} answers with a dict in all cases: `{{"ok": True, "value": R}}` where R is what it returns today, and where it '
            'raises an exception today it returns `{{"ok": False, "error": N}}` instead, N being the name of the exception\'s class.'
        ),
        change=_envelope,
        helper="",
        body=(
            "    try:\n"
            '        return {{"ok": True, "value": {call}}}\n'
            "    except Exception as error:\n"
            '        return {{"ok": False, "error": type(error).__name__}}\n'
        ),
    ),
    Rule(
        name="one request",
        words=(
            "{function} takes a single argument named `request`, a dict that holds today's parameters under their names; a parameter "
            "that has a default today may be left out and then has that default. What it returns stays as it is."
        ),
        change=_request,
        helper="",
        body="    return {old}(**request)\n",
        takes="request",
    ),
)
