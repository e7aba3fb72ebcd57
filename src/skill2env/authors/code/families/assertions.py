"""Recorded calls as plain assertions of a unittest module."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# The values here are tagged JSON of any shape; `cases.well_formed` checks them where they come in.

from collections.abc import Mapping, Sequence
from typing import Any

from skill2env.authors.code.cases import Case
from skill2env.authors.code.report import literal
from skill2env.authors.code.study import Study


def is_plain(case: Case, outcome: Mapping[str, Any]) -> bool:
    """True for a call of a module-level function with literal arguments and a literal answer, or an exception."""
    if case.kind != "function" or "." in case.name or set(outcome) not in ({"value"}, {"raised"}):
        return False
    return all(is_literal(part) for part in (*case.args, *case.kwargs.values(), outcome.get("value")))


def is_literal(value: Any) -> bool:
    """True for a value that ``literal`` writes as itself: no object of the project, no file."""
    if isinstance(value, list):
        return all(is_literal(item) for item in value)
    if not isinstance(value, dict):
        return True
    tag, inner = value.get("$"), value.get("v")
    if tag == "float":
        return inner != "nan"
    return tag in ("tuple", "set", "frozenset", "dict") and is_literal(inner)


def test_module(found: Study, ids: Sequence[str]) -> str:
    """A unittest module with one method a call."""
    behaviour = found.behaviour
    modules: set[str] = set()
    methods: list[str] = []
    for number, i in enumerate(ids, 1):
        case, outcome = behaviour.cases[i], behaviour.outcomes[i]
        module = case.file.rpartition("/")[2].removesuffix(".py")
        modules.add(module)
        words = [literal(item) for item in case.args]
        words += [f"{name}={literal(item)}" for name, item in sorted(case.kwargs.items())]
        call = f"{module}.{case.name}({', '.join(words)})"
        if "raised" in outcome:
            body = f"with self.assertRaises(Exception) as caught:\n            {call}\n"
            body += f"        self.assertEqual(type(caught.exception).__name__, {outcome['raised']!r})"
        else:
            body = f"self.assertEqual({call}, {literal(outcome['value'])})"
        methods.append(f"    def test_{number:03d}(self):\n        {body}\n")
    head = "".join(f"import {name}\n" for name in sorted(modules))
    return f"import unittest\n\n{head}\n\nclass Recorded(unittest.TestCase):\n" + "\n".join(methods)
