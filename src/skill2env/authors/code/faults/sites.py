"""Every place of a module where an operator of the catalogue applies, in a fixed order."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from skill2env.authors.code.faults.catalog import Function, Kind, Place
from skill2env.authors.code.faults.operators import OPERATORS
from skill2env.authors.code.faults.source import Edit, Source, parses

SILENT_CALLS = {
    "print",
    "error",
    "warning",
    "info",
    "debug",
    "exception",
    "add_argument",
    "ArgumentParser",
    "log",
}
"""Calls whose arguments are texts for people: a changed word there is not a fault worth a task."""
SILENT_NAMES = ("version", "disclaimer", "__all__", "help", "usage", "epilog")


@dataclass(frozen=True, slots=True)
class Site:
    """One possible fault."""

    file: str
    function: str
    """Qualified name of the innermost named function, empty for module level."""
    kind: Kind
    edit: Edit
    line: int

    @property
    def key(self) -> str:
        """Stable name of the site within its project."""
        return f"{self.file}:{self.edit.start}-{self.edit.end}:{self.kind}:{self.edit.text}"


def find_sites(file: str, source: Source) -> list[Site]:
    """All sites of a module that still parse, sorted by position, kind and text; no two give the same text."""
    found: list[Site] = []
    seen: set[Edit] = set()
    for place, name in _places(source):
        for kind, operator in OPERATORS:
            for edit in operator(place):
                old = source.data[edit.start : edit.end].decode()
                if edit in seen or edit.text == old or not parses(source.apply(edit)):
                    continue
                seen.add(edit)
                found.append(Site(file, name, kind, edit, source.line_of(edit.start)))
    return sorted(found, key=lambda site: (site.edit.start, site.edit.end, site.kind, site.edit.text))


def _places(source: Source) -> Iterator[tuple[Place, str]]:
    """Every node that may carry a fault, with the qualified name of its function."""

    def walk(
        node: ast.AST, parent: ast.AST, function: Function | None, name: str
    ) -> Iterator[tuple[Place, str]]:
        if _is_silent(node, parent):
            return
        yield Place(source, node, parent, function), name
        inner_function, inner_name = function, name
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner_name = f"{name}.{node.name}" if name else node.name
            if not isinstance(node, ast.ClassDef):
                inner_function = node
        for child in ast.iter_child_nodes(node):
            yield from walk(child, node, inner_function, inner_name)

    for node in source.tree.body:
        yield from walk(node, source.tree, None, "")


def _is_silent(node: ast.AST, parent: ast.AST) -> bool:
    """True for parts whose change no user would call a fault: docs, messages, annotations, the command line itself."""
    if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.If) and any(
        isinstance(p, ast.Name) and p.id == "__name__" for p in ast.walk(node.test)
    ):
        return True
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return called in SILENT_CALLS
    if isinstance(node, ast.Assign):
        names = [target.id.lower() for target in node.targets if isinstance(target, ast.Name)]
        return any(word in name for name in names for word in SILENT_NAMES)
    annotation = getattr(parent, "annotation", None) is node or getattr(parent, "returns", None) is node
    decorator = node in getattr(parent, "decorator_list", ())
    return annotation or decorator
