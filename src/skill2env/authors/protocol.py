"""The Author protocol: who plans workflows and creates tasks, and what passes between it and the host.

An author is anything that can answer two calls. It never sees the host: it is given a *workspace* folder staged by
us and writes below ``workspace/task``; the host collects from there (regular files only, size caps, modes
normalised) and trusts nothing else. One call is one session, so a session can be a Harbor trial, a replay from
disk, or a program.

Workspace of each phase::

    source/   the skill, a copy; changes to it are ignored
    task/     CONTRACT: empty, or what is to be mended.
              SOLUTION and REPAIR: instruction.md, environment/, [tests/ when informed], solution/
    feedback/ REPAIR only: what the verifier printed
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from skill2env.errors import Boundary, BudgetReached, InfraError
from skill2env.records import (
    AuthorIdentity,
    Axes,
    Phase,
    Reason,
    Record,
    Skill,
    Skipped,
    SkipReason,
    TaskSpec,
    Usage,
    Workflow,
)


class Message(Record):
    """One turn of an authoring session, kept for recordings and audits."""

    role: str
    """``system``, ``user``, ``assistant`` or ``tool``."""
    text: str


class Limit(StrEnum):
    """Which limit set an allowance."""

    RUN = "run"
    """What the whole run may cost: a session that needs more stops the run."""
    TASK = "task"
    """What one task may cost: it ends the task."""
    SESSION = "session"
    """What one session may cost: it ends the task, too."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a session may cost."""

    micro_dollars: int
    limit: Limit = Limit.RUN

    def exceeded(self, when: str) -> Skipped:
        """The skip of work that needs more, for limits that end it and not the run."""
        knob = "budget.usd_per_session" if self.limit is Limit.SESSION else "--max-usd-per-task"
        return Skipped(
            reason=SkipReason.TOO_EXPENSIVE,
            detail=f"the limit for one {self.limit.value} ({knob}) was reached {when}",
        )


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """Ask for the workflows of one skill."""

    skill: Skill
    skill_dir: Path
    """Folder with the skill's files, read-only by agreement."""
    count: int
    """How many workflows are wanted; fewer is fine, more are cut."""
    prompt: str
    """Rendered planning prompt with the JSON schema of the answer."""
    seed: int
    allowance: Allowance | None = None
    """None for no limit, and for authors that cost nothing."""


class PlanReply(Record):
    """The answer to a `PlanRequest`: unparsed JSON text, because parsing is the host's job and counts its drops."""

    text: str = ""
    """A JSON list of workflows (an object with a ``workflows`` key is accepted too)."""
    skipped: Skipped | None = None
    """Set when the author declines the whole skill."""
    usage: Usage = Usage()
    messages: tuple[Message, ...] = ()
    hosts: tuple[str, ...] = ()
    """``HOST:PORT VERDICT`` of what the session asked for through the proxy, sorted."""


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """Ask for one phase of one task."""

    spec: TaskSpec
    skill: Skill
    skill_dir: Path
    phase: Phase
    workspace: Path
    prompt: str
    round: int = 0
    """0 for the first session of a phase, 1.. for repairs; CONTRACT 1.. mends what the checks found."""
    feedback: str = ""
    """Verifier output of the failing Oracle, for REPAIR."""
    allowance: Allowance | None = None
    """As for `PlanRequest`."""
    informed: bool = True
    """False hides tests/ from SOLUTION and REPAIR (``--solution blind``)."""


class Refusal(Record):
    """Files of a session that the host does not take, and why; see `authors.workspace`."""

    reason: Reason
    """``unsafe_file`` or ``too_large``."""
    path: str
    """The offending path relative to ``task/``, made printable."""
    message: str
    """One sentence for a person."""


class CreateReply(Record):
    """How one phase ended. The files are in the workspace."""

    skipped: Skipped | None = None
    """Set when the author declines; files are then ignored."""
    refused: Refusal | None = None
    """Set when the author's own transport already found files that must not be taken; the candidate is rejected."""
    usage: Usage = Usage()
    messages: tuple[Message, ...] = ()
    hosts: tuple[str, ...] = ()
    """``HOST:PORT VERDICT`` of what the session asked for through the proxy, sorted."""


class AllowanceSpent(BudgetReached):
    """A session was ended because it had used up its allowance. `usage` is what it cost."""

    def __init__(self, message: str, *, usage: Usage, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.usage = usage


class AuthorFailed(InfraError):
    """A session failed for a reason that is not the skill's. `usage` is what it cost all the same."""

    def __init__(
        self, boundary: Boundary, message: str, *, usage: Usage, transient: bool, hint: str = ""
    ) -> None:
        super().__init__(boundary, message, hint=hint, transient=transient)
        self.usage = usage


@runtime_checkable
class Author(Protocol):
    """Plans and creates. Implementations are listed in `authors.registry`."""

    @property
    def identity(self) -> AuthorIdentity:
        """Who this is; part of every cache key. Equal identities must mean equal output for equal requests."""
        ...

    def plan(self, request: PlanRequest) -> PlanReply:
        """Name the workflows of a skill.

        Raises:
            InfraError: the author failed for a reason that is not the skill's (provider, sandbox).
        """
        ...

    def create(self, request: CreateRequest) -> CreateReply:
        """Run one phase in `request.workspace`.

        Raises:
            InfraError: as for `plan`. A reply is final for the phase; only infra failures are retried.
        """
        ...


@runtime_checkable
class PinsAxes(Protocol):
    """An author whose sessions were written for certain axes (a recording), so that sampling others would be untrue."""

    def pinned_axes(self, skill: Skill, workflow: Workflow, variant: int) -> Axes | None:
        """The axes this author will work to, or None to leave them to the sampler."""
        ...


@runtime_checkable
class KnowsSkills(Protocol):
    """An author that can say more exactly who it is for one skill."""

    def identity_for(self, skill: Skill) -> AuthorIdentity:
        """As `Author.identity`, covering only what determines the output for `skill`."""
        ...


@runtime_checkable
class MendsContracts(Protocol):
    """An author that can mend a contract which the host's checks turned away, before the seal."""

    def mends_contract(self, skill: Skill, spec: TaskSpec, number: int) -> bool:
        """Whether mending session `number` (1, 2 ...) of a task can be held."""
        ...


@runtime_checkable
class HoldsKeys(Protocol):
    """An author that was given credentials."""

    def keys(self) -> Mapping[str, str]:
        """What they are called -> their values. Read when it is asked for, and never stored."""
        ...


@runtime_checkable
class KeepsTime(Protocol):
    """An author that knows what its own work took."""

    def seconds(self) -> Mapping[str, float]:
        """Part of its work -> wall seconds so far, of all sessions together."""
        ...


def seconds_of(author: Author) -> Mapping[str, float]:
    """Where the time of `author` went; empty for those that do not say."""
    return author.seconds() if isinstance(author, KeepsTime) else {}


def keys_of(author: Author) -> Mapping[str, str]:
    """Credentials that `author` was given; empty for authors without any."""
    return author.keys() if isinstance(author, HoldsKeys) else {}


def mends_contract(author: Author, skill: Skill, spec: TaskSpec, number: int) -> bool:
    """Whether to ask `author` for a mending session; authors that would only repeat themselves are not asked."""
    return isinstance(author, MendsContracts) and author.mends_contract(skill, spec, number)


def pinned_axes(author: Author, skill: Skill, workflow: Workflow, variant: int) -> Axes | None:
    """Axes that `author` insists on; None for authors that take what they are given."""
    return author.pinned_axes(skill, workflow, variant) if isinstance(author, PinsAxes) else None


def identity_for(author: Author, skill: Skill) -> AuthorIdentity:
    """Identity of `author` for one skill: the closest one it can give, else its general identity."""
    return author.identity_for(skill) if isinstance(author, KnowsSkills) else author.identity
