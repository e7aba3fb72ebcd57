"""Recorded cases as orders: what somebody would ask a tool to do with files, and the result in plain JSON."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# The values here are tagged JSON of any shape; `cases.well_formed` checks them where they come in.

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill2env.authors.code.cases import Case

MIN_LINES = 3
MAX_TEXT = 12_000


@dataclass(frozen=True, slots=True)
class Order:
    """One thing to do: a script with arguments or a function with named arguments, over files."""

    id: str
    case: Case
    files: Mapping[str, str]
    """Name -> text, as the tool needs it."""
    run: Mapping[str, Any]
    """As orders.json says it; the name of a file stands where the file goes."""
    result: Mapping[str, Any]
    """As it is to be delivered."""


def plain(value: Any) -> Any:
    """A tagged value as JSON has it. Raises ValueError for what JSON cannot tell apart."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    tag = value.get("$")
    if tag == "float" and value["v"] not in ("nan", "inf", "-inf"):
        return float(value["v"])
    if tag == "tuple":
        return [plain(item) for item in value["v"]]
    if tag == "dict" and all(isinstance(pair[0], str) for pair in value["v"]):
        return {pair[0]: plain(pair[1]) for pair in value["v"]}
    raise ValueError(f"no plain form: {tag}")


def _given(value: Any, files: dict[str, str]) -> Any:
    """An argument as an order says it; files are collected."""
    if isinstance(value, dict) and value.get("$") == "file":
        name = str(value["name"]).rsplit("/", 1)[-1]
        if files.setdefault(name, str(value["text"])) != value["text"]:
            raise ValueError("two files of one name")
        return name
    return plain(value)


def order_of(case: Case, outcome: Mapping[str, Any], parameters: Sequence[str]) -> Order | None:
    """A recorded case as an order; None when it has no plain form or too little input."""
    if "<work>" in str(outcome) or "<root>" in str(outcome) or "arguments" in outcome:
        return None
    files: dict[str, str] = {}
    try:
        if case.kind == "command":
            run: dict[str, Any] = {"script": case.file, "arguments": _command(case, files)}
            result = _ran(outcome)
        else:
            named = dict(zip(parameters, case.args, strict=False)) | dict(case.kwargs)
            if len(case.args) > len(parameters) or set(outcome) - {"value", "raised"}:
                return None
            given = {key: _given(value, files) for key, value in named.items()}
            run = {"file": case.file, "function": case.name, "arguments": given, "paths_as": _paths_as(case)}
            result = (
                {"raised": outcome["raised"]} if "raised" in outcome else {"value": plain(outcome["value"])}
            )
    except (ValueError, KeyError):
        return None
    good = files and all(_is_plain(text) for text in files.values())
    return Order(case.id, case, files, run, result) if good else None


def _paths_as(case: Case) -> str:
    """Type that the function takes paths as."""
    values = [item for item in (*case.args, *case.kwargs.values()) if isinstance(item, dict)]
    return "pathlib.Path" if any(item.get("as") == "path" for item in values) else "str"


def _is_plain(text: str) -> bool:
    """True for a text of lines that every program counts alike."""
    lines = text.split("\n")
    return (
        len(lines) > MIN_LINES
        and len(text) <= MAX_TEXT
        and lines[-1] == ""
        and text.splitlines() == lines[:-1]
    )


def _command(case: Case, files: dict[str, str]) -> list[str]:
    words: list[str] = []
    for item in case.args:
        fresh = isinstance(item, dict) and item.get("$") == "fresh"
        word = str(item["name"]) if fresh else _given(item, files)
        if not isinstance(word, str) or (fresh and word == "."):
            raise ValueError("not a word")
        words.append(word)
    return words


def _ran(outcome: Mapping[str, Any]) -> dict[str, Any]:
    if "exit" not in outcome:
        raise ValueError("it raised")
    return {key: outcome.get(key, other) for key, other in (("exit", 0), ("stdout", ""), ("files", {}))}
