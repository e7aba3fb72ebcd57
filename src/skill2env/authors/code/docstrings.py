"""Calls that docstrings show: the examples after ``>>>``, read and never run here.

Covers: calls of module-level functions of the same file with arguments that are literals, or names that an earlier
line of the same docstring gave a literal. What an example prints is not believed: the original is run and recorded.
"""

import ast
import doctest
from collections.abc import Iterator, Mapping
from typing import Any

from skill2env.authors.code.cases import Case
from skill2env.authors.code.templates.tagged_values import Encoder, Unsupported
from skill2env.authors.code.understand import ModuleInfo, Project

MAX_CALLS = 200
"""Of one module."""


def shown_in_docstrings(project: Project) -> list[Case]:
    """Every call that an example makes, once, in the order of files and lines."""
    found: dict[str, Case] = {}
    for file, module in sorted(project.modules.items()):
        calls = [case for doc in _docs(module) for case in _calls(file, module, doc)][:MAX_CALLS]
        found.update({case.id: case for case in calls if case.id not in found})
    return list(found.values())


def _docs(module: ModuleInfo) -> Iterator[str]:
    for node in ast.walk(module.source.tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            doc = ast.get_docstring(node)
            if doc and ">>>" in doc:
                yield doc


def _calls(file: str, module: ModuleInfo, doc: str) -> Iterator[Case]:
    names = {info.name for info in module.functions if "." not in info.name}
    known: dict[str, Any] = {}
    for statement in _statements(doc):
        value = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                case = _case(file, names, node, known)
                if case is not None:
                    yield case
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            known.pop(name, None)
            try:
                known[name] = _literal(value, known)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                continue


def _statements(doc: str) -> Iterator[ast.stmt]:
    """Statements of all examples; what cannot be parsed is left out."""
    try:
        examples = doctest.DocTestParser().get_examples(doc)
    except ValueError:
        return
    for example in examples:
        try:
            yield from ast.parse(example.source).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue


def _case(file: str, names: set[str], node: ast.Call, known: Mapping[str, Any]) -> Case | None:
    """The call as a case; None for a function of somebody else or arguments that are no literals."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Name):
        return None
    if name not in names or any(keyword.arg is None for keyword in node.keywords):
        return None
    encoder = Encoder(lambda _: None)
    try:
        args = [encoder.encode(_literal(item, known)) for item in node.args]
        kwargs = {str(k.arg): encoder.encode(_literal(k.value, known)) for k in node.keywords}
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, Unsupported):
        return None
    data = {"kind": "function", "file": file, "name": name, "args": args, "kwargs": kwargs}
    return Case.read({**data, "test": "documentation"})


def _literal(node: ast.expr | None, known: Mapping[str, Any]) -> Any:
    """Value of a literal, or of a name that stands for one. Raises what `ast.literal_eval` raises."""
    if isinstance(node, ast.Name) and node.id in known:
        return known[node.id]
    if node is None:
        raise ValueError("no expression")
    return ast.literal_eval(node)
