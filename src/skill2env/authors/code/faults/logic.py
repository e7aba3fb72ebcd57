"""Faults in decisions: defaults, conditions, listed cases, loops, sets."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# Nodes of a syntax tree are taken apart by shape; every operator checks the shape it needs.

import ast
from collections.abc import Iterator

from skill2env.authors.code.faults.amounts import neighbours
from skill2env.authors.code.faults.catalog import Place, called, is_condition, is_str, number, rename, shape
from skill2env.authors.code.faults.source import Edit


def default(place: Place) -> Iterator[Edit]:
    """The default of a parameter or of ``.get`` changes."""
    node, parent = place.node, place.parent
    of_parameter = isinstance(parent, ast.arguments)
    of_get = isinstance(parent, ast.Call) and called(parent) in (
        "get",
        "pop",
        "setdefault",
        "getattr",
        "next",
    )
    if not isinstance(node, ast.Constant) or not (of_parameter or (of_get and node is parent.args[-1])):  # type: ignore[union-attr]
        return
    if isinstance(node.value, bool):
        yield place.source.replace(node, str(not node.value))
    elif (value := number(node)) is not None:
        for other in (1, -1) if value == 0 else (0, *neighbours(value)[:1]):
            yield place.source.replace(node, shape(type(value)(other)))


def connective(place: Place) -> Iterator[Edit]:
    """``and`` and ``or`` change places; a ``not`` is lost; one condition of several is forgotten."""
    node, source = place.node, place.source
    if isinstance(node, ast.BoolOp) and is_condition(place):
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        if len(node.values) == 2 and (edit := source.between(node.values[0], node.values[1], old, new)):
            yield edit
        if isinstance(node.op, ast.And):
            yield Edit(source.span(node.values[-2])[1], source.span(node.values[-1])[1], _closing(place))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield source.replace(node, source.of(node.operand))


def _closing(place: Place) -> str:
    """Brackets that a cut after the second-last operand would tear off."""
    node, source = place.node, place.source
    assert isinstance(node, ast.BoolOp)
    cut = source.data[source.span(node.values[-2])[1] : source.span(node.values[-1])[0]].decode()
    return ")" * max(0, cut.count(")") - cut.count("("))


def missing_case(place: Place) -> Iterator[Edit]:
    """One member of a literal set, tuple, list or dict of texts is dropped."""
    node, source = place.node, place.source
    if isinstance(node, ast.Set | ast.Tuple | ast.List) and 2 <= len(node.elts) <= 40:
        tested = isinstance(place.parent, ast.Compare | ast.Call) or place.function is None
        if tested and all(is_str(item) or number(item) is not None for item in node.elts):
            for index in {1, len(node.elts) - 1}:
                yield Edit(
                    source.span(node.elts[index - 1])[1], source.span(node.elts[index])[1], _comma(node)
                )
    if isinstance(node, ast.Dict) and len(node.keys) >= 3 and all(key is not None for key in node.keys):
        texts = all(is_str(key) for key in node.keys if key is not None)
        if texts and (place.function is None or isinstance(place.parent, ast.Call | ast.Subscript)):
            last = len(node.keys) - 1
            yield Edit(source.span(node.values[last - 1])[1], source.span(node.values[last])[1], "")


def _comma(node: ast.Set | ast.Tuple | ast.List) -> str:
    return "," if isinstance(node, ast.Tuple) and len(node.elts) == 2 else ""


def early_exit(place: Place) -> Iterator[Edit]:
    """``continue`` and ``break`` change places."""
    if isinstance(place.node, ast.Continue):
        yield place.source.replace(place.node, "break")
    elif isinstance(place.node, ast.Break):
        yield place.source.replace(place.node, "continue")


def fallback(place: Place) -> Iterator[Edit]:
    """``a or b`` loses ``b``; a conditional expression keeps one side."""
    node, source = place.node, place.source
    if (
        isinstance(node, ast.BoolOp)
        and isinstance(node.op, ast.Or)
        and not is_condition(place)
        and len(node.values) == 2
    ):
        left, right = node.values
        if (
            isinstance(left, ast.Call | ast.Name | ast.Attribute | ast.Subscript)
            and "(" not in source.of(right)[:1]
        ):
            yield source.replace(node, source.of(left))
    if isinstance(node, ast.IfExp):
        yield source.replace(
            node, f"{source.of(node.orelse)} if {source.of(node.test)} else {source.of(node.body)}"
        )


def set_logic(place: Place) -> Iterator[Edit]:
    """Union for intersection; duplicates stay; ``in`` for ``not in``."""
    node, source = place.node, place.source
    if (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.BitOr | ast.BitAnd)
        and place.function is not None
    ):
        pair = ("|", "&") if isinstance(node.op, ast.BitOr) else ("&", "|")
        if edit := source.between(node.left, node.right, *pair):
            yield edit
    name = called(node)
    if isinstance(node, ast.Call) and name in ("union", "intersection"):
        yield rename(place, node, "intersection" if name == "union" else "union")
    if isinstance(node, ast.Call) and name == "sorted" and len(node.args) == 1 and not node.keywords:
        inner = node.args[0]
        if isinstance(inner, ast.Call) and called(inner) == "set" and len(inner.args) == 1:
            yield source.replace(inner, source.of(inner.args[0]))


def none_or_empty(place: Place) -> Iterator[Edit]:
    """``x is None`` becomes ``not x``; ``x is not None`` becomes ``x``; ``if not x`` becomes ``if x is None``."""
    node, source = place.node, place.source
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        right = node.comparators[0]
        if isinstance(right, ast.Constant) and right.value is None and isinstance(node.left, PLAIN):
            if isinstance(node.ops[0], ast.Is):
                yield source.replace(node, f"not {source.of(node.left)}")
            elif isinstance(node.ops[0], ast.IsNot) and is_condition(place):
                yield source.replace(node, source.of(node.left))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and isinstance(node.operand, PLAIN):
        if is_condition(place):
            yield source.replace(node, f"{source.of(node.operand)} is None")


PLAIN = (ast.Name, ast.Attribute, ast.Subscript)
"""Expressions without effects, which may be written down once more or less."""


def filtering(place: Place) -> Iterator[Edit]:
    """The condition of a comprehension is lost, or turned round."""
    node, source = place.node, place.source
    if not isinstance(node, ast.comprehension) or len(node.ifs) != 1:
        return
    test = node.ifs[0]
    end = source.span(test)[1]
    yield Edit(source.span(node.iter)[1], end, "")
    if not isinstance(test, ast.UnaryOp):
        yield source.replace(test, f"not ({source.of(test)})")
