"""What analysis knows of a task: one record, whoever made the task, and how its oddities are told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from skill2env.records import Diagnostic, Severity

UNDECIDED = "undecided"
"""What stands for a domain that nobody states and no words betray."""
UNKNOWN = "unknown"
"""What stands for a fact that a task does not state."""
PARTS = ("instruction", "rubric", "world", "tests", "solution")
"""The texts of a task, in the order in which they are read."""

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """One Harbor task, as its folder tells it; what a task does not state is empty."""

    key: str
    """Path of its folder relative to the dataset, unique there."""
    folder: Path
    name: str
    """``org/slug`` of task.toml, else the folder's name."""
    instruction: str = ""
    rubric: str = ""
    world: str = ""
    """The text files below environment/, one after the other, shortened (see `reading`)."""
    tests: str = ""
    """The text files below tests/ without the rubric, likewise."""
    solution: str = ""
    """The text files below solution/, likewise."""
    files: tuple[tuple[str, int], ...] = ()
    """Path and size in bytes of every regular file, sorted by path."""
    skill: str = ""
    """Name of the skill that it was made from."""
    skill_digest: str = ""
    workflow: str = ""
    domain: str = ""
    """A `Domain`: as stated by the task, or as guessed from its words (see `guessed`); empty when neither is sure."""
    guessed: bool = False
    """The domain is the classifier's guess, because the task states none or one of another catalog."""
    category: str = ""
    """The domain or category as stated, in whatever catalog its maker uses."""
    axes: Mapping[str, str] = _NOTHING
    licence: str = ""
    author: str = ""
    variant: str = ""
    schema_version: str = ""
    difficulty: str = ""
    """As claimed by the task's maker; measured difficulty is another matter."""
    keywords: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(size for _, size in self.files)


@dataclass(frozen=True, slots=True)
class Corpus:
    """The tasks of one dataset and everything odd about them."""

    name: str
    tasks: tuple[TaskRecord, ...]
    """Sorted by key."""
    diagnostics: tuple[Diagnostic, ...] = ()

    def counts(self) -> dict[str, int]:
        """How often each kind of oddity occurs, most often first."""
        found: dict[str, int] = {}
        for item in self.diagnostics:
            found[item.code] = found.get(item.code, 0) + 1
        return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


@dataclass(slots=True)
class Notes:
    """Collects oddities; nothing of them stops an analysis."""

    found: list[Diagnostic] = field(default_factory=list[Diagnostic])

    def add(self, code: str, message: str, where: str = "", severity: Severity = Severity.WARN) -> None:
        """Note one."""
        self.found.append(Diagnostic(code=code, severity=severity, message=message, where=where))


@dataclass(frozen=True, slots=True)
class SkillText:
    """A skill as far as words go."""

    key: str
    """Path of its file or folder, or whatever the source calls it; unique."""
    name: str
    text: str
    """All of SKILL.md, front matter included."""
    digest: str = ""
    """Digest of the skill, where the source states it."""
