"""What every verb shares: exit codes, JSON on standard output, messages on standard error. Imports nothing heavy."""

import io
import json
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import Any

from skill2env.errors import BudgetReached, InfraError, Skill2EnvError, UserError


class ExitCode(IntEnum):
    """Exit codes of all verbs."""

    OK = 0
    """Everything asked for is final (``compile``: rejections included; ``verify``: all accepted)."""
    REJECTED = 1
    """``verify``: some task is rejected. ``run audit``: something is inconsistent. ``record``: a session held a key.
    Otherwise a bug of ours."""
    USAGE = 2
    """The call cannot be done as asked."""
    INFRA = 3
    """The surroundings failed, or items are pending; run again."""
    BUDGET = 4
    """The budget is reached; raise it and run again."""
    INTERRUPTED = 130
    """Ctrl-C; what was finished is kept, run again to go on."""


def exit_code(error: Skill2EnvError) -> ExitCode:
    """Exit code of an error of ours."""
    match error:
        case UserError():
            return ExitCode.USAGE
        case BudgetReached():
            return ExitCode.BUDGET
        case _:
            return ExitCode.INFRA


def harden_streams() -> None:
    """Make the standard streams take any text: closed ones swallow it, what an encoding lacks becomes an escape."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # started with the descriptor closed
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON with sorted keys that stays JSON whatever standard output can encode."""
    # An escape of an undecodable byte (a lone surrogate) has the same form in Python and in JSON.
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return json.dumps(value, indent=indent, sort_keys=True, ensure_ascii=not unicode)


def error_record(error: Skill2EnvError) -> dict[str, Any]:
    """The JSON form of an error: kind, message, hint and, for infra failures, the boundary."""
    kinds = {ExitCode.USAGE: "usage", ExitCode.BUDGET: "budget"}
    record: dict[str, Any] = {
        "kind": kinds.get(exit_code(error), "infra"),
        "message": error.message,
        "hint": error.hint,
    }
    if isinstance(error, InfraError):
        record["boundary"] = error.boundary.value
    return {"error": record}


def print_error(error: Skill2EnvError, *, as_json: bool) -> None:
    """Print an error to standard error: one message and a hint, or one JSON object."""
    if as_json:
        tell(json_text(error_record(error)))
        return
    tell(f"error: {error.message}")
    if error.hint:
        tell(f"hint: {error.hint}")


def tell(text: str) -> None:
    """Print a line to standard error; nobody there to read it changes no exit code."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        # What is still in the buffer would be written once more at the end, fail again and change the exit code.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def print_json(value: Any) -> None:
    """Print one JSON document with sorted keys to standard output."""
    print(json_text(value, indent=2))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table to standard output: with rich on a terminal, as aligned plain text otherwise."""
    cells = [[str(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(*headings, box=None, pad_edge=False, header_style="bold")
        for row in cells:
            table.add_row(*(Text(cell) for cell in row))
        Console().print(table)
        return
    lines = [list(headings), *cells]
    widths = [max(len(line[at]) for line in lines) for at in range(len(headings))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def dollars(micro_dollars: int) -> str:
    """Money for people: at least cents, more digits for small sums."""
    amount = micro_dollars / 1_000_000
    return f"${amount:.2f}" if amount >= 1 or not micro_dollars else f"${amount:.4f}"


def size(count: int) -> str:
    """Bytes for people, in powers of 1024."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def one_line(text: str) -> str:
    """Text of untrusted origin without anything that moves a terminal's cursor or begins another line."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
