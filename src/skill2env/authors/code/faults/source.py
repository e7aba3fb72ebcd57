"""Python source with byte offsets: a fault is a replaced span, so formatting and comments stay as they are."""

import ast
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace the bytes from `start` to `end` by `text`."""

    start: int
    end: int
    text: str


class Source:
    """One parsed module. Offsets are bytes of the UTF-8 text, as in `ast`."""

    def __init__(self, text: str) -> None:
        """Parse `text`.

        Raises:
            SyntaxError: not valid for the Python that runs skill2env.
            ValueError: NUL bytes.
        """
        self.text = text
        self.data = text.encode()
        self.tree = ast.parse(text)

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        for line in self.data.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Byte offsets of a node that has a position."""
        lines = self._line_starts
        first, last = int(getattr(node, "lineno", 1)), int(getattr(node, "end_lineno", 1))
        start = lines[first - 1] + int(getattr(node, "col_offset", 0))
        return start, lines[last - 1] + int(getattr(node, "end_col_offset", 0))

    def of(self, node: ast.AST) -> str:
        """Text of a node as written."""
        start, end = self.span(node)
        return self.data[start:end].decode()

    def replace(self, node: ast.AST, text: str) -> Edit:
        """Edit that puts `text` in the place of `node`."""
        return Edit(*self.span(node), text)

    def between(self, left: ast.AST, right: ast.AST, old: str, new: str) -> Edit | None:
        """Edit of the single occurrence of `old` between two nodes (an operator or a keyword); None if unclear."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = self.data[start:end].decode()
        if gap.count(old) != 1 or "#" in gap:
            return None
        at = start + len(gap[: gap.index(old)].encode())
        return Edit(at, at + len(old.encode()), new)

    def line_of(self, offset: int) -> int:
        """1-based line that holds a byte offset."""
        return self.data[:offset].count(b"\n") + 1

    def apply(self, *edits: Edit) -> str:
        """Text with non-overlapping edits made.

        Raises:
            ValueError: two edits overlap.
        """
        data, end = bytearray(self.data), len(self.data) + 1
        for edit in sorted(edits, reverse=True):
            if edit.end > end:
                raise ValueError("edits overlap")
            data[edit.start : edit.end] = edit.text.encode()
            end = edit.start
        return data.decode()


def parses(text: str) -> bool:
    """True when `text` is a valid module."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True
