"""What goes through the stages: skills, then the items drawn from them."""

from dataclasses import dataclass
from pathlib import Path

from skill2env.records import Attempt, Candidate, Skill, TaskSpec, Verdict, Workflow
from skill2env.store.ledger import SkillRow


class Cancelled(Exception):  # control flow of a batch, never seen outside of it
    """The batch is being stopped; the element is left as it is."""


@dataclass(slots=True)
class SkillWork:
    """One skill on its way through the stages."""

    path: Path
    label: str
    skill: Skill | None = None
    workflows: tuple[Workflow, ...] = ()
    row: SkillRow | None = None
    """How planning ended."""
    reused: bool = False
    broken: bool = False
    """A bug of ours met it; the others go on."""

    @property
    def ended(self) -> bool:
        """Whether no later stage has anything to do."""
        return self.broken or (self.row is not None and self.row.status != "planned")

    @property
    def outcome(self) -> str:
        """Where it stands, in a few words."""
        if self.row is None:
            return "read"
        if self.row.status == "planned":
            return f"{self.row.workflows} workflows"
        return f"{self.row.status}: {self.row.reason}" + (f" ({self.row.detail})" if self.row.detail else "")

    @property
    def known(self) -> Skill:
        """The skill, after ingest."""
        assert self.skill is not None
        return self.skill


@dataclass(slots=True)
class ItemWork:
    """One TaskSpec on its way through the stages."""

    of: SkillWork
    spec: TaskSpec
    key: str
    """Digest of everything that determines the attempt."""
    candidate: Candidate | None = None
    verdict: Verdict | None = None
    attempt: Attempt | None = None
    """Where it ended; None while it is under way or accepted and not yet published."""
    reused: bool = False
    broken: bool = False
    """A bug of ours met it; the others go on."""

    @property
    def label(self) -> str:
        """What a person calls it."""
        return self.spec.task_name.rpartition("/")[2]

    @property
    def subject(self) -> str:
        """Stays the same when an input changes."""
        return f"{self.spec.skill_slug}/{self.spec.workflow.name}/{self.spec.variant}"

    @property
    def place(self) -> str:
        """Name of its folders; another input gives another folder, so that evidence is never overwritten."""
        return f"{self.label}-{self.key.removeprefix('sha256:')[:8]}"

    @property
    def ended(self) -> bool:
        """Whether no later stage has anything to do."""
        return self.broken or self.attempt is not None

    @property
    def outcome(self) -> str:
        """Where it stands, in a few words."""
        if self.attempt is None:
            return "accepted"
        told = self.attempt.detail or (self.verdict.message if self.verdict else "")
        return " ".join(filter(None, (self.attempt.status.value, self.attempt.reason))) + (
            f": {told}" if told else ""
        )
