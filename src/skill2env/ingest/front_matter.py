"""The block between `---` lines at the top of an entry file: where it is, and what it says.

Strict first, then key by key (`recovery`); nothing is mended or dropped without a diagnostic. Line numbers in
diagnostics are those of the file.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from skill2env.ingest.quirks import note
from skill2env.ingest.recovery import recover
from skill2env.ingest.yaml_block import BadYaml, Block, parse
from skill2env.records import Diagnostic

MAX_BLOCK_CHARS = 65_536
"""Longer blocks are cut before parsing; the longest honest one that was seen has 7,000."""
_PREAMBLE_LINES = 40
_FENCE = re.compile(r"---[ \t]*")
_ODD_FENCE = re.compile(r"-{4,}[ \t]*|[ \t]+---[ \t]*|[—–]{1,3}[ \t]*")
_CLOSE = re.compile(r"(?:---|\.\.\.)[ \t]*")
_ODD_CLOSE = re.compile(r"-{4,}[ \t]*|[ \t]+---[ \t]*|[—–]{1,3}[ \t]*")
_KEY = re.compile(r"[A-Za-z_][\w.-]*[ \t]*:(?:[ \t]|$)")
_USUAL_KEY = re.compile(r"(?:name|description)[ \t]*:(?:[ \t]|$)", re.IGNORECASE)
_CODE_FENCE = re.compile(r"[ \t]*(?:```|~~~)")


@dataclass(slots=True)
class FrontMatter:
    """What stands at the top of an entry file, and the rest of the file."""

    block: Block = field(default_factory=Block)
    body: str = ""
    present: bool = False
    found: list[Diagnostic] = field(default_factory=list[Diagnostic])

    @property
    def values(self) -> dict[str, Any]:
        """Every key; plain JSON values, scalars as text."""
        return self.block.values


def read(text: str, where: str) -> FrontMatter:
    """Split an entry file and understand its front matter.

    Args:
        text: decoded, LF line ends.
        where: name of the file for diagnostics.
    """
    lines = text.split("\n")
    result = FrontMatter(body=text)
    start = _start(lines, where, result)
    if start is None:
        if text.strip():
            result.found.append(note("no-front-matter", where=where))
        return result
    end, closed = _end(lines, start, where, result)
    if not closed:
        result.found.append(note("unterminated-front-matter", where=f"{where}:{start + 1}"))
    block = "\n".join(lines[start + 1 : end])
    before = [line for line in lines[:start] if not _CODE_FENCE.match(line)]
    after = lines[end + 1 :] if closed else lines[end:]
    result.body = "\n".join([*before, *after]).strip("\n")
    result.present = True
    result.block = _understand(block, start + 1, where, result.found)
    return result


def _start(lines: list[str], where: str, result: FrontMatter) -> int | None:
    """Index of the opening fence, None when there is no front matter."""
    first = next((index for index, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return None
    if _FENCE.fullmatch(lines[first]):
        if first:
            result.found.append(note("late-front-matter", f"{first} blank lines", f"{where}:{first + 1}"))
        return first
    index = _late_start(lines, first)
    if index is None:
        return None
    if index > first:
        result.found.append(
            note("late-front-matter", f"it starts in line {index + 1}", f"{where}:{index + 1}")
        )
    if not _FENCE.fullmatch(lines[index]):
        result.found.append(note("odd-fence", lines[index].strip(), f"{where}:{index + 1}"))
    return index


def _late_start(lines: list[str], first: int) -> int | None:
    """A fence behind a preamble, or an odd one: it counts only when a usual key and a closing fence follow."""
    wrapped = bool(_CODE_FENCE.match(lines[first]))  # the whole file stands in a code block
    for index in range(first, min(first + _PREAMBLE_LINES, len(lines))):
        line = lines[index]
        if index > first and _CODE_FENCE.match(line):
            return None  # an example of a front matter, not the file's own
        if not (_FENCE.fullmatch(line) or _ODD_FENCE.fullmatch(line)):
            continue
        keyed = any(_USUAL_KEY.match(after) for after in lines[index + 1 : index + 8])
        closed = any(
            _CLOSE.fullmatch(after) or _ODD_CLOSE.fullmatch(after) for after in lines[index + 2 : index + 400]
        )
        if keyed and closed:
            return index
        if wrapped:
            return None
    return None


def _end(lines: list[str], start: int, where: str, result: FrontMatter) -> tuple[int, bool]:
    """(index of the line after the block, whether a fence closes it there)."""
    odd: int | None = None
    for index in range(start + 1, len(lines)):
        if _CLOSE.fullmatch(lines[index]):
            if odd is not None and not _block_like(lines[odd + 1 : index]):
                break  # the odd fence was the real one; this one is a rule in the text
            return index, True
        if odd is None and _ODD_CLOSE.fullmatch(lines[index]):
            odd = index
    if odd is not None:
        result.found.append(note("odd-fence", lines[odd].strip(), f"{where}:{odd + 1}"))
        return odd, True
    index = start + 1
    while index < len(lines) and _may_belong(lines, index):
        index += 1
    return index, False


def _block_like(lines: list[str]) -> bool:
    return all(not line.strip() or _KEY.match(line) or line[0] in " \t-#" for line in lines)


def _may_belong(lines: list[str], index: int) -> bool:
    """In an unterminated block, keys, indented lines and lists belong to it; a heading or prose ends it."""
    line = lines[index]
    if not line.strip():
        following = lines[index + 1] if index + 1 < len(lines) else ""
        return bool(_KEY.match(following)) or following[:1] in (" ", "\t")
    return bool(_KEY.match(line)) or line[0] in " \t" or line.startswith("- ")


def _understand(block: str, first_line: int, where: str, found: list[Diagnostic]) -> Block:
    """Values of the block; `first_line` is the 0-based line of the file on which it begins."""

    def at(line: int) -> str:
        return f"{where}:{first_line + line + 1}"

    lines = block.split("\n")
    if len(block) > MAX_BLOCK_CHARS:
        found.append(note("oversized-front-matter", f"{len(block):,} characters", at(0)))
        block = block[:MAX_BLOCK_CHARS].rpartition("\n")[0]
    dashes = next((number for number, line in enumerate(lines) if "---" in line), None)
    if dashes is not None:
        found.append(note("dashes-in-front-matter", where=at(dashes)))
    tabbed = next((number for number, line in enumerate(lines) if re.match(r"[ ]*\t", line)), None)
    if tabbed is not None:
        found.append(note("tab-in-front-matter", where=at(tabbed)))
        block = re.sub(r"^[ \t]+", lambda match: match[0].replace("\t", "  "), block, flags=re.MULTILINE)
    try:
        result = parse(block)
    except BadYaml as error:
        recovered = recover(block)
        result = recovered.block
        damage = recovered.damage or [("invalid-yaml", error.reason, error.line or 0)]
        found += [note(code, detail, at(line)) for code, detail, line in damage]
    found += [note("duplicate-key", key, at(line)) for key, line in result.duplicates]
    found += [note("comment-cuts-value", key, at(line)) for key, line in result.commented]
    if result.cut:
        found.append(note("oversized-front-matter", "nested too deep, or too many values", at(0)))
    return result
