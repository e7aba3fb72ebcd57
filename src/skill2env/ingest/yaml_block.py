"""One YAML block as plain JSON values, strictly and within bounds.

Every scalar becomes the text as it was written (``name: 123``, ``yes`` and dates stay text, ``1.10`` stays
``1.10``) and null becomes None, so nothing is lost to a type guess. Nothing is ever constructed from a tag, aliases
are copied within a budget, and any failure of the parser on untrusted text is a `BadYaml`.
"""

from dataclasses import dataclass, field
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from skill2env.ingest.simple_block import read_simple
from skill2env.ingest.text import clean

MAX_DEPTH = 32
MAX_ITEMS = 5_000
MAX_CHARS = 1_000_000
"""Of all scalars together, after aliases are copied."""
_YAML_1_1_WORDS = frozenset({"yes", "no", "on", "off", "y", "n"})
"""Text for YAML 1.2 and here, booleans for YAML 1.1 and so for many clients."""


class BadYaml(Exception):  # a finding about the text, caught right here
    """The block is no valid YAML mapping. `line` is 0-based within the block, None when unknown."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


@dataclass(slots=True)
class Block:
    """The values of a mapping and what was odd about them."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    duplicates: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """Key and 0-based line of each later occurrence."""
    not_text: dict[str, str] = field(default_factory=dict[str, str])
    """Top-level key -> what YAML makes of its value: ``bool``, ``int``, ``list`` ..."""
    multi_line: set[str] = field(default_factory=set[str])
    """Top-level keys whose value is a block scalar or spans lines."""
    commented: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """Top-level plain values that a comment cuts, with the 0-based line."""
    cut: bool = False
    """The bounds were reached and something was left out."""


def parse(block: str) -> Block:
    """Parse one block.

    Raises:
        BadYaml: it is no valid YAML, or no mapping.
    """
    simple = read_simple(block)
    if simple is not None:
        return Block(simple.values, not_text=simple.not_text, multi_line=simple.multi_line)
    if _flow_depth(block) > MAX_DEPTH:  # the parser's work grows with the square of the depth
        raise BadYaml("brackets nested too deep", 0)
    yaml = YAML(typ="safe", pure=True)
    try:
        node: Node | None = yaml.compose(block)
    except MarkedYAMLError as error:
        problem = cast("Any", error)
        mark = problem.problem_mark or problem.context_mark
        raise BadYaml(
            str(problem.problem or problem.context or "not YAML"), mark.line if mark else None
        ) from None
    except Exception as error:
        # The parser also fails with plain errors of Python on odd text, recursion included; all mean "not YAML".
        raise BadYaml(type(error).__name__) from None
    if node is None:
        return Block()
    if not isinstance(node, MappingNode):
        raise BadYaml("the block is no list of keys and values", 0)
    return _Reader(block).read(node)


def _flow_depth(block: str) -> int:
    """An upper bound of how deep brackets are nested; brackets in quotes count as well, which costs little."""
    depth = deepest = 0
    for char in block:
        if char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
        elif char == "\n":
            depth = max(depth, 0)
    return deepest


class _Reader:
    """Turns nodes into values and keeps the budget."""

    def __init__(self, block: str) -> None:
        self._lines = block.split("\n")
        self._result = Block()
        self._items = MAX_ITEMS
        self._chars = MAX_CHARS

    def read(self, top: MappingNode) -> Block:
        result = self._result
        for key_node, value_node in _pairs(top):
            key = self._key(key_node)
            line = _span(key_node)[0]
            if key in result.values:
                result.duplicates.append((key, line))
            result.values[key] = self._value(value_node, 1)
            result.not_text.pop(key, None)
            kind = _kind(value_node)
            if kind:
                result.not_text[key] = kind
            self._look_at_scalar(key, value_node)
        return result

    def _look_at_scalar(self, key: str, node: Node) -> None:
        if not isinstance(node, ScalarNode):
            return
        line, last, column = _span(node)
        if node.style in ("|", ">") or last > line:
            self._result.multi_line.add(key)
        elif not node.style and _text(node) and last < len(self._lines):
            rest = self._lines[last][column:]
            if rest.startswith((" ", "\t", "#")) and rest.strip().startswith("#"):
                self._result.commented.append((key, last))

    def _value(self, node: Node, depth: int) -> Any:
        self._items -= 1
        if self._items < 0 or depth > MAX_DEPTH:
            self._result.cut = True
            return None
        if isinstance(node, MappingNode):
            return {self._key(key): self._value(value, depth + 1) for key, value in _pairs(node)}
        if isinstance(node, SequenceNode):
            return [self._value(entry, depth + 1) for entry in _entries(node)]
        return None if _kind(node) == "null" else self._scalar(node)

    def _key(self, node: Node) -> str:
        return self._scalar(node) if isinstance(node, ScalarNode) else "?"

    def _scalar(self, node: Node) -> str:
        text = clean(_text(node))
        self._chars -= len(text)
        if self._chars < 0:
            self._result.cut = True
            return ""
        return text


# The library's nodes carry no types; these four say once what they hold.


def _text(node: Node) -> str:
    return str(cast("Any", node).value)


def _span(node: Node) -> tuple[int, int, int]:
    """First line, last line and the column after the end, 0-based."""
    marks = cast("Any", node)
    return marks.start_mark.line, marks.end_mark.line, marks.end_mark.column


def _pairs(node: MappingNode) -> list[tuple[Node, Node]]:
    return cast("Any", node).value


def _entries(node: SequenceNode) -> list[Node]:
    return cast("Any", node).value


def _kind(node: Node) -> str:
    """What YAML makes of a value that is not text; empty for text."""
    if isinstance(node, MappingNode):
        return "map"
    if isinstance(node, SequenceNode):
        return "list"
    if isinstance(node, ScalarNode) and not node.style:
        if _text(node).lower() in _YAML_1_1_WORDS:
            return "bool"
        name = str(cast("Any", node).tag).rpartition(":")[2]
        return "" if name == "str" else name
    return ""
