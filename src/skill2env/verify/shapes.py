"""Worthless copies of a file: the same form, and nothing in it that anybody had to work for.

Every value differs from the true one, so that whatever they earn is earned by form alone. Names of fields are kept
only where the instruction states them.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any, cast

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_WORD = re.compile(r"[^\W\d_]+")
_ENTRY = re.compile(r"^([ \t]*[\w .-]+[:=][ \t]*)(\S.*)$", re.MULTILINE)
_PAIR = re.compile(r"(?:[ \t]*[\w .-]+[:=][ \t]*\S.*\n?)+")
_TABLES = {".csv": ",", ".tsv": "\t", ".psv": "|"}
_CODE = frozenset(
    ".py .sh .bash .js .mjs .cjs .ts .rb .pl .php .lua .r .jl .go .rs .c .cc .cpp .h .hpp .java .awk .sql .mk".split()
)
_CODE_NAMES = frozenset({"Makefile", "makefile", "GNUmakefile", "Dockerfile"})

type Shape = Callable[[str, bytes, str], bytes | None]
"""From path, content and instruction to worthless content; None where the form has none."""


def is_code(path: str, data: bytes) -> bool:
    """Whether a file is a program: by its first line or its name."""
    name = PurePosixPath(path)
    return data.startswith((b"#!", b"\x7fELF")) or name.suffix.lower() in _CODE or name.name in _CODE_NAMES


def empty(path: str, data: bytes, instruction: str) -> bytes | None:
    """Nothing at all."""
    del path, data, instruction
    return b""


def hollow(path: str, data: bytes, instruction: str) -> bytes | None:
    """A header without rows, or containers without content."""
    text = _text(data)
    if text is None or is_code(path, data):
        return None
    document = _document(path, text)
    if document is not None:
        if isinstance(document, list):
            return b"[]\n"
        if isinstance(document, dict):
            entries = cast("dict[str, Any]", document)
            return _dump({key: _hollow(value) for key, value in entries.items() if key in instruction})
        return None
    rows = text.splitlines(keepends=True)
    if _delimiter(path, text) and len(rows) > 1:
        return rows[0].encode()
    return b"\n" if rows else None


def constant(path: str, data: bytes, instruction: str) -> bytes | None:
    """The same form with wrong values; tables and lists have one row, or two where one is right."""
    text = _text(data)
    if text is None:
        return data[:64].ljust(256, b"\0")
    document = _document(path, text)
    if document is not None:
        return _dump(_wrong(document, instruction))
    delimiter = _delimiter(path, text)
    if delimiter:
        return _one_row(text, delimiter)
    if _PAIR.fullmatch(text.strip()):
        return _ENTRY.sub(lambda match: match[1] + _wrong_text(match[2]), text).encode()
    return garbage(path, data, instruction)


def garbage(path: str, data: bytes, instruction: str) -> bytes | None:
    """As many lines and words, and none of them true."""
    del path, instruction
    text = _text(data)
    if text is None:
        return data[:64].ljust(256, b"\0")
    wrong = _WORD.sub("x", _NUMBER.sub(lambda match: "1" if _is_zero(match[0]) else "0", text))
    return wrong.encode()


def braces(path: str, data: bytes, instruction: str) -> bytes | None:
    """An empty JSON object."""
    del path, data, instruction
    return b"{}\n"


def brackets(path: str, data: bytes, instruction: str) -> bytes | None:
    """An empty JSON list."""
    del path, data, instruction
    return b"[]\n"


def zero(path: str, data: bytes, instruction: str) -> bytes | None:
    """The digit 0."""
    del path, instruction
    return b"0\n" if data.strip() != b"0" else b"1\n"


def agreeing(path: str, data: bytes, instruction: str) -> bytes | None:
    """Words by which programs say that all is well."""
    del path, data, instruction
    return b"OK\nPASS\nPASSED\nSUCCESS\n1 passed in 0.01s\nRESULT: OK\nstatus: ok\ntrue\n"


SHAPES: Mapping[str, Shape] = {
    "empty": empty,
    "hollow": hollow,
    "constant": constant,
    "garbage": garbage,
    "braces": braces,
    "brackets": brackets,
    "zero": zero,
    "agreeing": agreeing,
}


def _text(data: bytes) -> str | None:
    try:
        return None if b"\0" in data else data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _document(path: str, text: str) -> Any:
    """Parsed JSON with a container at its top; None for anything else."""
    if not text.lstrip().startswith(("{", "[")) or PurePosixPath(path).suffix.lower() in _TABLES:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("Any", found) if isinstance(found, dict | list) else None


def _delimiter(path: str, text: str) -> str:
    """What separates the columns of a table; empty when it is none."""
    known = _TABLES.get(PurePosixPath(path).suffix.lower())
    if known:
        return known
    lines = text.splitlines()[:20]
    for delimiter in (",", "\t", "|", ";"):
        counts = {line.count(delimiter) for line in lines}
        if len(lines) > 1 and len(counts) == 1 and counts != {0}:
            return delimiter
    return ""


def _dump(document: Any) -> bytes:
    return (json.dumps(document, indent=1) + "\n").encode()


def _hollow(value: Any) -> Any:
    if isinstance(value, dict):
        return {} if value else {"x": 0}
    if isinstance(value, list):
        return [] if value else [0]
    return _wrong_leaf(value)


def _wrong(value: Any, instruction: str) -> Any:
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        kept = {k: _wrong(v, instruction) for k, v in entries.items() if k in instruction}
        return kept or {"x": 0}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if not items:
            return [0]
        item = _wrong(items[0], instruction)
        return [item, item] if len(items) == 1 else [item]
    return _wrong_leaf(value)


def _wrong_leaf(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return 0 if value else 1
    if isinstance(value, str):
        return _wrong_text(value)
    return 0


def _wrong_text(text: str) -> str:
    """Numbers become 0, or 1 where they are 0 already; without numbers, words become x."""
    if not text.strip():
        return "x"
    if _NUMBER.search(text):
        return _NUMBER.sub(lambda match: "1" if _is_zero(match[0]) else "0", text)
    wrong = _WORD.sub("x", text)
    return wrong if wrong != text else "y"


def _is_zero(number: str) -> bool:
    return not number.strip("+-0.")


def _one_row(text: str, delimiter: str) -> bytes:
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error:
        return text.splitlines(keepends=True)[0].encode()
    if not rows:
        return b"x\n"
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(rows[0])
    if len(rows) > 1:
        row = [_wrong_text(cell) for cell in rows[1]]
        for _ in range(2 if len(rows) == 2 else 1):
            writer.writerow(row)
    return out.getvalue().encode()
