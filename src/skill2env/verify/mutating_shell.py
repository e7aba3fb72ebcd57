"""Changes to shell scripts and to the programs written inside them, found with tree-sitter's grammar of bash."""

import re
from collections.abc import Iterator
from itertools import pairwise

from tree_sitter import Node

from skill2env import bash_tree
from skill2env.verify.mutating import Change, text_changes
from skill2env.verify.mutating_python import python_changes

_KEPT = frozenset(
    "set cd mkdir export exit source . shopt trap umask local return declare readonly unset : true shift".split()
)
"""Commands whose absence says nothing, or stops the script."""
_TESTS = {
    b"-gt": b"-ge", b"-ge": b"-gt", b"-lt": b"-le", b"-le": b"-lt", b"-eq": b"-ne", b"-ne": b"-eq", b"-z": b"-n",
    b"-n": b"-z", b"==": b"!=", b"!=": b"==", b"=": b"!=",
}  # fmt: skip
_FLAGGED = frozenset("sort uniq grep egrep tr head tail cut jq join comm paste wc sed".split())
_LITTLE_LANGUAGES = frozenset("awk gawk mawk jq sed sqlite3 psql perl ruby node bc".split())
_INTEGER = re.compile(rb"\d+")


def shell_changes(path: str, data: bytes, start: int, end: int) -> list[Change]:
    """Changes to the bash script between two offsets of a file, programs in here-documents included."""
    source = data[start:end]
    root = bash_tree.parse(source)
    return [] if root is None else list(_walk(path, data, start, root))


def _walk(path: str, data: bytes, offset: int, root: Node) -> Iterator[Change]:
    pending = [root]
    while pending:
        node = pending.pop()
        yield from _changes_at(path, data, offset, node)
        if node.type not in ("heredoc_body", "ERROR"):
            pending.extend(reversed(node.children))


def _changes_at(path: str, data: bytes, offset: int, node: Node) -> Iterator[Change]:
    start, end = offset + node.start_byte, offset + node.end_byte
    match node.type:
        case "command":
            yield from _command(path, offset, node)
        case "pipeline":
            yield from _pipeline(path, offset, node)
        case "number":
            yield from _number(path, data, start, end)
        case "test_operator" | "==" | "!=" if data[start:end] in _TESTS:
            yield Change(path, start, end, _TESTS[data[start:end]], "comparison")
        case "raw_string" | "string":
            yield from _string(path, data, offset, node)
        case "heredoc_body":
            yield from _document(path, data, offset, node)
        case "if_statement" | "while_statement":
            yield from _condition(path, offset, node)
        case _:
            pass


def _command(path: str, offset: int, node: Node) -> Iterator[Change]:
    name = _name(node)
    parent = node.parent
    redirected = parent is not None and parent.type == "redirected_statement"
    if name not in _KEPT and (parent is None or parent.type != "pipeline") and not redirected:
        yield Change(path, offset + node.start_byte, offset + node.end_byte, b":", "command removed")
    if name in _FLAGGED:
        for child in node.children[1:]:
            text = child.text or b""
            if (
                child.type == "word"
                and text.startswith(b"-")
                and text not in (b"-", b"--", b"-e", b"-f", b"-c")
            ):
                yield Change(path, offset + child.start_byte, offset + child.end_byte, b"", "flag removed")


def _pipeline(path: str, offset: int, node: Node) -> Iterator[Change]:
    stages = [child for child in node.children if child.is_named]
    for before, stage in pairwise(stages):
        yield Change(path, offset + before.end_byte, offset + stage.end_byte, b"", "stage removed")


def _condition(path: str, offset: int, node: Node) -> Iterator[Change]:
    condition = node.child_by_field_name("condition") or next(
        (child for child in node.children if child.is_named), None
    )
    if node.type == "if_statement" and condition is not None and condition.type == "test_command":
        at = offset + condition.start_byte
        yield Change(path, at, at, b"! ", "condition")


def _number(path: str, data: bytes, start: int, end: int) -> Iterator[Change]:
    if _INTEGER.fullmatch(data[start:end]):
        yield Change(path, start, end, str(int(data[start:end]) + 1).encode(), "number")


def _string(path: str, data: bytes, offset: int, node: Node) -> Iterator[Change]:
    start, end = offset + node.start_byte + 1, offset + node.end_byte - 1
    command = _enclosing_command(node)
    name = "" if command is None else _name(command)
    if name.startswith("python") and node.type == "raw_string":
        yield from python_changes(path, data, start, end)
    elif name in _LITTLE_LANGUAGES:
        yield from (
            change for change in text_changes(path, data, start, end) if change.kind != "line removed"
        )
        for match in re.finditer(rb"\$(\d)", data[start:end]):
            new = b"$" + str(int(match[1]) + 1).encode()
            yield Change(path, start + match.start(), start + match.end(), new, "field")
    elif name in ("echo", "printf") and end > start:
        yield Change(path, start, start, b"x", "text")


def _document(path: str, data: bytes, offset: int, node: Node) -> Iterator[Change]:
    """A here-document: a program that is run, a program that is delivered, or data."""
    start, end = offset + node.start_byte, offset + node.end_byte
    statement = node.parent.parent if node.parent is not None else None
    head = data[offset + statement.start_byte : start].split(b"<<")[0] if statement is not None else b""
    rest = data[offset + statement.start_byte : start] if statement is not None else b""
    body = data[start:end]
    if (
        re.match(rb"\s*\S*python[\d.]*\b", head)
        or b".py" in rest
        or body.startswith(b"#!/usr/bin/env python")
    ):
        found = python_changes(path, data, start, end)
        if found:
            yield from found
            return
    if re.match(rb"\s*\S*\b(?:ba|da)?sh\b", head) or re.search(rb"\.(?:sh|bash)\b", rest):
        yield from shell_changes(path, data, start, end)
        return
    yield from python_changes(path, data, start, end) or text_changes(path, data, start, end)


def _name(command: Node) -> str:
    name = command.child_by_field_name("name")
    text = (name.text if name is not None else b"") or b""
    return text.decode(errors="replace").rpartition("/")[2]


def _enclosing_command(node: Node) -> Node | None:
    parent = node.parent
    while parent is not None and parent.type != "command":
        if parent.type in ("program", "command_substitution"):
            return None
        parent = parent.parent
    return parent
