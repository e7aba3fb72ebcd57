"""Small changes to a solution's files: where they can be made, and which of them are tried.

A change replaces one span of one file. Changes that keep a program running are preferred to those that stop it: a
verifier that notices a solution which delivers nothing has shown little.
"""

import difflib
import hashlib
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

_NUMBER = re.compile(rb"(?<![\w.])\d+(?![\w.])")
_COMPARISON = re.compile(rb"(?<![<>=!|&\-])(>=|<=|==|!=|>|<)(?![<>=&(])")
_SWAPPED = {b">=": b">", b"<=": b"<", b"==": b"!=", b"!=": b"==", b">": b">=", b"<": b"<="}
_LONGEST = 200_000


@dataclass(frozen=True, slots=True)
class Change:
    """One span of one file, replaced."""

    file: str
    """Relative to the folder of the solution."""
    start: int
    end: int
    """Byte offsets."""
    new: bytes
    kind: str
    """What kind of change it is, for people and for choosing different ones."""
    harsh: bool = False
    """It probably stops the program."""

    def apply(self, data: bytes) -> bytes:
        """The file's content with the change."""
        return data[: self.start] + self.new + data[self.end :]

    def line(self, data: bytes) -> int:
        """Where it begins, counted from 1."""
        return data.count(b"\n", 0, self.start) + 1

    def diff(self, data: bytes) -> str:
        """As a unified diff."""
        before, after = (text.decode(errors="replace").splitlines() for text in (data, self.apply(data)))
        lines = difflib.unified_diff(before, after, f"a/{self.file}", f"b/{self.file}", lineterm="", n=2)
        return "\n".join(lines) + "\n"


def changes(files: Mapping[str, bytes]) -> list[Change]:
    """Every change that can be made to a solution, in the order of files and places.

    Args:
        files: content by path below ``solution/``.
    """
    from skill2env.verify.mutating_python import python_changes
    from skill2env.verify.mutating_shell import shell_changes

    found: list[Change] = []
    for path, data in sorted(files.items()):
        if len(data) > _LONGEST or b"\0" in data:
            continue
        suffix, first = PurePosixPath(path).suffix, data.split(b"\n", 1)[0]
        if suffix == ".py" or (first.startswith(b"#!") and b"python" in first):
            found += python_changes(path, data, 0, len(data))
        elif suffix in (".sh", ".bash") or first.startswith(b"#!"):
            found += shell_changes(path, data, 0, len(data))
        elif suffix != ".md":
            found += text_changes(path, data, 0, len(data))
    return [change for change in found if change.apply(files[change.file]) != files[change.file]]


def text_changes(path: str, data: bytes, start: int, end: int) -> Iterator[Change]:
    """Changes to text of any form: another number, another comparison, a line less."""
    text = data[start:end]
    for match in _NUMBER.finditer(text):
        new = str(int(match[0]) + 1).encode()
        yield Change(path, start + match.start(), start + match.end(), new, "number")
    for match in _COMPARISON.finditer(text):
        yield Change(path, start + match.start(), start + match.end(), _SWAPPED[match[1]], "comparison")
    at = start
    lines = text.splitlines(keepends=True)
    for line in lines:
        if line.strip() and len(lines) > 1:
            yield Change(path, at, at + len(line), b"", "line removed")
        at += len(line)


def choose(found: Sequence[Change], files: Mapping[str, bytes], count: int) -> list[Change]:
    """A sample: the same for the same files, spread over kinds and lines, gentle changes first.

    Args:
        found: from `changes`.
        files: what they change.
        count: how many, at most.
    """
    seed = hashlib.sha256()
    for path, data in sorted(files.items()):
        seed.update(path.encode() + b"\0" + data + b"\0")
    shuffled = list(found)
    random.Random(seed.hexdigest()).shuffle(shuffled)
    ordered: list[Change] = []
    for harsh in (False, True):
        by_kind: dict[str, list[Change]] = {}
        for change in shuffled:
            if change.harsh is harsh:
                by_kind.setdefault(change.kind, []).append(change)
        ordered += _in_turn(by_kind)
    lines: set[tuple[str, int]] = set()
    fresh: list[Change] = []
    stale: list[Change] = []
    for change in ordered:
        place = (change.file, change.line(files[change.file]))
        (stale if place in lines or change.harsh else fresh).append(change)
        lines.add(place)
    return [*fresh, *stale][:count]


def _in_turn(groups: Mapping[str, list[Change]]) -> Iterator[Change]:
    """One of each group, then the next of each."""
    longest = max(map(len, groups.values()), default=0)
    for turn in range(longest):
        for kind in sorted(groups):
            if turn < len(groups[kind]):
                yield groups[kind][turn]
