"""Python programs as the calls and constants in them. Nothing is imported or executed."""

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

TEXT_LIMIT = 512 * 1024
"""Longer programs are not read; characters."""
_NODE_LIMIT = 100_000
_RUNS_LIST = frozenset(
    "subprocess.run subprocess.call subprocess.check_call subprocess.check_output subprocess.Popen".split()
)
_RUNS_TEXT = frozenset("os.system os.popen subprocess.getoutput subprocess.getstatusoutput".split())


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function that has a name."""

    name: str
    """Dotted, with import aliases undone: ``urllib.request.urlopen``."""
    node: ast.Call
    line: int


class Source:
    """A parsed program."""

    def __init__(self, tree: ast.Module) -> None:
        """Collect what the other methods look up."""
        self.tree = tree
        self.nodes = [node for _, node in zip(range(_NODE_LIMIT), ast.walk(tree), strict=False)]
        self.aliases = dict(_aliases(self.nodes))
        self.constants: dict[str, ast.expr] = {}
        for node in self.nodes:
            if (
                isinstance(node, ast.Assign)
                and len(node.targets) == 1
                and isinstance(node.targets[0], ast.Name)
            ):
                self.constants.setdefault(node.targets[0].id, node.value)

    def name_of(self, node: ast.expr) -> str:
        """Dotted name of an expression; empty when it is none."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        parts.append(self.aliases.get(node.id, node.id))
        return ".".join(reversed(parts))

    def calls(self) -> Iterator[Call]:
        """Every call of something that has a name."""
        for node in self.nodes:
            if isinstance(node, ast.Call):
                name = self.name_of(node.func)
                if name:
                    yield Call(name, node, node.lineno)

    def modules(self) -> set[str]:
        """Modules that are imported anywhere in it."""
        found: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module)
        return found

    def text(self, node: ast.expr | None, depth: int = 0) -> str | None:
        """The string that an expression begins with, as far as it is known: ``f"http://{host}/"`` gives ``http://``."""
        if node is None or depth > 6:
            return None
        match node:
            case ast.Constant(value=str() as value):
                return value
            case ast.JoinedStr(values=values):
                return self._joined(values, depth)
            case ast.BinOp(left=left, op=ast.Add() | ast.Mod()):
                return self.text(left, depth + 1)
            case ast.Name(id=name) if name in self.constants:
                return self.text(self.constants[name], depth + 1)
            case ast.Call(func=ast.Attribute(value=value, attr="format")):
                return self.text(value, depth + 1)
            case ast.Call(args=[first, *_]) if self.name_of(node.func).rpartition(".")[2] in (
                "Path",
                "Request",
            ):
                return self.text(first, depth + 1)
            case _:
                return None

    def _joined(self, values: list[ast.expr], depth: int) -> str:
        known = ""
        for value in values:
            inner = value.value if isinstance(value, ast.FormattedValue) else value
            part = self.text(inner, depth + 1)
            if part is None:
                break
            known += part
        return known

    def strings(self) -> Iterator[tuple[str, int]]:
        """Constant strings with their lines, those of docstrings left out."""
        docstrings = {
            id(node.body[0].value)
            for node in self.nodes
            if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in self.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield node.value, node.lineno

    def numbers(self) -> list[int | float]:
        """Constant numbers."""
        return [
            node.value
            for node in self.nodes
            if isinstance(node, ast.Constant)
            and isinstance(node.value, int | float)
            and not isinstance(node.value, bool)
        ]

    def commands(self) -> Iterator[tuple[tuple[str, ...], int]]:
        """Programs that it starts, as words; what is only known at run time is ``$?``."""
        for call in self.calls():
            argument = call.node.args[0] if call.node.args else None
            if call.name in _RUNS_TEXT or (call.name in _RUNS_LIST and self.text(argument) is not None):
                text = self.text(argument)
                if text:
                    yield ("bash", "-c", text), call.line
            elif call.name in _RUNS_LIST and isinstance(argument, ast.List | ast.Tuple):
                yield tuple(self._word(item) for item in argument.elts), call.line

    def _word(self, node: ast.expr) -> str:
        if self.name_of(node) == "sys.executable":
            return "python3"
        return self.text(node) or "$?"


def read(text: str) -> Source | None:
    """Parse a program; None when it is too long or is not Python."""
    if len(text) > TEXT_LIMIT:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Source(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _aliases(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    yield alias.asname, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"
