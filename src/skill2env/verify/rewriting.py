"""Other spellings of a delivered file that mean the same. Pure functions; None where a spelling does not apply."""

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from skill2env.verify.wording import Wording

_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?')
_TEXTS = frozenset({".txt", ".text", ".out", ".list", ".lst"})
_TABLES = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True, slots=True)
class Rewriting:
    """One kind of other spelling."""

    name: str
    what: str
    """How it differs, in words that follow "with"."""
    rewrite: Callable[[str, str, Wording], str | None]
    """Path, text, and what the instruction says of the file, to the other text."""
    code: str = "form"
    """Rule that is broken when it loses reward."""


def rewritten(
    rewriting: Rewriting, files: Mapping[str, bytes], wordings: Mapping[str, Wording]
) -> dict[str, bytes]:
    """Files in the other spelling, those alone that have one.

    Args:
        rewriting: which spelling.
        files: by path.
        wordings: by path.
    """
    found: dict[str, bytes] = {}
    for path, data in files.items():
        wording = wordings[path]
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            continue
        if not text.strip() or wording.exact:
            continue
        other = rewriting.rewrite(path, text, wording)
        if other is not None and other != text:
            found[path] = other.encode("utf-8")
    return found


# ---------------------------------------------------------------------------------------------- JSON


def _document(path: str, text: str) -> Any:
    """The list or object in a JSON file; None for other files, and for numbers that would not survive."""
    if PurePosixPath(path).suffix != ".json":
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict | list) or _numbers(text) != _numbers(json.dumps(value)):
        return None
    return value  # pyright: ignore[reportUnknownVariableType]


def _numbers(text: str) -> list[str]:
    return [token for token in _NUMBER.findall(text) if not token.startswith('"')]


def _dump(value: Any, like: str, *, turned: bool = False) -> str:
    """In the layout of `like`, or with `turned` in the other one."""
    wide = "\n" in like.strip()
    ascii_only = like.isascii()
    end = "\n" if like.endswith("\n") else ""
    if wide != turned:
        return json.dumps(value, indent=2 if wide else 4, ensure_ascii=ascii_only) + end
    return json.dumps(value, separators=(",", ":"), ensure_ascii=ascii_only) + end


def _json_layout(path: str, text: str, wording: Wording) -> str | None:
    value = _document(path, text)
    return None if value is None or wording.layout else _dump(value, text, turned=True)


def _json_keys(path: str, text: str, wording: Wording) -> str | None:
    value = _document(path, text)
    if value is None or wording.keys:
        return None
    return _dump(_turned_keys(value), text) if _turned_keys(value) != value or _has_keys(value) else None


def _turned_keys(value: Any) -> Any:
    if isinstance(value, dict):
        items: list[tuple[str, Any]] = list(value.items())  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
        return {key: _turned_keys(item) for key, item in reversed(items)}
    if isinstance(value, list):
        return [_turned_keys(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def _has_keys(value: Any) -> bool:
    if isinstance(value, dict):
        return len(value) > 1 or any(map(_has_keys, value.values()))  # pyright: ignore[reportUnknownArgumentType]
    return isinstance(value, list) and any(map(_has_keys, value))  # pyright: ignore[reportUnknownArgumentType]


def _json_escapes(path: str, text: str, wording: Wording) -> str | None:
    value = _document(path, text)
    if value is None or wording.letters or json.dumps(value, ensure_ascii=False).isascii():
        return None
    indent = 2 if "\n" in text.strip() else None
    return json.dumps(value, indent=indent, ensure_ascii=not text.isascii()) + (
        "\n" if text.endswith("\n") else ""
    )


def _json_numbers(path: str, text: str, wording: Wording) -> str | None:
    if _document(path, text) is None or wording.numbers:
        return None
    return _NUMBER.sub(lambda found: re.sub(r"^(-?\d+)\.0+$", r"\1", found[0]), text)


def _json_rows(path: str, text: str, wording: Wording) -> str | None:
    value = _document(path, text)
    return None if value is None or not wording.order_free else _dump(_turned_rows(value), text)


def _turned_rows(value: Any) -> Any:
    """Lists of objects backwards; lists of plain values may be pairs or paths."""
    if isinstance(value, dict):
        return {key: _turned_rows(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):  # pyright: ignore[reportUnknownVariableType]
        return [_turned_rows(item) for item in reversed(value)]  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
    return value  # pyright: ignore[reportUnknownVariableType]


def _json_end(path: str, text: str, wording: Wording) -> str | None:
    return None if _document(path, text) is None or wording.ends else _other_end(text)


# ---------------------------------------------------------------------------------------------- tables


def _table(path: str, text: str) -> list[list[str]] | None:
    """Rows of a file with separated values; None for other files, and for those whose rows differ in length."""
    delimiter = _TABLES.get(PurePosixPath(path).suffix)
    if delimiter is None:
        return None
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error:
        return None
    if len(rows) < 2 or len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
        return None
    return rows


def _write(path: str, rows: list[list[str]], text: str, *, quote_all: bool = False) -> str:
    stream = io.StringIO(newline="")
    csv.writer(
        stream,
        delimiter=_TABLES[PurePosixPath(path).suffix],
        quoting=csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL,
        lineterminator="\r\n" if "\r\n" in text else "\n",
    ).writerows(rows)
    return stream.getvalue() if text.endswith("\n") else stream.getvalue().rstrip("\r\n")


def _csv_quotes(path: str, text: str, wording: Wording) -> str | None:
    rows = _table(path, text)
    if rows is None or wording.quotes or not path.endswith(".csv"):
        return None
    return _write(path, rows, text, quote_all=True)


def _csv_line_ends(path: str, text: str, wording: Wording) -> str | None:
    rows = _table(path, text)
    if (
        rows is None
        or wording.ends
        or not path.endswith(".csv")
        or any("\n" in cell for row in rows for cell in row)
    ):
        return None
    return text.replace("\r\n", "\n") if "\r\n" in text else text.replace("\n", "\r\n")


def _csv_end(path: str, text: str, wording: Wording) -> str | None:
    return None if _table(path, text) is None or wording.ends else _other_end(text)


def _csv_rows_free(path: str, text: str, wording: Wording) -> str | None:
    rows = _table(path, text)
    return (
        None if rows is None or not wording.order_free else _write(path, [rows[0], *reversed(rows[1:])], text)
    )


def _csv_rows_silent(path: str, text: str, wording: Wording) -> str | None:
    rows = _table(path, text)
    return (
        None
        if rows is None or not wording.order_silent
        else _write(path, [rows[0], *reversed(rows[1:])], text)
    )


# ---------------------------------------------------------------------------------------------- texts


def _is_text(path: str) -> bool:
    return PurePosixPath(path).suffix in _TEXTS


def _other_end(text: str) -> str:
    return text.rstrip("\n") if text.endswith("\n") else text + "\n"


def _text_end_open(path: str, text: str, wording: Wording) -> str | None:
    free = _is_text(path) and wording.shape_silent and not wording.ends
    return _other_end(text) if free else None


def _text_end(path: str, text: str, wording: Wording) -> str | None:
    free = _is_text(path) and not wording.shape_silent and not wording.ends and not wording.shown
    return _other_end(text) if free else None


def _text_layout(path: str, text: str, wording: Wording) -> str | None:
    if not _is_text(path) or not wording.shape_open or wording.ends:
        return None
    return "".join(f"- {line}\n\n" for line in text.splitlines() if line.strip())


def _text_blanks(path: str, text: str, wording: Wording) -> str | None:
    if not _is_text(path) or wording.ends or wording.shown:
        return None
    return "".join(line.rstrip("\n") + " \n" for line in text.splitlines(keepends=True))


REWRITINGS = (
    Rewriting("json-layout", "another indent", _json_layout),
    Rewriting("json-keys", "keys in another order", _json_keys),
    Rewriting("json-escapes", "letters escaped in another way", _json_escapes),
    Rewriting("json-rows", "entries in another order", _json_rows),
    Rewriting("json-end", "another end of its last line", _json_end),
    Rewriting("json-numbers", "whole numbers without a decimal point", _json_numbers, "form-likely"),
    Rewriting("csv-quotes", "all fields in quotes", _csv_quotes),
    Rewriting("csv-line-ends", "other line ends", _csv_line_ends),
    Rewriting("csv-end", "another end of its last line", _csv_end),
    Rewriting("csv-rows", "rows in another order", _csv_rows_free),
    Rewriting("csv-rows-likely", "rows in another order", _csv_rows_silent, "form-likely"),
    Rewriting("text-layout", "its lines as items of a list", _text_layout),
    Rewriting("text-end", "another end of its last line", _text_end_open),
    Rewriting("text-end-likely", "another end of its last line", _text_end, "form-likely"),
    Rewriting("text-blanks", "blanks at the ends of lines", _text_blanks, "form-likely"),
)
"""All kinds, those without doubt first within each form."""
