"""Faults in texts: white space, splitting, patterns, encodings."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# Nodes of a syntax tree are taken apart by shape; every operator checks the shape it needs.

import ast
from collections.abc import Iterator

from skill2env.authors.code.faults.catalog import Place, called, cut_call, is_str, rename
from skill2env.authors.code.faults.source import Edit

TRIMS = ("strip", "lstrip", "rstrip", "lower", "upper", "casefold", "title", "removeprefix", "removesuffix")


def text(place: Place) -> Iterator[Edit]:
    """A normalising call is lost, or looks at the other end."""
    node, source = place.node, place.source
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    name = node.func.attr
    if name in TRIMS:
        yield cut_call(source, node, name)
    other = {"startswith": "endswith", "endswith": "startswith", "lower": "upper", "upper": "lower"}.get(name)
    if other:
        yield rename(place, node, other)
    if name == "strip" and not node.args:
        yield rename(place, node, "rstrip")


def splitting(place: Place) -> Iterator[Edit]:
    """split for rsplit, partition for rpartition, a limit on the number of parts lost."""
    node, source = place.node, place.source
    name = called(node)
    if isinstance(node, ast.Call) and name in ("find", "rfind") and isinstance(node.func, ast.Attribute):
        yield rename(place, node, "rfind" if name == "find" else "find")
    pairs = {"split": "rsplit", "rsplit": "split", "partition": "rpartition", "rpartition": "partition"}
    if not isinstance(node, ast.Call) or name not in pairs or not isinstance(node.func, ast.Attribute):
        return
    limited = len(node.args) == 2 or any(word.arg == "maxsplit" for word in node.keywords)
    if limited or "partition" in name:
        yield rename(place, node, pairs[name])
    if name == "split" and len(node.args) == 1 and source.of(node.args[0]) in ('","', "','", '"\\t"'):
        yield Edit(source.span(node.args[0])[1], source.span(node.args[0])[1], ", 1")


REGEX_CALLS = {
    "match": "search",
    "search": "match",
    "fullmatch": "match",
    "sub": "",
    "compile": "",
    "findall": "",
}


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
        yield rename(place, node, other)
    of_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
    if not of_re or not node.args or not is_str(node.args[0]):
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


CODECS = {
    "utf-8-sig": "utf-8",
    "utf8": "latin-1",
    "utf-8": "latin-1",
    "replace": "ignore",
    "latin-1": "utf-8",
}


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


SEPARATORS = {
    ", ": ",",
    ",": ", ",
    "\n": " ",
    " ": "",
    "\t": " ",
    "; ": ", ",
    ";": ",",
    "|": ",",
    "_": "-",
    "-": "_",
    "": " ",
    ": ": ":",
}


def separator(place: Place) -> Iterator[Edit]:
    """``", ".join`` becomes ``",".join`` and so on."""
    node = place.node
    if not isinstance(node, ast.Call) or called(node) != "join" or not isinstance(node.func, ast.Attribute):
        return
    glue = node.func.value
    if isinstance(glue, ast.Constant) and isinstance(glue.value, str) and glue.value in SEPARATORS:
        yield place.source.replace(glue, repr(SEPARATORS[glue.value]).replace("'", '"'))
