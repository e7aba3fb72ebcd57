"""The commonest YAML blocks, read line by line instead of by the parser, which takes a third of the time of a skill.

Only forms whose meaning is beyond doubt: ``key: text`` with printable characters and distinct keys; lists of words, as
``[a, b]`` or one ``- item`` a line; one level of ``key: text`` below a key; block scalars of one even paragraph; plain
text that goes on in indented lines. A test compares it with the parser.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_MAX_CHARS = 20_000
_KEY = r"([A-Za-z][A-Za-z0-9_-]{0,60})"
_TEXT = r"[A-Za-z(/](?:[^:#]|:(?! |$)|(?<! )#)*"
_QUOTED = r"\"([^\"\\]*)\"|'([^']*)'"
_VERSION = r"[0-9]+\.[0-9]+\.[0-9]+"
_TOP = re.compile(
    rf"{_KEY}:(?: +(?:({_TEXT}|{_VERSION})|{_QUOTED}|\[([^\[\]{{}}#:\"'&*!|>%@`?]*)\]|([|>]-?)))?"
)
_LINE = re.compile(r"( +)(\S(?:.*\S)?)")
_BELOW = re.compile(rf"( +){_KEY}: +(?:({_TEXT}|[0-9][\w.-]*)|{_QUOTED})")
_ITEM = re.compile(rf"( *)- +(?:({_TEXT}|[0-9][\w.-]*)|{_QUOTED})")
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
        match = _TOP.fullmatch(lines[at])
        at += 1
        if match is None:
            raise _Doubt
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
            if plain is not None and (plain in _TRUTHS or plain.lower() in _WORDS_1_1):
                not_text[key] = "bool"
            more = _block(lines, at) if plain is not None else []
            if more:
                at += len(more)
                values[key] = " ".join([plain or "", *map(_continued, more)])
                not_text.pop(key, None)
                multi_line.add(key)
    if not values:
        raise _Doubt
    return Simple(values, not_text, multi_line)


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


def _nested(lines: list[str]) -> tuple[dict[str, str] | list[str], str]:
    if not lines:
        raise _Doubt
    form = _ITEM if lines[0].lstrip(" ").startswith("- ") else _BELOW
    found = [form.fullmatch(line) for line in lines]
    indents = {match[1] if match else None for match in found}
    if None in indents or len(indents) != 1:
        raise _Doubt
    matches = [match for match in found if match]
    if form is _ITEM:
        return [_scalar(*match.groups()[1:]) for match in matches], "list"
    below = {match[2]: _scalar(*match.groups()[2:]) for match in matches}
    if len(below) != len(matches) or any(key.lower() in _OWN_WORDS for key in below):
        raise _Doubt
    return below, "map"


def _scalar(plain: str | None, double: str | None, single: str | None) -> str:
    if plain is None:
        return double if double is not None else single or ""
    if plain.lower() == "null" or plain[-1] in " :":
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
