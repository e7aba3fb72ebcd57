"""Is a task another one told again? Instruction, solution, tests and fixtures of two task folders, compared.

Other names and other numbers make no other task. Sharing a harness makes no twin either: files that both tasks hold are
set aside before solutions and tests are compared, and the instructions and the solutions must be alike, each by itself.
Texts are compared as `similarity.renamed_ratio` does, data (CSV, JSON and the like) by the values that both hold.
"""

import hashlib
import os
import stat
from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from skill2env.harbor.outcome import read_head
from skill2env.similarity import renamed_ratio, tokens, words

FILE_LIMIT = 64 * 1024
"""Bytes of a file that are compared; files that differ later only are alike."""
FILES = 200
"""Files of a part that are compared, first in order of path."""
TWIN_INSTRUCTION = 0.75
TWIN_SOLUTION = 0.75
TWIN_SCORE = 0.65
"""Twins reach all three. The closest strangers of gatebench reach 0.63 for the instruction, its twins 0.99."""
SHORT = 24
"""Instructions of fewer tokens are alike by chance: they must be equal."""
WEIGHTS = (0.4, 0.3, 0.2, 0.1)
"""Of instruction, solution, tests and fixtures in the score."""

_PHRASE = 4
_SHARED = 0.15
_DATA = frozenset(".csv .json .jsonl .log .md .toml .tsv .txt .xml .yaml .yml".split())
_UNCOUNTED = frozenset({"rubric.md", "Dockerfile"})


@dataclass(frozen=True, slots=True)
class _Text:
    """One file of a part."""

    digest: bytes
    data: bool
    text: str


@dataclass(frozen=True, slots=True)
class Portrait:
    """What of a task is compared."""

    name: str
    instruction: tuple[str, ...]
    """Tokens, see `similarity.tokens`."""
    phrases: frozenset[tuple[str, ...]]
    """Every four tokens of it in a row."""
    solution: tuple[_Text, ...]
    tests: tuple[_Text, ...]
    fixtures: tuple[_Text, ...]


@dataclass(frozen=True, slots=True)
class Likeness:
    """How much two tasks have in common, each part in [0,1]."""

    instruction: float
    solution: float
    tests: float
    fixtures: float

    @property
    def score(self) -> float:
        """The weighted mean."""
        parts = (self.instruction, self.solution, self.tests, self.fixtures)
        return sum(weight * part for weight, part in zip(WEIGHTS, parts, strict=True))

    @property
    def twins(self) -> bool:
        """Whether one of the two tasks adds nothing to the other."""
        return (
            self.instruction >= TWIN_INSTRUCTION
            and self.solution >= TWIN_SOLUTION
            and self.score >= TWIN_SCORE
        )


def portrait_of(task_dir: Path, name: str = "") -> Portrait:
    """Read what is compared of a task; what is missing or unreadable is empty, links are not followed.

    Args:
        task_dir: a task directory, of any quality.
        name: how to call it; its folder's name when empty.
    """
    instruction = tokens(_decode(read_head(task_dir / "instruction.md", FILE_LIMIT)))
    last = max(0, len(instruction) - _PHRASE) if instruction else -1
    return Portrait(
        name=name or task_dir.name,
        instruction=instruction,
        phrases=frozenset(instruction[at : at + _PHRASE] for at in range(last + 1)),
        solution=_part(task_dir / "solution"),
        tests=_part(task_dir / "tests"),
        fixtures=_part(task_dir / "environment"),
    )


def likeness(one: Portrait, other: Portrait) -> Likeness:
    """Compare two tasks; symmetric up to ties."""
    return Likeness(
        renamed_ratio(one.instruction, other.instruction),
        _alike(one.solution, other.solution),
        _alike(one.tests, other.tests),
        _alike(one.fixtures, other.fixtures),
    )


def quick_twins(one: Portrait, other: Portrait) -> Likeness | None:
    """The likeness of two tasks when they are twins, None otherwise; looks no further than it must."""
    if not may_be_twins(one, other, len(one.phrases & other.phrases)):
        return None
    if min(len(one.instruction), len(other.instruction)) < SHORT and one.instruction != other.instruction:
        return None
    if renamed_ratio(one.instruction, other.instruction) < TWIN_INSTRUCTION:
        return None
    found = likeness(one, other)
    return found if found.twins else None


def may_be_twins(one: Portrait, other: Portrait, shared: int) -> bool:
    """Whether the instructions of two tasks share enough phrases for a closer look.

    Args:
        one: a task.
        other: another one.
        shared: how many phrases both have.
    """
    return bool(shared) and shared >= _SHARED * min(len(one.phrases), len(other.phrases))


def _decode(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", errors="replace")


def _part(folder: Path) -> tuple[_Text, ...]:
    found: list[_Text] = []
    for path in _files(folder):
        data = read_head(path, FILE_LIMIT)
        if data is not None:
            digest = hashlib.sha256(data).digest()
            suffix = PurePosixPath(path.name).suffix.lower()
            found.append(_Text(digest, suffix in _DATA, "" if b"\0" in data else _decode(data)))
    return tuple(found)


def _files(folder: Path) -> list[Path]:
    found: list[Path] = []
    pending = [] if folder.is_symlink() else [folder]
    while pending and len(found) < FILES:
        try:
            entries = sorted(os.scandir(pending.pop(0)), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                pending.append(Path(entry.path))
            elif stat.S_ISREG(mode) and entry.name not in _UNCOUNTED:
                found.append(Path(entry.path))
    return found[:FILES]


def _alike(one: tuple[_Text, ...], other: tuple[_Text, ...]) -> float:
    """Likeness of what is left of a part when the files that both tasks hold are set aside.

    Where programs and data are left, the one that differs more decides: a script that every task of a family ships is
    nothing without the data that tell it what to do.
    """
    shared = {file.digest for file in one} & {file.digest for file in other}
    left = [[file for file in files if file.digest not in shared] for files in (one, other)]
    if not any(left):
        return 1.0
    code = [tokens("\n".join(file.text for file in files if not file.data)) for files in left]
    data = [Counter(word for file in files if file.data for word in words(file.text)) for files in left]
    found: list[float] = []
    if any(code):
        found.append(renamed_ratio(*code))
    total = sum(values.total() for values in data)
    if total:
        found.append(2 * (data[0] & data[1]).total() / total)
    return min(found, default=0.0)  # neither: binary files that differ
