"""Take-downs: remove tasks by source, licence, skill or name, and keep them from coming back."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from skill2env.errors import UserError
from skill2env.publish.dataset import DatasetState, commit, locked, require_state
from skill2env.publish.entry import TaskEntry
from skill2env.store.files import storage

KINDS = ("source", "licence", "skill", "task")
"""What a selector may name. ``licence:unknown`` and ``source:local`` stand for the empty value."""


@dataclass(frozen=True, slots=True)
class Selector:
    """One take-down: every task whose value matches the pattern (``*`` and ``?`` as in a shell)."""

    kind: str
    pattern: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.pattern}"

    def matches(self, entry: TaskEntry) -> bool:
        """Whether the task falls under this take-down."""
        values = {
            "source": (entry.source or "local",),
            "licence": (entry.licence or "unknown",),
            "skill": (entry.skill, entry.skill_digest),
            "task": (entry.name, entry.folder),
        }[self.kind]
        return any(fnmatchcase(value, self.pattern) for value in values)


def parse_selector(text: str) -> Selector:
    """Read ``kind:pattern``.

    Raises:
        UserError: the kind is not one of `KINDS` or the pattern is empty.
    """
    kind, _, pattern = text.partition(":")
    if kind not in KINDS or not pattern:
        raise UserError(
            f"{text!r} is not a take-down", hint=f"write KIND:PATTERN with KIND one of {', '.join(KINDS)}"
        )
    return Selector(kind, pattern)


def blocking(entry: TaskEntry, taken_down: Sequence[str]) -> str:
    """The first take-down that the task falls under, or an empty string."""
    return next((text for text in taken_down if parse_selector(text).matches(entry)), "")


def drop(dataset: Path, selectors: Sequence[Selector]) -> tuple[DatasetState, list[TaskEntry]]:
    """Remove every task that a selector matches, with an updated card, manifest and version.

    The folders go first and the index last, so that a task is never listed as gone while it still lies there. The
    selectors are remembered: a later compile does not bring the tasks back.

    Args:
        dataset: the folder.
        selectors: at least one.

    Returns:
        The state afterwards and the tasks that went.

    Raises:
        UserError: not a dataset, or nothing matches.
        InfraError: boundary ``storage``; the same call again goes on.
    """
    require_state(dataset)
    with locked(dataset):
        before = require_state(dataset)
        gone = [entry for entry in before.entries if any(s.matches(entry) for s in selectors)]
        if not gone:
            raise UserError(
                f"no task of {dataset} matches {', '.join(map(str, selectors))}",
                hint=f"`skill2env dataset show {dataset}` lists tasks, sources and licences",
            )
        for entry in gone:
            with storage("removing", dataset / entry.folder):
                if (dataset / entry.folder).exists():
                    shutil.rmtree(dataset / entry.folder)
        kept = [entry for entry in before.entries if entry not in gone]
        remembered = tuple(sorted({*before.taken_down, *map(str, selectors)}))
        return commit(dataset, before, kept, taken_down=remembered), gone
