"""Skill documents as words, from folders of SKILL.md, JSON lines or Parquet. Untrusted text; nothing runs."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from skill2env.analysis.reading import FILE_LIMIT, read_bytes
from skill2env.analysis.records import Notes, SkillText
from skill2env.analysis.tables import parquet_rows
from skill2env.errors import UserError
from skill2env.records import digest_bytes

_NAME = re.compile(r"\A\s*---\s*\n(?:.*\n)*?name:[ \t]*[\"']?([^\n\"']+)", re.MULTILINE)
_ENTRY = re.compile(r"skill\.md", re.IGNORECASE)
_MOST_DEPTH = 8


def read_skills(places: Sequence[Path], notes: Notes) -> tuple[SkillText, ...]:
    """Read skills.

    Args:
        places: each a folder with SKILL.md files somewhere below, or a ``.jsonl`` or ``.parquet`` file whose rows have
            ``text`` or ``body``, and perhaps ``name``, ``description`` and ``digest`` (as `hub export` writes).
        notes: takes what is odd.

    Returns:
        Distinct texts in the order of their keys. Of copies the first stays, because nobody could say which of two
        equal texts was the source.

    Raises:
        UserError: the place does not exist, is of another kind, or holds no skill.
    """
    found = [skill for place in places for skill in _of_place(place, notes)]
    kept: dict[str, SkillText] = {}
    for skill in found:
        key = digest_bytes(" ".join(skill.text.split()).encode())
        if not skill.text.strip():
            notes.add("skill-empty", "the skill has no text", skill.key)
        elif key in kept:
            notes.add("skill-copy", f"the same text as {kept[key].key}", skill.key)
        else:
            kept[key] = skill
    if not kept:
        raise UserError(
            f"no skill in {', '.join(map(str, places))}", hint="a skill is a folder with a SKILL.md"
        )
    return tuple(kept.values())


def _of_place(place: Path, notes: Notes) -> Iterator[SkillText]:
    if place.is_dir():
        yield from _folder(place)
    elif place.suffix in (".jsonl", ".ndjson", ".parquet") and place.is_file():
        yield from (_row(row, at) for at, row in enumerate(_rows(place, notes)))
    else:
        raise UserError(
            f"{place} is no folder of skills", hint="a folder with SKILL.md files, or .jsonl or .parquet"
        )


def _folder(root: Path) -> Iterator[SkillText]:
    for place, folders, files in os.walk(root, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if place.count(os.sep) - str(root).count(os.sep) >= _MOST_DEPTH:
            folders.clear()
        entry = next((name for name in sorted(files) if _ENTRY.fullmatch(name)), None)
        data = read_bytes(Path(place) / entry, FILE_LIMIT) if entry else None
        if data is not None:
            text = data[:FILE_LIMIT].decode("utf-8-sig", "replace")
            folder = Path(place).relative_to(root).as_posix()
            name = _NAME.match(text)
            yield SkillText(folder, name[1].strip() if name else Path(place).name, text)


def _rows(place: Path, notes: Notes) -> Iterator[Mapping[str, Any]]:
    if place.suffix == ".parquet":
        yield from parquet_rows(place)
        return
    for number, line in enumerate(place.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        try:
            row: Any = json.loads(line) if line.strip() else {}
        except (ValueError, RecursionError):
            notes.add("line-not-json", "the line is no JSON", f"{place.name}:{number}")
            continue
        if isinstance(row, dict):
            yield row  # pyright: ignore[reportUnknownVariableType]


def _row(row: Mapping[str, Any], at: int) -> SkillText:
    text = "\n".join(str(row[name]) for name in ("description", "text", "body") if row.get(name))
    name = str(row.get("name") or row.get("slug") or at)
    return SkillText(
        str(row.get("path") or row.get("digest") or f"{at}:{name}"), name, text, str(row.get("digest") or "")
    )
