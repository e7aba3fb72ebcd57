"""What a solution does, without its words: commands and syntax in order, names, values and paths left out.

Two solutions with one strategy have the same sequence although every file, variable and sentence differs. Shell is
read through its syntax tree, Python through `ast` (files, and here-documents fed to python); other languages are not
understood and give nothing. Nothing is run.
"""

import ast
import builtins
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from tree_sitter import Node

from skill2env import bash_tree
from skill2env.analysis.reading import FILE_LIMIT, read_bytes
from skill2env.analysis.records import TaskRecord

BUILTINS = frozenset(
    "set cd export echo printf exit true false test [ : local return shift unset source . trap read eval exec"
    " declare readonly let pwd umask wait break continue".split()
)
"""Commands that say nothing about a strategy."""
MOST_STEPS = 4000
"""Steps of one solution that count; generated tables of data make no longer strategy."""

_BUILTIN_CALLS = frozenset(dir(builtins))
_FLAG = re.compile(r"--?[A-Za-z][\w-]*")
_PROGRAM = re.compile(r"[A-Za-z_][\w.+-]*")
_PYTHON = re.compile(r"python[\d.]*")


def solution_files(task: TaskRecord) -> Iterator[tuple[str, bytes]]:
    """Path and content of the programs below solution/, ``solve.sh`` first."""
    paths = [path for path, _ in task.files if path.startswith("solution/") and path.endswith((".sh", ".py"))]
    for path in sorted(paths, key=lambda item: (not item.endswith("/solve.sh"), item)):
        data = read_bytes(Path(task.folder) / path, FILE_LIMIT)
        if data:
            yield path, data


def strategy_of(task: TaskRecord) -> tuple[str, ...]:
    """Steps of the reference solution of a task, in order; empty when it has none that is understood."""
    steps: list[str] = []
    for path, data in solution_files(task):
        steps += python_steps(data.decode("utf-8", "replace")) if path.endswith(".py") else shell_steps(data)
        if len(steps) >= MOST_STEPS:
            break
    return tuple(steps[:MOST_STEPS])


def tools_of(task: TaskRecord) -> frozenset[str]:
    """Programs that the reference solution calls, builtins left out."""
    found: set[str] = set()
    for path, data in solution_files(task):
        if path.endswith(".py"):
            found.add("python3")
            continue
        root = bash_tree.parse(data)
        if root is not None:
            found.update(name for node in _commands(root) if (name := _name(node)) and name not in BUILTINS)
    return frozenset(found)


def shell_steps(script: bytes) -> list[str]:
    """Commands with their flags, control structures, and what here-documents give to python."""
    root = bash_tree.parse(script)
    return [] if root is None else list(_shell(root, script))


def _commands(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "command":
            yield node
        stack.extend(reversed(node.named_children))


def _name(node: Node) -> str:
    name = node.child_by_field_name("name")
    text = (name.text or b"").decode("utf-8", "replace") if name is not None else ""
    text = text.rsplit("/", 1)[-1]
    return text if _PROGRAM.fullmatch(text) else ""


def _shell(root: Node, script: bytes) -> Iterator[str]:
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "command":
            name = _name(node)
            if name and name not in BUILTINS:
                flags = sorted(
                    {
                        text
                        for child in node.named_children
                        if _FLAG.fullmatch(text := (child.text or b"").decode("utf-8", "replace"))
                    }
                )
                yield " ".join([name, *flags])
        elif node.type in {"for_statement", "while_statement", "if_statement", "case_statement", "pipeline"}:
            yield node.type.removesuffix("_statement")
        elif node.type == "heredoc_body":
            text = script[node.start_byte : node.end_byte].decode("utf-8", "replace")
            yield from python_steps(text) or ["heredoc"]
        stack.extend(reversed(node.named_children))


def python_steps(text: str) -> list[str]:
    """Statements and called functions in the order of the text; nothing when it is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a stranger's odd escapes are no news
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    steps: list[str] = []
    imported = _imported(tree)
    for node in _in_order(tree):
        if isinstance(node, ast.Call):
            steps.append(f"call {_callee(node.func, imported)}")
        elif (
            isinstance(node, ast.stmt)
            and not isinstance(node, ast.Expr | ast.Import | ast.ImportFrom | ast.Pass)
        ) or isinstance(node, ast.operator | ast.cmpop | ast.boolop | ast.comprehension):
            steps.append(type(node).__name__.lower())
    return steps


def _in_order(tree: ast.AST) -> Iterator[ast.AST]:
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(ast.iter_child_nodes(node))))


def _imported(tree: ast.AST) -> frozenset[str]:
    return frozenset(
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    )


def _callee(node: ast.expr, imported: frozenset[str]) -> str:
    """A method's or library function's own name; a function of the program itself is just ``own``."""
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    if isinstance(node, ast.Name):
        known = node.id in imported or node.id in _BUILTIN_CALLS
        return node.id if known else "own"
    return "value"
