"""What a fault is: its kinds, the place an operator looks at, and what operators share."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# Nodes of a syntax tree are taken apart by shape; every operator checks the shape it needs.

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
    SEPARATOR = "separator"
    """Parts are joined by another separator."""
    TIME_ZONE = "time_zone"
    """A time is read or kept in another zone."""
    CALENDAR = "calendar"
    """Days, weeks, months or hours are counted by a neighbouring convention."""
    ERROR_PATH = "error_path"
    """A check no longer refuses, or what happens after an error is different."""
    RESOURCE = "resource"
    """A file is opened, read or written in a neighbouring way."""
    CACHE = "cache"
    """What should be remembered is not, or what should be forgotten stays."""
    MERGE_KEY = "merge_key"
    """Records are joined or grouped by part of their key."""
    PRECEDENCE = "precedence"
    """Of two entries with equal names the wrong one wins."""
    NUMBER_AS_TEXT = "number_as_text"
    """Numbers are compared or sorted as texts."""
    NONE_OR_EMPTY = "none_or_empty"
    """Zero or empty is taken for missing, or missing for empty."""
    FILTER = "filter"
    """A selection lets everything through, or lets through the others."""


@dataclass(frozen=True, slots=True)
class Place:
    """A node in its surroundings."""

    source: Source
    node: ast.AST
    parent: ast.AST
    function: Function | None
    """None for module level."""


type Operator = Callable[[Place], Iterator[Edit]]


def number(node: ast.AST) -> int | float | None:
    """The number that a literal stands for; None for anything else, truth values included."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value  # type: ignore[return-value]
    return None


def called(node: ast.AST) -> str:
    """Last name of what is called: ``strip`` for ``a.b.strip()``, ``sorted`` for ``sorted(x)``."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def cut_call(source: Source, call: ast.Call, name: str) -> Edit:
    """Edit that takes ``.name(...)`` off what it is called on, brackets around that left alone."""
    return Edit(source.span(call.func)[1] - len(name.encode()) - 1, source.span(call)[1], "")


def rename(place: Place, call: ast.Call, new: str) -> Edit:
    """Edit of the called name only."""
    start, end = place.source.span(call.func)
    old = called(call)
    return Edit(end - len(old.encode()), end, new) if end - start >= len(old) else Edit(start, end, new)


def shape(value: float) -> str:
    """A number as people write it."""
    return repr(value) if isinstance(value, float) else str(value)


def is_textual(node: ast.AST) -> bool:
    """True for an expression that holds a text, a list or a tuple, where ``+`` and ``*`` do not calculate."""
    return any(
        isinstance(part, ast.JoinedStr | ast.List | ast.Tuple) or is_str(part) for part in ast.walk(node)
    )


def is_str(node: ast.AST) -> bool:
    """True for a literal text or literal bytes."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def is_condition(place: Place) -> bool:
    """True where the value is only tested, so that ``and`` for ``or`` cannot change its type."""
    parent = place.parent
    return isinstance(
        parent, ast.If | ast.While | ast.IfExp | ast.comprehension | ast.BoolOp | ast.UnaryOp | ast.Assert
    )
