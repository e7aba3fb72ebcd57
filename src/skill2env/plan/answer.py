"""From a model's text to JSON objects: fences, talk around the list, a cut-off end.

Covers: fenced and bare JSON, text before and after, an object with a ``workflows`` key, a single workflow, a skip, a
list that stops half-way, absurd nesting, giant numbers, NaN. Does not cover: JSON with comments or single quotes.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from pydantic import ValidationError

from skill2env.plan.drops import Dropped, DropReason, dropped
from skill2env.records import Skipped

MAX_ANSWER_CHARS = 2_000_000

_FENCE = re.compile(r"(```+|~~~+)[ \t]*[A-Za-z0-9]*[ \t]*\r?\n(.*?)(?:\r?\n[ \t]*\1|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found in the text."""

    entries: tuple[Any, ...] = ()
    """Entries of the list of workflows, any JSON type."""
    skipped: Skipped | None = None
    dropped: tuple[Dropped, ...] = ()


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"not JSON: {text}")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def read_answer(text: str) -> Answer:
    """Find the workflows or the skip in a planner's answer; never raises."""
    if len(text) > MAX_ANSWER_CHARS:
        detail = f"{len(text)} characters, {MAX_ANSWER_CHARS} allowed"
        return Answer(dropped=(dropped(DropReason.ANSWER_TOO_LONG, detail),))
    text = text.removeprefix("\ufeff")
    found = [answer for candidate in _candidates(text) if (answer := _read(candidate)) is not None]
    if not found:
        return Answer(dropped=(dropped(DropReason.NOT_JSON, text[:200] or "the answer is empty"),))
    # The reading with most workflows is meant: an object inside a cut-off list reads as a list of one. max() keeps
    # the first of equals, which is the likeliest place.
    return max(found, key=lambda answer: (len(answer.entries), not answer.dropped))


def _candidates(text: str) -> Iterator[str]:
    """Places where the JSON may start, likeliest first: fences, then the first bracket outside of them."""
    for fence in _FENCE.finditer(text):
        yield fence.group(2)
    starts = [at for at in (text.find("["), text.find("{")) if at >= 0]
    for at in sorted(starts):
        yield text[at:]


def _read(text: str) -> Answer | None:
    text = text.strip()
    if text.startswith("{"):
        value = _decode(text)
        if isinstance(value, dict):
            return _from_object(cast("dict[str, Any]", value))
        inner = re.match(r'\{\s*"workflows"\s*:\s*(?=\[)', text)
        return _from_list(text[inner.end() :]) if inner else None
    return _from_list(text) if text.startswith("[") else None


def _decode(text: str) -> Any:
    """The JSON value at the start of `text`; None when there is none (a literal null is of no use either)."""
    try:
        return _DECODER.raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


def _from_object(value: dict[str, Any]) -> Answer | None:
    if "skip" in value or set(value) == {"reason", "detail"}:
        try:
            return Answer(skipped=Skipped.model_validate(value.get("skip", value)))
        except ValidationError:
            return None
    inner = value.get("workflows")
    if isinstance(inner, list):
        return Answer(tuple(cast("list[Any]", inner)))
    return Answer((value,)) if "name" in value and "grounding" in value else None


def _from_list(text: str) -> Answer | None:
    """Read a list entry by entry, so that a cut-off end costs only the entry that it cuts."""
    entries: list[Any] = []
    at = 1
    while True:
        at = _skip_blank(text, at)
        if text[at : at + 1] == "]":
            # An empty list, or a bracket in prose, only counts when nothing better is found.
            return Answer(tuple(entries)) if entries else None
        try:
            entry, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            detail = f"after {len(entries)} entries: {text[at : at + 80]}"
            return (
                Answer(tuple(entries), dropped=(dropped(DropReason.TRUNCATED, detail),)) if entries else None
            )
        entries.append(entry)
        at = _skip_blank(text, at)
        if text[at : at + 1] == ",":
            at += 1


def _skip_blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
