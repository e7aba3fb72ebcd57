"""What a run tells while it works. The library reports events; the command line decides how they look."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class EventKind(StrEnum):
    """What happened."""

    PHASE = "phase"
    """A stretch of work begins; `total` says how many elements it has (0: unknown)."""
    STEP = "step"
    """One element entered a stage; `detail` names the stage."""
    DONE = "done"
    """One element of the phase is finished; `detail` says how it ended."""
    REUSED = "reused"
    """One element of the phase was finished by an earlier run."""
    COUNT = "count"
    """`total` more elements of the phase are finished, and none is worth a line."""
    REDO = "redo"
    """A finished result does not count any more; `detail` names the fields that changed."""
    NOTE = "note"
    """Something a person should know."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened."""

    kind: EventKind
    subject: str
    """Skill, task or phase."""
    detail: str = ""
    total: int = 0


class Progress(Protocol):
    """Receives events, from any thread, one at a time."""

    def __call__(self, event: Event) -> None:
        """Take one event; must not raise."""
        ...


def silent(event: Event) -> None:
    """A `Progress` that drops everything."""
    del event
