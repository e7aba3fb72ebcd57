"""The catalogue of faults: small, plausible slips, each a deterministic edit of one place in the syntax tree.

An operator sees one node in its function and yields replacements. It never invents names, so that a fault shows as
wrong behaviour and not as an exception. `OPERATORS` lists them in order; `sites.find_sites` applies them.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# The values here are tagged JSON of any shape; `cases.well_formed` checks them where they come in.

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from skill2env.authors.code.faults.source import Edit, Source

type Function = ast.FunctionDef | ast.AsyncFunctionDef


class Kind(StrEnum):
    """Families of faults. The values name them in the provenance of a task."""

    BOUNDARY = "boundary"
    """A comparison includes or excludes its limit wrongly."""
    OFF_BY_ONE = "off_by_one"
    """A count, index or slice limit is one off."""
    SIGN = "sign"
    """A sum turns into a difference, or a sign is lost."""
    SCALE = "scale"
    """A unit or factor is off by a power of ten or another usual step."""
    THRESHOLD = "threshold"
    """A limit or weight that the method fixes has a neighbouring value."""
    DEFAULT = "default"
    """A default is not the documented one."""
    ORDERING = "ordering"
    """A sort key or direction is wrong."""
    CONNECTIVE = "connective"
    """Conditions are joined wrongly."""
    MISSING_CASE = "missing_case"
    """One listed case is forgotten."""
    AGGREGATE = "aggregate"
    """The wrong summary is taken: first, last, min, max, any, all, mean, median."""
    TEXT = "text"
    """White space or letter case is not normalised."""
    ROUNDING = "rounding"
    """Rounding happens to the wrong place or in the wrong way."""
    EARLY_EXIT = "early_exit"
    """A loop stops where it should go on, or goes on where it should stop."""
    ACCUMULATE = "accumulate"
    """A running total is overwritten."""
    ALIAS = "alias"
    """A copy is not made, so that data is shared."""
    SPLITTING = "splitting"
    """Text is split from the wrong end or too often."""
    WRONG_KEY = "wrong_key"
    """A neighbouring field is read."""
    SWAPPED = "swapped"
    """Two arguments change places."""
    FALLBACK = "fallback"
    """The alternative of a missing value is lost."""
    PATTERN = "pattern"
    """A regular expression is applied too narrowly or too widely."""
    SET_LOGIC = "set_logic"
    """Sets are united where they should be intersected, or duplicates stay."""
    ENCODING = "encoding"
    """Bytes are decoded by a neighbouring rule."""


@dataclass(frozen=True, slots=True)
class Place:
    """A node in its surroundings."""

    source: Source
    node: ast.AST
    parent: ast.AST
    function: Function | None
    """None for module level."""


type Operator = Callable[[Place], Iterator[Edit]]
OPERATORS: list[tuple[Kind, Operator]] = []


def _operator(kind: Kind) -> Callable[[Operator], Operator]:
    def register(operator: Operator) -> Operator:
        OPERATORS.append((kind, operator))
        return operator

    return register


def _number(node: ast.AST) -> int | float | None:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value  # type: ignore[return-value]
    return None


def _called(node: ast.AST) -> str:
    """Last name of what is called: ``strip`` for ``a.b.strip()``, ``sorted`` for ``sorted(x)``."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _cut_call(source: Source, call: ast.Call, name: str) -> Edit:
    """Edit that takes ``.name(...)`` off what it is called on, brackets around that left alone."""
    return Edit(source.span(call.func)[1] - len(name.encode()) - 1, source.span(call)[1], "")


def _rename(place: Place, call: ast.Call, new: str) -> Edit:
    """Edit of the called name only."""
    start, end = place.source.span(call.func)
    old = _called(call)
    return Edit(end - len(old.encode()), end, new) if end - start >= len(old) else Edit(start, end, new)


def _shape(value: float) -> str:
    """A number as people write it."""
    return repr(value) if isinstance(value, float) else str(value)


COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
}


@_operator(Kind.BOUNDARY)
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


@_operator(Kind.OFF_BY_ONE)
def off_by_one(place: Place) -> Iterator[Edit]:
    """Integers in slices, ranges, indices and ``x + 1`` move by one."""
    node, parent = place.node, place.parent
    value = _number(node)
    if type(value) is not int or abs(value) > 20:
        return
    in_range = isinstance(parent, ast.Call) and _called(parent) in ("range", "islice", "enumerate")
    in_step = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add | ast.Sub) and value == 1
    if isinstance(parent, ast.Slice) or in_range:
        yield place.source.replace(node, str(value + 1))
        if value > 0:
            yield place.source.replace(node, str(value - 1))
    elif in_step:
        yield place.source.replace(node, "0" if node is parent.right else "2")  # type: ignore[union-attr]


def _is_textual(node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.JoinedStr | ast.List | ast.Tuple) or _is_str(part) for part in ast.walk(node)
    )


def _is_str(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


@_operator(Kind.SIGN)
def sign(place: Place) -> Iterator[Edit]:
    """Plus and minus change places; a leading minus is lost."""
    node = place.node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and not _is_textual(node):
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


@_operator(Kind.SCALE)
def scale(place: Place) -> Iterator[Edit]:
    """A factor of a product or quotient takes a neighbouring unit; product and quotient change places."""
    node, parent = place.node, place.parent
    value = _number(node)
    if (
        value is not None
        and isinstance(parent, ast.BinOp)
        and isinstance(parent.op, ast.Mult | ast.Div | ast.FloorDiv)
    ):
        for other in SCALES.get(value, ()):
            yield place.source.replace(node, _shape(type(value)(other)))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div) and not _is_textual(node):
        pair = ("*", "/") if isinstance(node.op, ast.Mult) else ("/", "*")
        if edit := place.source.between(node.left, node.right, *pair):
            yield edit


def _neighbours(value: float) -> tuple[float, ...]:
    """Plausible wrong values near a number: the last digit moves, or a step of five or ten."""
    if isinstance(value, int):
        step = 1 if abs(value) < 10 else 5 if abs(value) < 100 else 10 ** (len(str(abs(value))) - 2)
        return (value + step, value - step)
    digits = len(repr(value).partition(".")[2].partition("e")[0])
    step = 10.0**-digits
    return (round(value + 5 * step, digits), round(value - step, digits))


@_operator(Kind.THRESHOLD)
def threshold(place: Place) -> Iterator[Edit]:
    """A number in a comparison, a weight, or a module-level constant takes a neighbouring value."""
    node, parent = place.node, place.parent
    value = _number(node)
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
        for other in _neighbours(value):
            yield place.source.replace(node, _shape(other))


@_operator(Kind.DEFAULT)
def default(place: Place) -> Iterator[Edit]:
    """The default of a parameter or of ``.get`` changes."""
    node, parent = place.node, place.parent
    of_parameter = isinstance(parent, ast.arguments)
    of_get = isinstance(parent, ast.Call) and _called(parent) in (
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
    elif (value := _number(node)) is not None:
        for other in (1, -1) if value == 0 else (0, *_neighbours(value)[:1]):
            yield place.source.replace(node, _shape(type(value)(other)))


@_operator(Kind.ORDERING)
def ordering(place: Place) -> Iterator[Edit]:
    """``reverse`` flips; a sort key loses a sign or two of its parts change places."""
    node, source = place.node, place.source
    if not isinstance(node, ast.Call) or _called(node) not in (
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


@_operator(Kind.CONNECTIVE)
def connective(place: Place) -> Iterator[Edit]:
    """``and`` and ``or`` change places; a ``not`` is lost; one condition of several is forgotten."""
    node, source = place.node, place.source
    if isinstance(node, ast.BoolOp) and _is_condition(place):
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        if len(node.values) == 2 and (edit := source.between(node.values[0], node.values[1], old, new)):
            yield edit
        if isinstance(node.op, ast.And):
            yield Edit(source.span(node.values[-2])[1], source.span(node.values[-1])[1], _closing(place))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield source.replace(node, source.of(node.operand))


def _is_condition(place: Place) -> bool:
    """True where the value is only tested, so that ``and`` for ``or`` cannot change its type."""
    parent = place.parent
    return isinstance(
        parent, ast.If | ast.While | ast.IfExp | ast.comprehension | ast.BoolOp | ast.UnaryOp | ast.Assert
    )


def _closing(place: Place) -> str:
    """Brackets that a cut after the second-last operand would tear off."""
    node, source = place.node, place.source
    assert isinstance(node, ast.BoolOp)
    cut = source.data[source.span(node.values[-2])[1] : source.span(node.values[-1])[0]].decode()
    return ")" * max(0, cut.count(")") - cut.count("("))


@_operator(Kind.MISSING_CASE)
def missing_case(place: Place) -> Iterator[Edit]:
    """One member of a literal set, tuple, list or dict of texts is dropped."""
    node, source = place.node, place.source
    if isinstance(node, ast.Set | ast.Tuple | ast.List) and 2 <= len(node.elts) <= 40:
        tested = isinstance(place.parent, ast.Compare | ast.Call) or place.function is None
        if tested and all(_is_str(item) or _number(item) is not None for item in node.elts):
            for index in {1, len(node.elts) - 1}:
                yield Edit(
                    source.span(node.elts[index - 1])[1], source.span(node.elts[index])[1], _comma(node)
                )
    if isinstance(node, ast.Dict) and len(node.keys) >= 3 and all(key is not None for key in node.keys):
        texts = all(_is_str(key) for key in node.keys if key is not None)
        if texts and (place.function is None or isinstance(place.parent, ast.Call | ast.Subscript)):
            last = len(node.keys) - 1
            yield Edit(source.span(node.values[last - 1])[1], source.span(node.values[last])[1], "")


def _comma(node: ast.Set | ast.Tuple | ast.List) -> str:
    return "," if isinstance(node, ast.Tuple) and len(node.elts) == 2 else ""


SUMMARIES = {"min": "max", "max": "min", "any": "all", "all": "any", "median": "mean", "mean": "median"}


@_operator(Kind.AGGREGATE)
def aggregate(place: Place) -> Iterator[Edit]:
    """min for max, any for all, mean for median, first for last, a count for a sum."""
    node, source = place.node, place.source
    name = _called(node)
    if isinstance(node, ast.Call) and name in SUMMARIES:
        if not (name in ("min", "max") and len(node.args) == 2 and not node.keywords):
            yield _rename(place, node, SUMMARIES[name])
        else:  # a clamp: the limit is applied from the wrong side
            yield _rename(place, node, SUMMARIES[name])
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        text = source.of(node.slice)
        if text == "0" and not isinstance(node.value, ast.Subscript):
            yield source.replace(node.slice, "-1")
        elif text == "-1":
            yield source.replace(node.slice, "0")


TRIMS = ("strip", "lstrip", "rstrip", "lower", "upper", "casefold", "title", "removeprefix", "removesuffix")


@_operator(Kind.TEXT)
def text(place: Place) -> Iterator[Edit]:
    """A normalising call is lost, or looks at the other end."""
    node, source = place.node, place.source
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    name = node.func.attr
    if name in TRIMS:
        yield _cut_call(source, node, name)
    other = {"startswith": "endswith", "endswith": "startswith", "lower": "upper", "upper": "lower"}.get(name)
    if other:
        yield _rename(place, node, other)
    if name == "strip" and not node.args:
        yield _rename(place, node, "rstrip")


@_operator(Kind.ROUNDING)
def rounding(place: Place) -> Iterator[Edit]:
    """Another number of digits, floor for ceil, cut for round, whole for true division."""
    node, source = place.node, place.source
    name = _called(node)
    if isinstance(node, ast.Call):
        if name == "round" and len(node.args) == 2 and type(digits := _number(node.args[1])) is int:
            yield source.replace(node.args[1], str(digits - 1))
        if name == "round" and len(node.args) == 1:
            yield _rename(place, node, "int")
        if name in ("floor", "ceil"):
            yield _rename(place, node, "ceil" if name == "floor" else "floor")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and not _is_textual(node):
        if edit := source.between(node.left, node.right, "/", "//"):
            yield edit


@_operator(Kind.EARLY_EXIT)
def early_exit(place: Place) -> Iterator[Edit]:
    """``continue`` and ``break`` change places."""
    if isinstance(place.node, ast.Continue):
        yield place.source.replace(place.node, "break")
    elif isinstance(place.node, ast.Break):
        yield place.source.replace(place.node, "continue")


@_operator(Kind.ACCUMULATE)
def accumulate(place: Place) -> Iterator[Edit]:
    """``+=`` becomes ``=`` or ``-=``; a union in place becomes an assignment."""
    node = place.node
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.BitOr):
        old = {"Add": "+=", "Sub": "-=", "Mult": "*=", "BitOr": "|="}[type(node.op).__name__]
        if edit := place.source.between(node.target, node.value, old, "="):
            yield edit


@_operator(Kind.ALIAS)
def alias(place: Place) -> Iterator[Edit]:
    """A copy is not made."""
    node, source = place.node, place.source
    if not isinstance(node, ast.Call) or node.keywords:
        return
    if _called(node) in ("copy", "deepcopy") and isinstance(node.func, ast.Attribute):
        kept = node.args[0] if node.args else node.func.value
        yield source.replace(node, source.of(kept))
    if isinstance(node.func, ast.Name) and node.func.id in ("list", "dict") and len(node.args) == 1:
        if isinstance(node.args[0], ast.Name | ast.Attribute | ast.Subscript):
            yield source.replace(node, source.of(node.args[0]))


@_operator(Kind.SPLITTING)
def splitting(place: Place) -> Iterator[Edit]:
    """split for rsplit, partition for rpartition, a limit on the number of parts lost."""
    node, source = place.node, place.source
    name = _called(node)
    pairs = {"split": "rsplit", "rsplit": "split", "partition": "rpartition", "rpartition": "partition"}
    if not isinstance(node, ast.Call) or name not in pairs or not isinstance(node.func, ast.Attribute):
        return
    limited = len(node.args) == 2 or any(word.arg == "maxsplit" for word in node.keywords)
    if limited or "partition" in name:
        yield _rename(place, node, pairs[name])
    if name == "find":
        yield _rename(place, node, "rfind")
    if name == "split" and len(node.args) == 1 and source.of(node.args[0]) in ('","', "','", '"\\t"'):
        yield Edit(source.span(node.args[0])[1], source.span(node.args[0])[1], ", 1")


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
        and _called(node) == "get"
        and node.args
        and isinstance(node.func, ast.Attribute)
    ):
        base, key = node.func.value, node.args[0]
    else:
        return "", ""
    if isinstance(base, ast.Name) and isinstance(key, ast.Constant) and isinstance(key.value, str):
        return base.id, key.value
    return "", ""


@_operator(Kind.WRONG_KEY)
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


@_operator(Kind.SWAPPED)
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


@_operator(Kind.FALLBACK)
def fallback(place: Place) -> Iterator[Edit]:
    """``a or b`` loses ``b``; a conditional expression keeps one side."""
    node, source = place.node, place.source
    if (
        isinstance(node, ast.BoolOp)
        and isinstance(node.op, ast.Or)
        and not _is_condition(place)
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


REGEX_CALLS = {
    "match": "search",
    "search": "match",
    "fullmatch": "match",
    "sub": "",
    "compile": "",
    "findall": "",
}


@_operator(Kind.PATTERN)
def pattern(place: Place) -> Iterator[Edit]:
    """match for search, a flag lost, an anchor lost, ``+`` for ``*``."""
    node, source = place.node, place.source
    if (
        not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Attribute)
        or node.func.attr not in REGEX_CALLS
    ):
        return
    if other := REGEX_CALLS[node.func.attr]:
        yield _rename(place, node, other)
    of_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
    if not of_re or not node.args or not _is_str(node.args[0]):
        return
    written = source.of(node.args[0])
    for old, new in (
        ("\\d+", "\\d"),
        ("\\s*", "\\s+"),
        ("\\s+", "\\s"),
        ('$"', '"'),
        ('"^', '"'),
        ("\\b", ""),
    ):
        if old in written and not written.startswith(('"""', "'''")):
            yield source.replace(node.args[0], written.replace(old, new, 1))
    last = node.args[-1]
    if isinstance(last, ast.Attribute) and last.attr in ("IGNORECASE", "I", "MULTILINE", "M", "DOTALL", "S"):
        yield Edit(source.span(node.args[-2])[1], source.span(last)[1], "")


@_operator(Kind.SET_LOGIC)
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
    name = _called(node)
    if isinstance(node, ast.Call) and name in ("union", "intersection"):
        yield _rename(place, node, "intersection" if name == "union" else "union")
    if isinstance(node, ast.Call) and name == "sorted" and len(node.args) == 1 and not node.keywords:
        inner = node.args[0]
        if isinstance(inner, ast.Call) and _called(inner) == "set" and len(inner.args) == 1:
            yield source.replace(inner, source.of(inner.args[0]))


CODECS = {
    "utf-8-sig": "utf-8",
    "utf8": "latin-1",
    "utf-8": "latin-1",
    "replace": "ignore",
    "latin-1": "utf-8",
}


@_operator(Kind.ENCODING)
def encoding(place: Place) -> Iterator[Edit]:
    """Another encoding or error rule is named."""
    node = place.node
    if (
        isinstance(node, ast.keyword)
        and node.arg in ("encoding", "errors")
        and isinstance(node.value, ast.Constant)
    ):
        other = CODECS.get(str(node.value.value))
        if other:
            yield place.source.replace(node.value, f'"{other}"')
