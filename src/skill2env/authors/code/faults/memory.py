"""Faults in what is remembered: caches, keys by which records are joined, which of two entries wins."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# Nodes of a syntax tree are taken apart by shape; every operator checks the shape it needs.

import ast
from collections.abc import Iterator

from skill2env.authors.code.faults.catalog import Place, called
from skill2env.authors.code.faults.source import Edit


def cache(place: Place) -> Iterator[Edit]:
    """A seen item is not remembered; what belongs to one round of a loop is not reset in the next."""
    node, parent, source = place.node, place.parent, place.source
    remembers = isinstance(node, ast.Expr) and called(node.value) in ("add", "discard", "clear", "pop")
    if remembers and isinstance(node.value.func, ast.Attribute):  # type: ignore[attr-defined]
        yield source.replace(node, "pass")
    if (
        isinstance(node, ast.Assign)
        and isinstance(parent, ast.For | ast.While)
        and place.function is not None
    ):
        target = node.targets[0]
        empty = isinstance(node.value, ast.List | ast.Dict | ast.Constant) and not _content(node.value)
        if len(node.targets) == 1 and isinstance(target, ast.Name) and empty:
            if _bound_before(place.function, target.id, node.lineno):
                yield source.replace(node, "pass")


def _content(node: ast.expr) -> bool:
    """True for a literal that is not empty."""
    if isinstance(node, ast.List):
        return bool(node.elts)
    if isinstance(node, ast.Dict):
        return bool(node.keys)
    return bool(getattr(node, "value", True))


def _bound_before(function: ast.AST, name: str, line: int) -> bool:
    """True when a name has a value before a line, so that leaving out an assignment there raises nothing."""
    return any(
        isinstance(part, ast.Name)
        and isinstance(part.ctx, ast.Store)
        and part.id == name
        and part.lineno < line
        for part in ast.walk(function)
    )


def merge_key(place: Place) -> Iterator[Edit]:
    """A key of several parts loses one, wherever the function builds it."""
    node, parent, source = place.node, place.parent, place.source
    if not isinstance(node, ast.Tuple) or len(node.elts) < 2 or not _is_key(node, parent):
        return
    if any(isinstance(item, ast.Starred) for item in node.elts):
        return
    for index in sorted({0, len(node.elts) - 1}):
        left = [source.of(item) for number, item in enumerate(node.elts) if number != index]
        yield source.replace(node, f"({', '.join(left)}{',' if len(left) == 1 else ''})")


def _is_key(node: ast.Tuple, parent: ast.AST) -> bool:
    if isinstance(parent, ast.Call):
        return (
            called(parent) in ("get", "setdefault", "pop", "add")
            and bool(parent.args)
            and parent.args[0] is node
        )
    if isinstance(parent, ast.Assign):
        names = [target.id.lower() for target in parent.targets if isinstance(target, ast.Name)]
        return any("key" in name or name in ("k", "group", "ident") for name in names)
    return isinstance(parent, ast.Lambda | ast.DictComp) and getattr(parent, "value", None) is not node


def precedence(place: Place) -> Iterator[Edit]:
    """The first of equal entries stays where the last should win; defaults overwrite what was given."""
    node, parent, source = place.node, place.parent, place.source
    if (
        isinstance(node, ast.Assign)
        and isinstance(parent, ast.For | ast.If | ast.While)
        and len(node.targets) == 1
    ):
        target = node.targets[0]
        if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice | ast.Constant):
            base, key, value = source.of(target.value), source.of(target.slice), source.of(node.value)
            key = f"({key})" if isinstance(target.slice, ast.Tuple) and not key.startswith("(") else key
            yield source.replace(node, f"{base}.setdefault({key}, {value})")
    if isinstance(node, ast.Dict) and len(node.keys) == 2 and node.keys == [None, None]:
        first, second = (source.of(item) for item in node.values)
        yield source.replace(node, "{" + f"**{second}, **{first}" + "}")
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and called(node.value) == "setdefault":
        call = node.value
        if len(call.args) == 2 and isinstance(call.func, ast.Attribute):
            base, key, value = source.of(call.func.value), source.of(call.args[0]), source.of(call.args[1])
            yield source.replace(node, f"{base}[{key}] = {value}")
