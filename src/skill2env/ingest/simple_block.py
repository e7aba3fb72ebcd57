"""The commonest YAML blocks, read line by line instead of by the parser, which takes a third of the time of a skill.

Only forms whose meaning is beyond doubt: ``key: text`` with printable characters and distinct keys; lists of words, as
``[a, b]`` or one ``- item`` a line; ``key: text`` below a key or an item, a few levels deep; block scalars of one even
paragraph; plain or quoted text that goes on in indented lines. A test compares it with the parser.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_MAX_CHARS = 20_000
_MAX_DEPTH = 8
_KEY = r"([A-Za-z][A-Za-z0-9_-]{0,60})"
_TEXT = r"[A-Za-z(/](?:[^:#]|:(?! |$)|(?<! )#)*"
_QUOTED = r"\"((?:[^\"\\]|\\[\"\\])*)\"|'((?:[^']|'')*)'"
_COUNTED = r"[0-9]{1,4}-?[a-z]*[ -][A-Za-z](?:[^:#]|:(?! |$)|(?<! )#)*"
"""Text that begins with a number of things, such as ``3-clause BSD``, and is no number or date."""
_ESCAPE = re.compile(r"\\([\"\\])")
_VERSION = r"[0-9]+\.[0-9]+\.[0-9]+"
_TOP = re.compile(
    rf"{_KEY}:(?: +(?:({_TEXT}|{_VERSION}|{_COUNTED})|{_QUOTED}|\[([^\[\]{{}}#:\"'&*!|>%@`?]*)\]|([|>]-?)))?"
)
_QUOTE = re.compile(rf"{_KEY}: +[\"']")
_LINE = re.compile(r"( +)(\S(?:.*\S)?)")
_BELOW = re.compile(rf"( +){_KEY}: +(?:({_TEXT}|[0-9][\w.-]*)|{_QUOTED})")
_ITEM = re.compile(rf"( *)- +(?:({_TEXT}|[0-9][\w.-]*)|{_QUOTED})")
_OPEN = re.compile(rf" +{_KEY}:")
_WORD = re.compile(r"[A-Za-z0-9/][\w./+ -]*")
_MORE = re.compile(rf" +({_TEXT}|[0-9](?:[^:#]|:(?! |$)|(?<! )#)*)")
_WORDS_1_1 = frozenset({"yes", "no", "on", "off", "y", "n"})
_TRUTHS = frozenset({"true", "True", "TRUE", "false", "False", "FALSE"})
_OWN_WORDS = _WORDS_1_1 | {"null", "true", "false"}
"""Words of YAML's own, of either version; as keys they are left to the parser."""


@dataclass(frozen=True, slots=True)
class Simple:
    """What a block says."""

    values: dict[str, Any]
    not_text: dict[str, str]
    """Key -> ``map``, ``list`` or ``bool``."""
    multi_line: set[str]
    """Keys whose value is a block scalar or spans lines."""


class _Doubt(Exception):
    """The parser must look at it."""


def read_simple(block: str) -> Simple | None:
    """Read a block; None when only the parser can tell what it means."""
    if len(block) > _MAX_CHARS:
        return None
    lines = block.rstrip("\n").split("\n")
    if not all(map(str.isprintable, lines)):
        return None
    try:
        return _read(lines, ended=block.endswith("\n"))
    except _Doubt:
        return None


def _read(lines: list[str], *, ended: bool) -> Simple:
    values: dict[str, Any] = {}
    not_text: dict[str, str] = {}
    multi_line: set[str] = set()
    at = 0
    while at < len(lines):
        if not lines[at]:
            at += 1
            if _block(lines, at):  # the value before goes on behind the empty line
                raise _Doubt
            continue
        match = _TOP.fullmatch(lines[at])
        at += 1
        if match is None:
            match, more = _long_quote(lines, at - 1)
            at += more
            multi_line.add(match[1])
        key, plain, double, single, flow, style = match.groups()
        if key in values or key.lower() in _OWN_WORDS:
            raise _Doubt
        if flow is not None:
            values[key], not_text[key] = list(_words(flow)), "list"
        elif style is not None:
            below = _block(lines, at)
            at += len(below)
            values[key] = _paragraph(below, style, ended=ended or at < len(lines))
            multi_line.add(key)
        elif plain is None and double is None and single is None:
            below = _block(lines, at)
            at += len(below)
            values[key], not_text[key] = _nested(below)
        else:
            values[key] = _scalar(plain, double, single)
            if plain is not None and (values[key] in _TRUTHS or values[key].lower() in _WORDS_1_1):
                not_text[key] = "bool"
            more = _block(lines, at) if plain is not None else []
            if more:
                at += len(more)
                values[key] = " ".join([(plain or "").rstrip(" "), *map(_continued, more)])
                not_text.pop(key, None)
                multi_line.add(key)
    if not values:
        raise _Doubt
    return Simple(values, not_text, multi_line)


def _long_quote(lines: list[str], at: int) -> tuple[re.Match[str], int]:
    """A quoted text that goes on in indented lines, joined as YAML joins them; and how many these are."""
    if not _QUOTE.match(lines[at]):
        raise _Doubt
    joined, empty = lines[at].rstrip(" "), 0
    for count, line in enumerate(lines[at + 1 :], 1):
        part = line.strip(" ")
        if not part:
            empty += 1
            continue
        if line[0] != " ":
            break
        joined += "\n" * empty + part if empty else f" {part}"
        empty = 0
        match = _TOP.fullmatch(joined)
        if match:
            return match, count
    raise _Doubt


def _block(lines: list[str], at: int) -> list[str]:
    end = at
    while end < len(lines) and lines[end].startswith((" ", "- ")):
        end += 1
    return lines[at:end]


def _paragraph(lines: list[str], style: str, *, ended: bool) -> str:
    """A block scalar whose lines are evenly indented, with nothing blank between them."""
    found = [_LINE.fullmatch(line) for line in lines]
    if not lines or len({match[1] if match else None for match in found}) != 1 or None in found:
        raise _Doubt
    joint = "\n" if style[0] == "|" else " "
    return joint.join(match[2] for match in found if match) + ("\n" if ended and style in "|>" else "")


def _continued(line: str) -> str:
    match = _MORE.fullmatch(line.rstrip(" "))
    if match is None or match[1].endswith(":"):
        raise _Doubt
    return match[1]


def _nested(lines: list[str], depth: int = 0) -> tuple[dict[str, Any] | list[Any], str]:
    """Evenly indented items or keys, each with text or with more of the same below it."""
    if not lines or depth > _MAX_DEPTH:
        raise _Doubt
    indent = len(lines[0]) - len(lines[0].lstrip(" "))
    if lines[0].startswith("- ", indent):
        return [_item(entry, indent, depth) for entry in _entries(lines, indent)], "list"
    below: dict[str, Any] = {}
    for first, *rest in _entries(lines, indent, items=True):
        match = _BELOW.fullmatch(first)
        opened = None if match else _OPEN.fullmatch(first)
        if match and not rest:
            key, value = match[2], _scalar(*match.groups()[2:])
        elif opened:
            key, value = opened[1], _nested(rest, depth + 1)[0]
        else:
            raise _Doubt
        if key in below or key.lower() in _OWN_WORDS:
            raise _Doubt
        below[key] = value
    return below, "map"


def _item(lines: list[str], indent: int, depth: int) -> Any:
    """One item of a list: text, or a map whose first key stands behind the hyphen."""
    match = _ITEM.fullmatch(lines[0])
    if match and len(lines) == 1:
        return _scalar(*match.groups()[1:])
    behind = lines[0][indent + 1 :]
    if match or behind[:1] != " " or behind[1:2] in (" ", "-"):
        raise _Doubt
    return _nested([f"{' ' * (indent + 1)}{behind}", *lines[1:]], depth + 1)[0]


def _entries(lines: list[str], indent: int, *, items: bool = False) -> Iterator[list[str]]:
    """Lines by what they belong to: one at the indent and those below it.

    Args:
        lines: without an empty one; the first stands at the indent.
        indent: blanks before each entry.
        items: a list may begin at the indent of the key that it belongs to.
    """
    entry: list[str] = []
    for line in lines:
        inner = len(line) - len(line.lstrip(" "))
        if inner == len(line) or inner < indent:
            raise _Doubt
        if entry and (inner > indent or (items and line.startswith("- ", indent))):
            entry.append(line)
            continue
        if entry:
            yield entry
        entry = [line]
    yield entry


def _scalar(plain: str | None, double: str | None, single: str | None) -> str:
    if double is not None:
        return _ESCAPE.sub(r"\1", double)
    if plain is None:
        return (single or "").replace("''", "'")
    plain = plain.rstrip(" ")
    if plain.lower() == "null" or plain[-1] == ":":
        raise _Doubt
    return plain


def _words(flow: str) -> Iterator[str]:
    if not flow.strip():
        return
    for part in flow.split(","):
        word = part.strip(" ")
        if not _WORD.fullmatch(word) or word.lower() == "null":
            raise _Doubt
        yield word
