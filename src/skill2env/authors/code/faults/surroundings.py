"""Faults at the edges of a program: clocks and calendars, errors, files, numbers that come as text."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# Nodes of a syntax tree are taken apart by shape; every operator checks the shape it needs.

import ast
from collections.abc import Iterator

from skill2env.authors.code.faults.catalog import Place, called, cut_call, is_str, rename
from skill2env.authors.code.faults.source import Edit

OFFSETS = {"+00:00": "+01:00", "+0000": "+0100", "Z": "+01:00"}


def time_zone(place: Place) -> Iterator[Edit]:
    """A conversion between zones is lost or only relabels the time; an offset changes."""
    node, source = place.node, place.source
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        zoned = any(word.arg == "tzinfo" for word in node.keywords)
        if name == "astimezone":
            yield cut_call(source, node, name)
            if len(node.args) == 1:
                yield source.replace(
                    node, f"{source.of(node.func.value)}.replace(tzinfo={source.of(node.args[0])})"
                )
        if name == "replace" and zoned and len(node.keywords) == 1 and not node.args:
            zone = source.of(node.keywords[0].value)
            if zone != "None":
                yield source.replace(node, f"{source.of(node.func.value)}.astimezone({zone})")
        if name == "replace" and len(node.args) == 2 and is_str(node.args[1]):
            other = OFFSETS.get(str(getattr(node.args[1], "value", "")))
            if other and other != "Z":
                yield source.replace(node.args[1], f'"{other}"')
        if name == "utcoffset":
            yield source.replace(node, f"-{source.of(node)}")


CALENDAR_CALLS = {"weekday": "isoweekday", "isoweekday": "weekday", "utcfromtimestamp": "fromtimestamp"}
CALENDAR_UNITS = {"days": "hours", "hours": "minutes", "minutes": "seconds", "weeks": "days"}
CALENDAR_CODES = (
    ("%m-%d", "%d-%m"),
    ("%d/%m", "%m/%d"),
    ("%m/%d", "%d/%m"),
    ("%H", "%I"),
    ("%d.%m", "%m.%d"),
    ("%Y-%m", "%Y-%d"),
)


def calendar(place: Place) -> Iterator[Edit]:
    """Week days count from the other day; day and month change places; a span has a neighbouring unit."""
    node, source = place.node, place.source
    if isinstance(node, ast.Call) and called(node) in CALENDAR_CALLS and isinstance(node.func, ast.Attribute):
        yield rename(place, node, CALENDAR_CALLS[called(node)])
    if isinstance(node, ast.Call) and called(node) in ("strftime", "strptime"):
        for item in node.args:
            written = source.of(item) if is_str(item) else ""
            for old, new in CALENDAR_CODES:
                if old in written:
                    yield source.replace(item, written.replace(old, new, 1))
    if isinstance(node, ast.keyword) and called(place.parent) == "timedelta" and node.arg in CALENDAR_UNITS:
        start = source.span(node)[0]
        yield Edit(start, start + len(node.arg), CALENDAR_UNITS[node.arg])
    if isinstance(node, ast.Attribute) and node.attr == "days" and isinstance(node.ctx, ast.Load):
        end = source.span(node)[1]
        yield Edit(end, end, " + 1")


ANSWERS = {"None": "0", "True": "False", "False": "True"}
"""What is answered instead after an error; anything else becomes None."""


def error_path(place: Place) -> Iterator[Edit]:
    """A refused input is let through; after an error the loop stops, or another answer is given."""
    node, source = place.node, place.source
    if isinstance(node, ast.If) and len(node.body) == 1 and not node.orelse:
        if isinstance(node.body[0], ast.Raise):
            yield source.replace(node.body[0], "pass")
    if not isinstance(node, ast.ExceptHandler):
        return
    last = node.body[-1]
    if isinstance(last, ast.Continue):
        yield source.replace(last, "break")
    value = last.value if isinstance(last, ast.Return | ast.Assign) else None
    if isinstance(value, ast.Constant):
        yield source.replace(value, ANSWERS.get(source.of(value), "None"))
    elif isinstance(value, ast.List | ast.Dict) and source.of(value) in ("[]", "{}"):
        yield source.replace(value, "None")
    if isinstance(node.type, ast.Tuple) and len(node.type.elts) == 2:
        yield source.replace(node.type, source.of(node.type.elts[0]))


MODES = {"a": "w", "w": "a", "r": "rb", "x": "w"}


def resource(place: Place) -> Iterator[Edit]:
    """A file is appended to or overwritten, read in part, or with other line ends."""
    node, source = place.node, place.source
    if not isinstance(node, ast.Call):
        return
    name = called(node)
    if name == "open":
        for item in [*node.args, *(word.value for word in node.keywords if word.arg == "mode")]:
            mode = item.value if isinstance(item, ast.Constant) else None
            if isinstance(mode, str) and mode in MODES and mode != "r":
                yield source.replace(item, f'"{MODES[mode]}"')
    if name == "read" and not node.args and isinstance(node.func, ast.Attribute):
        yield rename(place, node, "readline")
    if name in ("splitlines", "readlines") and isinstance(node.func, ast.Attribute):
        end = source.span(node)[1]
        yield Edit(end, end, "[1:]")
        yield Edit(end, end, "[:-1]")
    if name in ("rglob", "glob") and isinstance(node.func, ast.Attribute):
        yield rename(place, node, "glob" if name == "rglob" else "rglob")
    if name in ("DictReader", "reader") and len(node.args) == 1:
        end = source.span(node.args[0])[1]
        yield Edit(end, end, ", skipinitialspace=True")


def number_as_text(place: Place) -> Iterator[Edit]:
    """A conversion to a number is lost where values are sorted or compared."""
    node, parent, source = place.node, place.parent, place.source
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = _converted(node.left), _converted(node.comparators[0])
        if left is not None and right is not None:
            gap = source.data[source.span(node.left)[1] : source.span(node.comparators[0])[0]].decode()
            yield source.replace(node, f"str({source.of(left)}){gap}str({source.of(right)})")
    inner = _converted(node)
    if inner is not None and (isinstance(parent, ast.Lambda) or called(parent) in ("sorted", "max", "min")):
        yield source.replace(node, f"str({source.of(inner)})")


def _converted(node: ast.AST) -> ast.expr | None:
    """What is made a number; None for anything but a conversion."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("int", "float"):
        if len(node.args) == 1 and not node.keywords and not is_str(node.args[0]):
            return node.args[0]
    return None
