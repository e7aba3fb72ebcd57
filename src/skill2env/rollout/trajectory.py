"""Read a trajectory (ATIF) that an agent wrote: data of unknown origin, in which anything may be missing."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from skill2env.errors import UserError
from skill2env.harbor.outcome import read_head

READ_LIMIT = 64 * 2**20
"""Bytes of the longest trajectory that is read."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was said or done."""

    source: str
    """``system``, ``user``, ``agent`` or ``tool``; other words as the agent wrote them."""
    text: str
    name: str = ""
    """Of the tool, for calls: then the source is ``agent`` and the text holds the arguments."""


def read_trajectory(path: Path) -> tuple[Step, ...]:
    """The steps of a trajectory file, in order.

    Raises:
        UserError: there is no such file, it is too long, or it is no trajectory.
    """
    data = read_head(path, READ_LIMIT)
    if data is None:
        raise UserError(f"no trajectory at {path}", hint="give a file that an agent wrote in the format ATIF")
    if len(data) > READ_LIMIT:
        raise UserError(f"the trajectory {path} is longer than {READ_LIMIT >> 20} MiB")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON: {error}") from error
    steps = _table(document).get("steps")
    if not isinstance(steps, list):
        raise UserError(f"{path} is no trajectory: it has no list of steps")
    return tuple(item for step in cast("list[Any]", steps) for item in _read(_table(step)))


def _read(step: dict[str, Any]) -> Iterator[Step]:
    source = str(step.get("source") or "agent")
    reasoning = _text(step.get("reasoning_content"))
    if reasoning:
        yield Step(source, f"(reasoning) {reasoning}")
    message = _text(step.get("message"))
    if message:
        yield Step(source, message)
    for call in _list(step.get("tool_calls")):
        arguments = _table(call).get("arguments")
        text = (
            arguments
            if isinstance(arguments, str)
            else json.dumps(arguments, ensure_ascii=False, sort_keys=True)
        )
        yield Step(source, text, str(_table(call).get("function_name") or "?"))
    for result in _list(_table(step.get("observation")).get("results")):
        yield Step("tool", _text(_table(result).get("content")))


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "".join(str(_table(part).get("text") or "") for part in cast("list[Any]", value))
    return "" if value is None else str(value)


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
