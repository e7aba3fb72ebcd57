"""Shell scripts as the commands in them. Nothing is executed and nothing is expanded but plain variables.

Covers: pipelines, lists, functions, substitutions, redirections, here-documents, variables that are assigned once.
Does not cover: arrays, arithmetic, aliases, commands whose name is only known at run time.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from skill2env import bash_tree

TEXT_LIMIT = 512 * 1024
"""Longer scripts are cut; characters."""
_DEPTH_LIMIT = 200
_WRAPPERS = frozenset(
    "command exec nice nohup setsid stdbuf sudo time timeout unbuffer env xargs builtin eatmydata fakeroot".split()
)
_WITH_VALUE: Mapping[str, frozenset[str]] = {
    "timeout": frozenset({"-k", "-s", "--signal", "--kill-after"}),
    "nice": frozenset({"-n", "--adjustment"}),
    "env": frozenset({"-u", "-C", "--unset", "--chdir"}),
    "sudo": frozenset({"-u", "-g", "-h", "-p"}),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
    "xargs": frozenset({"-n", "-P", "-I", "-L", "-d", "-a", "-s", "-E"}),
}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_DURATION = re.compile(r"[\d.]+[smhd]?")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection of one command, or of the group that it stands in."""

    operator: str
    target: str


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command."""

    words: tuple[str, ...]
    """As bash would split them; what is only known at run time stays as written (``$x``)."""
    line: int
    redirects: tuple[Redirect, ...] = ()
    stdin: str | None = None
    """Text of its here-document or here-string."""
    stdin_line: int = 0
    guarded: bool = False
    """It runs only when something else failed or was missing: in a branch, or behind ``||``."""
    conditional: bool = False
    """It is itself a condition."""

    @property
    def call(self) -> tuple[str, ...]:
        """Program name without folder and its arguments, behind ``env``, ``timeout`` and the like."""
        return unwrapped(self.words)


@dataclass(frozen=True, slots=True)
class Script:
    """What a script holds."""

    commands: tuple[Command, ...]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Plain assignments; a name that is assigned twice keeps its last value."""


def read(text: str) -> Script:
    """Commands of a script, in the order of the text.

    A script that bash refuses gives what can be read of it, one that is too tangled nothing (gate `shell` rejects it).
    """
    data = text[:TEXT_LIMIT].encode("utf-8", errors="replace")
    reader = _Reader(data)
    root = bash_tree.parse(data)
    if root is not None:
        reader.visit(root, (), guarded=False, conditional=False, depth=0)
    return Script(tuple(sorted(reader.commands, key=lambda command: command.line)), reader.variables)


def unwrapped(words: Sequence[str]) -> tuple[str, ...]:
    """The command that a chain of wrappers starts, its program without its folder."""
    rest = list(words)
    while rest:
        while rest and _ASSIGNMENT.match(rest[0]):
            rest.pop(0)
        if not rest:
            return ()
        name = rest[0].rpartition("/")[2]
        if name not in _WRAPPERS or len(rest) == 1:
            return (name, *rest[1:])
        rest = _behind(name, rest[1:])
    return ()


def _behind(wrapper: str, rest: list[str]) -> list[str]:
    if wrapper == "command" and rest and rest[0] in ("-v", "-V"):
        return []  # asks for a program and starts none
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "--":
            break
        if option in _WITH_VALUE.get(wrapper, frozenset()) and rest:
            rest.pop(0)
    if wrapper == "timeout" and rest and _DURATION.fullmatch(rest[0]):
        rest.pop(0)
    return rest


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.commands: list[Command] = []
        self.variables: dict[str, str] = {}

    def visit(
        self, node: Node, outer: tuple[Node, ...], *, guarded: bool, conditional: bool, depth: int
    ) -> None:
        """Walk down; `outer` are redirections of the groups around."""
        if depth > _DEPTH_LIMIT:
            return
        if node.type == "command":
            self._command(node, outer, guarded=guarded, conditional=conditional)
        elif node.type == "variable_assignment":
            self._assign(node)
        for child, is_guarded, is_condition in _children(node):
            around = outer
            if node.type == "redirected_statement":
                around = (*(c for c in node.named_children if c.type.endswith("_redirect")), *outer)
            self.visit(
                child,
                around if not child.type.endswith("_redirect") else (),
                guarded=guarded or is_guarded,
                conditional=(conditional or is_condition) and not is_guarded,
                depth=depth + 1,
            )

    def _assign(self, node: Node) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None and name.type == "variable_name":
            self.variables[self._text(name)] = self._value(value) if value is not None else ""

    def _command(self, node: Node, outer: tuple[Node, ...], *, guarded: bool, conditional: bool) -> None:
        words: list[str] = []
        own: list[Node] = []
        for child in node.named_children:
            if child.type.endswith("_redirect"):
                own.append(child)
            elif child.type == "variable_assignment":
                words.append(self._text(child))
            elif child.type != "comment":
                words.append(self._value(child))
        redirects: list[Redirect] = []
        stdin: str | None = None
        stdin_line = 0
        for redirect in (*own, *outer):
            if redirect.type == "file_redirect":
                redirects.append(self._redirect(redirect))
            elif stdin is None:
                stdin, stdin_line = self._stdin(redirect)
        if words:
            line = node.start_point[0] + 1
            self.commands.append(
                Command(tuple(words), line, tuple(redirects), stdin, stdin_line, guarded, conditional)
            )

    def _redirect(self, node: Node) -> Redirect:
        operator = next((self._text(c) for c in node.children if not c.is_named), ">")
        target = node.named_children[-1] if node.named_children else None
        return Redirect(operator, self._value(target) if target is not None else "")

    def _stdin(self, node: Node) -> tuple[str, int]:
        if node.type == "herestring_redirect":
            value = node.named_children[-1] if node.named_children else None
            return (self._value(value) if value is not None else ""), node.start_point[0] + 1
        body = next((child for child in node.named_children if child.type == "heredoc_body"), None)
        return (
            (self._text(body), body.start_point[0] + 1) if body is not None else ("", node.start_point[0] + 1)
        )

    def _value(self, node: Node) -> str:
        match node.type:
            case "raw_string":
                return self._text(node)[1:-1]
            case "ansi_c_string":
                return self._text(node)[2:-1]
            case "string":
                return self._known(re.sub(r'\\(["$`\\])', r"\1", self._text(node)[1:-1]))
            case "word":
                return self._known(re.sub(r"\\(.)", r"\1", self._text(node)))
            case "command_name" if len(node.named_children) == 1:
                return self._value(node.named_children[0])
            case "concatenation":
                return "".join(self._value(child) for child in node.named_children)
            case _:
                return self._known(self._text(node))

    def _known(self, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            return self.variables.get(match[1] or match[2], match[0])

        return _VARIABLE.sub(value, text) if "$" in text else text

    def _text(self, node: Node) -> str:
        return self._data[node.start_byte : node.end_byte].decode("utf-8", errors="replace")


def _children(node: Node) -> Iterator[tuple[Node, bool, bool]]:
    """Named children with whether they run only in a special case, and whether they are a condition."""
    if node.type in ("if_statement", "elif_clause", "while_statement"):
        condition = True
        for child in node.children:
            if child.type in ("then", "do", "else"):
                condition = False
            if child.is_named:
                yield child, not condition, condition
    elif node.type == "list":
        operators = [child.type for child in node.children if not child.is_named]
        for number, child in enumerate(node.named_children):
            behind = number > 0 and operators[:1] == ["||"]
            before = number == 0 and bool(operators) and operators[0] in ("||", "&&")
            yield child, behind, before
    elif node.type == "case_item":
        for child in node.named_children:
            yield child, True, False
    else:
        for child in node.named_children:
            yield child, False, False
