"""Faults in numbers: limits, counts, signs, units, roundings, summaries."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# Nodes of a syntax tree are taken apart by shape; every operator checks the shape it needs.

import ast
from collections.abc import Iterator

from skill2env.authors.code.faults.catalog import Place, called, is_textual, number, rename, shape
from skill2env.authors.code.faults.source import Edit

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
}


def boundary(place: Place) -> Iterator[Edit]:
    """``a < b`` becomes ``a <= b`` and so on."""
    node = place.node
    if not isinstance(node, ast.Compare):
        return
    left = node.left
    for operation, right in zip(node.ops, node.comparators, strict=True):
        pair = COMPARISONS.get(type(operation))
        if pair and (edit := place.source.between(left, right, *pair)):
            yield edit
        left = right


def off_by_one(place: Place) -> Iterator[Edit]:
    """Integers in slices, ranges, indices and ``x + 1`` move by one."""
    node, parent = place.node, place.parent
    value = number(node)
    if type(value) is not int or abs(value) > 20:
        return
    in_range = isinstance(parent, ast.Call) and called(parent) in ("range", "islice", "enumerate")
    in_step = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add | ast.Sub) and value == 1
    if isinstance(parent, ast.Slice) or in_range:
        yield place.source.replace(node, str(value + 1))
        if value > 0:
            yield place.source.replace(node, str(value - 1))
    elif in_step:
        yield place.source.replace(node, "0" if node is parent.right else "2")  # type: ignore[union-attr]


def sign(place: Place) -> Iterator[Edit]:
    """Plus and minus change places; a leading minus is lost."""
    node = place.node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and not is_textual(node):
        pair = ("+", "-") if isinstance(node.op, ast.Add) else ("-", "+")
        if edit := place.source.between(node.left, node.right, *pair):
            yield edit
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and not isinstance(place.parent, ast.keyword)
    ):
        yield place.source.replace(node, place.source.of(node.operand))


SCALES: dict[float, tuple[float, ...]] = {
    10: (100,),
    100: (1000, 10),
    1000: (100, 1024),
    1024: (1000,),
    60: (100, 24),
    3600: (60, 360),
    24: (12,),
    365: (360,),
    365.25: (365,),
    1e6: (1e3,),
    0.01: (0.1,),
    0.001: (0.01,),
}


def scale(place: Place) -> Iterator[Edit]:
    """A factor of a product or quotient takes a neighbouring unit; product and quotient change places."""
    node, parent = place.node, place.parent
    value = number(node)
    if (
        value is not None
        and isinstance(parent, ast.BinOp)
        and isinstance(parent.op, ast.Mult | ast.Div | ast.FloorDiv)
    ):
        for other in SCALES.get(value, ()):
            yield place.source.replace(node, shape(type(value)(other)))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div) and not is_textual(node):
        pair = ("*", "/") if isinstance(node.op, ast.Mult) else ("/", "*")
        if edit := place.source.between(node.left, node.right, *pair):
            yield edit


def neighbours(value: float) -> tuple[float, ...]:
    """Plausible wrong values near a number: the last digit moves, or a step of five or ten."""
    if isinstance(value, int):
        step = 1 if abs(value) < 10 else 5 if abs(value) < 100 else 10 ** (len(str(abs(value))) - 2)
        return (value + step, value - step)
    digits = len(repr(value).partition(".")[2].partition("e")[0])
    step = 10.0**-digits
    return (round(value + 5 * step, digits), round(value - step, digits))


def threshold(place: Place) -> Iterator[Edit]:
    """A number in a comparison, a weight, or a module-level constant takes a neighbouring value."""
    node, parent = place.node, place.parent
    value = number(node)
    if value is None:
        return
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div | ast.Pow) and value == 2:
        return  # half of something, or a square: nobody slips there
    compared = isinstance(parent, ast.Compare)
    weight = isinstance(value, float) and isinstance(
        parent, ast.BinOp | ast.Dict | ast.Tuple | ast.Call | ast.Return
    )
    constant = place.function is None and isinstance(parent, ast.Assign | ast.AnnAssign | ast.Dict)
    if (compared or weight or constant) and value not in (0, 1):
        for other in neighbours(value):
            yield place.source.replace(node, shape(other))


SUMMARIES = {"min": "max", "max": "min", "any": "all", "all": "any", "median": "mean", "mean": "median"}


def aggregate(place: Place) -> Iterator[Edit]:
    """min for max, any for all, mean for median, first for last, a count for a sum."""
    node, source = place.node, place.source
    name = called(node)
    if isinstance(node, ast.Call) and name in SUMMARIES:
        if not (name in ("min", "max") and len(node.args) == 2 and not node.keywords):
            yield rename(place, node, SUMMARIES[name])
        else:  # a clamp: the limit is applied from the wrong side
            yield rename(place, node, SUMMARIES[name])
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        text = source.of(node.slice)
        if text == "0" and not isinstance(node.value, ast.Subscript):
            yield source.replace(node.slice, "-1")
        elif text == "-1":
            yield source.replace(node.slice, "0")


def rounding(place: Place) -> Iterator[Edit]:
    """Another number of digits, floor for ceil, cut for round, whole for true division."""
    node, source = place.node, place.source
    name = called(node)
    if isinstance(node, ast.Call):
        if name == "round" and len(node.args) == 2 and type(digits := number(node.args[1])) is int:
            yield source.replace(node.args[1], str(digits - 1))
        if name == "round" and len(node.args) == 1:
            yield rename(place, node, "int")
        if name in ("floor", "ceil"):
            yield rename(place, node, "ceil" if name == "floor" else "floor")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and not is_textual(node):
        if edit := source.between(node.left, node.right, "/", "//"):
            yield edit
