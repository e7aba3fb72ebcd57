"""Shell scripts as syntax trees: the only importer of tree-sitter's grammar of bash. Scripts are strangers' texts.

The grammar's scanner, which is C, asks the C library whether a character is a digit or a letter, and hands it code
points that the library's tables do not reach: ``{`` before such a character ends the process. So what lies beyond ASCII
is replaced by letters, byte by byte, before the scanner sees it. Offsets stay true; words that may hold such characters
are read from the script and not from the node.

A few patterns (thousands of pipes in a row) cost quadratic time. Parsing is given up after a number of steps, which
unlike a time limit is the same on every machine.
"""

import functools
import re

import tree_sitter_bash
from tree_sitter import Language, Node, Parser, Point

_STRANGE = re.compile(rb"[\x00\x80-\xff]")
_CHUNK = 4096


def parse(script: bytes) -> Node | None:
    """Root of the tree of a script, errors being nodes of type ``ERROR``; None when it is too tangled to be parsed."""
    plain = _STRANGE.sub(b"x", script)
    steps = _Steps(plain)
    try:
        # Progress is reported about every hundred operations; ordinary scripts need one for 45 to 200 bytes.
        tree = Parser(_language()).parse(steps.read, progress_callback=steps.exceeded)
    except ValueError:
        return None
    return None if steps.over else tree.root_node


class _Steps:
    """Hands out the script and counts."""

    def __init__(self, script: bytes) -> None:
        self._script = script
        self._left = 1000 + len(script) // 24

    @property
    def over(self) -> bool:
        return self._left < 0

    def read(self, offset: int, point: Point) -> bytes:  # noqa: ARG002
        self._left -= 1
        return b"" if self.over else self._script[offset : offset + _CHUNK]

    def exceeded(self, offset: int, has_error: bool) -> bool:  # noqa: ARG002
        self._left -= 1
        return self.over


@functools.cache
def _language() -> Language:
    return Language(tree_sitter_bash.language())
