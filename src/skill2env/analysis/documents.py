"""What a dataset is compared with: folders of Harbor tasks, text files, JSON lines, Parquet."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skill2env.analysis.reading import read_bytes, read_corpus
from skill2env.analysis.records import Notes
from skill2env.analysis.strategy import strategy_of
from skill2env.analysis.tables import parquet_rows
from skill2env.errors import UserError
from skill2env.records import Severity

TEXT_LIMIT = 512 * 1024 * 1024
"""Bytes of a list of texts that are read."""
_TEXT_FIELDS = ("instruction", "text", "prompt", "question", "problem_statement", "content")


@dataclass(frozen=True, slots=True)
class Document:
    """One item of a benchmark. What it does not have is empty."""

    key: str
    instruction: str = ""
    tests: str = ""
    solution: str = ""
    strategy: tuple[str, ...] = ()
    domain: str = ""


def read_documents(place: Path, notes: Notes) -> tuple[Document, ...]:
    """Read a benchmark.

    Args:
        place: a folder of Harbor tasks; a ``.txt`` file with one text a line (or texts divided by lines of ``---``); a
            ``.jsonl`` or ``.parquet`` file, of whose rows ``instruction`` (or ``text``, ``prompt``, ``question`` ...),
            ``tests``, ``solution``, ``id`` and ``domain`` are understood; or a folder of such files.
        notes: takes what is odd; an empty benchmark is odd and no error.

    Raises:
        UserError: the place does not exist or is of another kind.
    """
    if place.is_dir():
        found = list(_of_tasks(place, notes)) or [
            document
            for path in sorted(place.rglob("*"))
            if path.suffix in (".txt", ".jsonl", ".parquet") and path.is_file()
            for document in _of_file(path, notes)
        ]
    elif place.is_file() and place.suffix in (".txt", ".jsonl", ".ndjson", ".parquet"):
        found = list(_of_file(place, notes))
    else:
        what = "is no benchmark" if place.exists() else "does not exist"
        raise UserError(
            f"{place} {what}", hint="a folder of Harbor tasks, or a .txt, .jsonl or .parquet file"
        )
    if not found:
        notes.add("benchmark-empty", "nothing to compare with was found", place.name, Severity.ERROR)
    return tuple(found)


def _of_tasks(place: Path, notes: Notes) -> Iterator[Document]:
    corpus = read_corpus(place, parts=("instruction", "tests", "solution"))
    if corpus.tasks:
        notes.found += corpus.diagnostics
    for task in corpus.tasks:
        yield Document(
            f"{place.name}/{task.key}",
            task.instruction,
            task.tests,
            task.solution,
            strategy_of(task),
            task.domain,
        )


def _of_file(path: Path, notes: Notes) -> Iterator[Document]:
    if path.suffix == ".parquet":
        rows: Iterator[Mapping[str, Any]] = parquet_rows(
            path, (*_TEXT_FIELDS, "tests", "solution", "id", "domain")
        )
    else:
        data = (read_bytes(path, TEXT_LIMIT) or b"")[:TEXT_LIMIT].decode("utf-8-sig", "replace")
        rows = (
            _json_rows(data, path, notes)
            if path.suffix != ".txt"
            else ({"text": text} for text in _texts(data))
        )
    for at, row in enumerate(rows):
        text = next((str(row[name]) for name in _TEXT_FIELDS if row.get(name)), "")
        name = str(row.get("id") or at)
        if not text.strip():
            notes.add("document-empty", "the item has no text", f"{path.name}:{name}")
        yield Document(
            f"{path.name}:{name}",
            text,
            str(row.get("tests") or ""),
            str(row.get("solution") or ""),
            domain=str(row.get("domain") or ""),
        )


def _texts(data: str) -> Iterator[str]:
    lines = data.splitlines()
    if "---" not in (line.strip() for line in lines):
        yield from (line for line in lines if line.strip())
        return
    block: list[str] = []
    for line in [*lines, "---"]:
        if line.strip() != "---":
            block.append(line)
        elif any(part.strip() for part in block):
            yield "\n".join(block)
            block = []


def _json_rows(data: str, path: Path, notes: Notes) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(data.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row: Any = json.loads(line)
        except (ValueError, RecursionError):
            notes.add("line-not-json", "the line is no JSON", f"{path.name}:{number}")
            continue
        yield row if isinstance(row, dict) else {"text": str(row)}  # pyright: ignore[reportUnknownVariableType]
