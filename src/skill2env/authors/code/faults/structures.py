"""Faults in how data is put together: order, running totals, copies, fields, arguments."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# Nodes of a syntax tree are taken apart by shape; every operator checks the shape it needs.

import ast
from collections.abc import Iterator

from skill2env.authors.code.faults.catalog import Function, Place, called
from skill2env.authors.code.faults.source import Edit, Source


def ordering(place: Place) -> Iterator[Edit]:
    """``reverse`` flips; a sort key loses a sign or two of its parts change places."""
    node, source = place.node, place.source
    if not isinstance(node, ast.Call) or called(node) not in (
        "sorted",
        "sort",
        "min",
        "max",
        "nlargest",
        "nsmallest",
    ):
        return
    for word in node.keywords:
        if word.arg == "reverse" and isinstance(word.value, ast.Constant):
            yield source.replace(word.value, str(not word.value.value))
        body = word.value.body if word.arg == "key" and isinstance(word.value, ast.Lambda) else None
        if isinstance(body, ast.UnaryOp) and isinstance(body.op, ast.USub):
            yield source.replace(body, source.of(body.operand))
        if isinstance(body, ast.Tuple) and len(body.elts) >= 2:
            yield from _key_parts(source, body)


def _key_parts(source: Source, key: ast.Tuple) -> Iterator[Edit]:
    first, second = key.elts[0], key.elts[1]
    start, end = source.span(first)[0], source.span(second)[1]
    yield Edit(start, end, f"{source.of(second)}, {source.of(first)}")
    for part in key.elts:
        if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub):
            yield source.replace(part, source.of(part.operand))
    if len(key.elts) > 2:
        yield Edit(source.span(key.elts[-2])[1], source.span(key.elts[-1])[1], "")


def accumulate(place: Place) -> Iterator[Edit]:
    """``+=`` becomes ``=`` or ``-=``; a union in place becomes an assignment."""
    node = place.node
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.BitOr):
        old = {"Add": "+=", "Sub": "-=", "Mult": "*=", "BitOr": "|="}[type(node.op).__name__]
        if edit := place.source.between(node.target, node.value, old, "="):
            yield edit


def alias(place: Place) -> Iterator[Edit]:
    """A copy is not made."""
    node, source = place.node, place.source
    if not isinstance(node, ast.Call) or node.keywords:
        return
    if called(node) in ("copy", "deepcopy") and isinstance(node.func, ast.Attribute):
        kept = node.args[0] if node.args else node.func.value
        yield source.replace(node, source.of(kept))
    if isinstance(node.func, ast.Name) and node.func.id in ("list", "dict") and len(node.args) == 1:
        if isinstance(node.args[0], ast.Name | ast.Attribute | ast.Subscript):
            yield source.replace(node, source.of(node.args[0]))


def _keys_of(function: Function) -> dict[str, set[str]]:
    """Text keys by the name of the object they are read from."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(function):
        base, key = _key_read(node)
        if base:
            found.setdefault(base, set()).add(key)
    return found


def _key_read(node: ast.AST) -> tuple[str, str]:
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        base, key = node.value, node.slice
    elif (
        isinstance(node, ast.Call)
        and called(node) == "get"
        and node.args
        and isinstance(node.func, ast.Attribute)
    ):
        base, key = node.func.value, node.args[0]
    else:
        return "", ""
    if isinstance(base, ast.Name) and isinstance(key, ast.Constant) and isinstance(key.value, str):
        return base.id, key.value
    return "", ""


def wrong_key(place: Place) -> Iterator[Edit]:
    """Another field of the same record, read elsewhere in the function, is read instead."""
    base, key = _key_read(place.node)
    if not base or place.function is None:
        return
    others = sorted(_keys_of(place.function).get(base, set()) - {key})
    node = place.node.slice if isinstance(place.node, ast.Subscript) else place.node.args[0]  # type: ignore[attr-defined]
    similar = sorted((-_likeness(key, other), other) for other in others)
    for _, other in [pair for pair in similar if pair[0] <= 1][:2]:
        quote = place.source.of(node)[0]
        yield place.source.replace(node, f"{quote}{other}{quote}")


def _likeness(left: str, right: str) -> int:
    """Shared words and equal length make two names easy to mix up."""
    a, b = set(left.lower().replace("-", "_").split("_")), set(right.lower().replace("-", "_").split("_"))
    return 3 * len(a & b) - abs(len(left) - len(right))


def swapped(place: Place) -> Iterator[Edit]:
    """Two neighbouring plain arguments change places."""
    node, source = place.node, place.source
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or len(node.args) < 2:
        return
    for left, right in zip(node.args, node.args[1:], strict=False):
        plain = all(isinstance(item, ast.Name | ast.Attribute | ast.Subscript) for item in (left, right))
        if (
            plain
            and source.of(left) != source.of(right)
            and node.func.id not in ("isinstance", "getattr", "hasattr")
        ):
            start, end = source.span(left)[0], source.span(right)[1]
            gap = source.data[source.span(left)[1] : source.span(right)[0]].decode()
            yield Edit(start, end, f"{source.of(right)}{gap}{source.of(left)}")
