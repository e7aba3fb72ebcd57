"""The YAML block at the top of an entry file, read strictly first and line by line where that fails.

Nothing is skipped in silence: each deviation is a diagnostic. Values become plain JSON values; dates and numbers stay as they were written.
"""

import re
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from skill2env.ingest.quirks import note
from skill2env.records import Diagnostic

MAX_BLOCK_CHARS = 200_000
_MAX_DEPTH = 12
_MAX_ITEMS = 5_000
_KEY = re.compile(r"^([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*))?$")
_FENCE = re.compile(r"^---[ \t]*$")
_CLOSE = re.compile(r"^(?:---|\.\.\.)[ \t]*$")


@dataclass(slots=True)
class FrontMatter:
    """What stood at the top of the file."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    body: str = ""
    body_line: int = 1
    """1-based line of the file on which the body begins."""
    present: bool = False
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])


def split(text: str, where: str) -> tuple[str | None, str, int, list[Diagnostic]]:
    """(block or None, body, line of the body, diagnostics) of an entry file."""
    lines = text.split("\n")
    found: list[Diagnostic] = []
    start = next((i for i, line in enumerate(lines[:60]) if line.strip()), None)
    if start is None:
        return None, "", 1, found
    if not _FENCE.match(lines[start]):
        start = _late_start(lines)
        if start is None:
            return None, text, 1, [note("no-front-matter", where=where)]
        found.append(note("late-front-matter", f"line {start + 1}", f"{where}:{start + 1}"))
    elif start:
        found.append(note("late-front-matter", f"{start} blank lines", f"{where}:{start + 1}"))
    for end in range(start + 1, len(lines)):
        if _CLOSE.match(lines[end]):
            before = "\n".join(lines[:start]).strip()
            body = "\n".join(lines[end + 1 :])
            return (
                "\n".join(lines[start + 1 : end]),
                f"{before}\n\n{body}" if before else body,
                end + 2,
                found,
            )
    found.append(note("unterminated-front-matter", where=f"{where}:{start + 1}"))
    end = start + 1
    while end < len(lines) and (
        not lines[end].strip() or _KEY.match(lines[end]) or lines[end][:1] in " \t-#"
    ):
        end += 1
    return "\n".join(lines[start + 1 : end]), "\n".join(lines[end:]), end + 1, found


def _late_start(lines: list[str]) -> int | None:
    """A fence within the first lines that is followed by a key: front matter behind a preamble."""
    for index, line in enumerate(lines[:40]):
        if _FENCE.match(line) and any(
            (match := _KEY.match(after)) and match[1].lower() in ("name", "description")
            for after in lines[index + 1 : index + 6]
        ):
            return index
    return None


def read(text: str, where: str) -> FrontMatter:
    """Front matter and body of an entry file."""
    block, body, line, found = split(text, where)
    result = FrontMatter(body=body, body_line=line, diagnostics=found)
    if block is None:
        return result
    result.present = True
    if any(re.search(r"---", text_line) for text_line in block.split("\n")):
        found.append(note("dashes-in-front-matter", where=where))
    if re.search(r"(?m)^[ ]*\t", block):
        found.append(note("tab-in-front-matter", where=where))
        block = re.sub(r"(?m)^([ ]*)\t+", lambda match: match[1] + "  ", block)
    if len(block) > MAX_BLOCK_CHARS:
        found.append(note("invalid-yaml", f"longer than {MAX_BLOCK_CHARS} characters", where))
        block = block[:MAX_BLOCK_CHARS]
        result.values = _by_lines(block)
        return result
    result.values = _parse(block, where, found)
    return result


def _parse(block: str, where: str, found: list[Diagnostic]) -> dict[str, Any]:
    mangled = re.search(r"(?m)^[\w-]+:[ \t]*[>|][+-]?[ \t]+\S", block)
    if mangled:
        found.append(note("mangled-block-scalar", mangled[0][:60], where))
        return _by_lines(block)
    try:
        loaded = _load(block)
    except (YAMLError, ValueError, RecursionError, AttributeError, TypeError, KeyError, IndexError) as error:
        colon = _colon_line(block)
        reason = str(error).split("\n", 1)[0][:120]
        found.append(
            note("unquoted-colon", f"line {colon + 2}", f"{where}:{colon + 2}")
            if colon is not None
            else note("invalid-yaml", reason, where)
        )
        return _by_lines(block)
    keys = [match[1] for line in block.split("\n") if (match := _KEY.match(line))]
    for key in sorted({key for key in keys if keys.count(key) > 1}):
        found.append(note("duplicate-key", key, where))
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        found.append(note("invalid-yaml", "the block is no map", where))
        return _by_lines(block)
    budget = [_MAX_ITEMS]
    return {str(key): _plain(value, 0, budget) for key, value in loaded.items()}


def _load(block: str) -> Any:
    if len(re.findall(r"(?m)[&*][A-Za-z0-9_-]+", block)) > 50 and re.search(r"&\w+", block):
        raise ValueError("too many anchors and aliases")
    if (
        re.search(r"[\[{(]{40}", block)
        or max((len(line) - len(line.lstrip()) for line in block.split("\n")), default=0) > 200
    ):
        raise ValueError("nested too deeply")
    yaml = YAML(typ="base", pure=True)  # scalars stay text: no surprise dates, booleans or numbers
    yaml.allow_duplicate_keys = True
    return yaml.load(StringIO(block))


def _colon_line(block: str) -> int | None:
    """Index of the first line whose plain value holds `: `."""
    for index, line in enumerate(block.split("\n")):
        match = _KEY.match(line)
        if match and match[2] and match[2][:1] not in "\"'[{|>&*!#" and re.search(r":(\s|$)", match[2]):
            return index
    return None


def _plain(value: Any, depth: int, budget: list[int]) -> Any:
    budget[0] -= 1
    if depth > _MAX_DEPTH or budget[0] < 0:
        return "..."
    if isinstance(value, dict):
        return {str(key): _plain(inner, depth + 1, budget) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, depth + 1, budget) for inner in value]
    return "" if value is None else str(value)


def _by_lines(block: str) -> dict[str, Any]:
    """Narrow recovery: ``key: rest of line`` plus indented continuation; the first of equal keys counts."""
    values: dict[str, Any] = {}
    key, parts = "", list[str]()

    def close() -> None:
        if key and key not in values:
            text = " ".join(part for part in parts if part).strip()
            text = re.sub(r"^[>|][+-]?(\s+|$)", "", text)
            if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
                text = text[1:-1]
            values[key] = text

    for line in block.split("\n"):
        match = _KEY.match(line)
        if match:
            close()
            key, parts = match[1], [(match[2] or "").strip()]
        elif key and (line[:1] in (" ", "\t") or not line.strip() or line.startswith("- ")):
            parts.append(line.strip())
        elif key and line.strip() and not line.startswith("#"):
            parts.append(line.strip())
    close()
    return values
