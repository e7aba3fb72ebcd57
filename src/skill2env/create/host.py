"""What create needs from its surroundings, handed in because stages do not know each other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from skill2env.authors.protocol import Allowance
from skill2env.records import (
    Phase,
    Skill,
    StagedAsset,
    TaskContract,
    TaskSpec,
    Usage,
    Verdict,
    VerdictStatus,
)


@dataclass(frozen=True, slots=True)
class SessionNote:
    """One authoring session, for the ledger."""

    key: str
    """Digest of everything the session was given; equal keys are one session."""
    subject: str
    """Task name."""
    phase: Phase
    round: int
    usage: Usage
    cached: bool
    """Taken from the cache; nothing was paid now."""
    outcome: str = "finished"
    """Or the boundary of the infra failure that ended it."""
    hosts: tuple[str, ...] = ()
    """``HOST:PORT VERDICT`` of what was asked for through the proxy."""


@dataclass(frozen=True, slots=True)
class Grounded:
    """What became of the public files that a contract names."""

    verdict: Verdict
    """Accepted, or rejected; one gate, or none when nobody looked."""
    assets: tuple[StagedAsset, ...] = ()
    """What was put into the task."""


def not_grounded(_: Path, __: TaskContract) -> Grounded:
    """Nothing is downloaded and nobody looks."""
    return Grounded(Verdict(status=VerdictStatus.ACCEPTED))


def _nothing(_: object) -> None:
    """Default of the notes that a caller does not need; no allowance either."""


@dataclass(frozen=True, slots=True)
class Host:
    """Callables of other parts, wired by the pipeline."""

    check_contract: Callable[[Path, TaskContract], Verdict]
    """Everything that needs no solution: static gates, build, leak scan, Nop. Runs before the seal."""
    check_solution: Callable[[Path, TaskContract], Verdict]
    """The reference solution's scripts and one Oracle. Runs after the seal."""
    solution_feedback: Callable[[Verdict, bool], str]
    """What a repair session is told about a failed `check_solution`. The flag says whether the verifier's own output
    may be part of it: not when the solution is written blind."""
    render_task_toml: Callable[[TaskSpec, TaskContract, Skill], str]
    """task.toml without ``[metadata]``. May raise UserError for a contract that Harbor's schema refuses."""
    base_image: Callable[[str], str | None]
    """Catalog name -> reference with digest to write into the Dockerfile; None for a name not in the catalog."""
    bases: Mapping[str, str]
    """Names of the catalog and what each is for, for prompts and messages."""
    record_seal: Callable[[str, str, Mapping[str, str]], None]
    """(task name, freeze digest, path -> mode and digest): the ledger's entry. Called once, at the seal."""
    note_session: Callable[[SessionNote], None] = _nothing
    """Called after every session, cached ones included."""
    before_session: Callable[[SessionNote], Allowance | None] = _nothing
    """Called before a session that is not cached; gives what it may cost, or raises BudgetReached to stop. What it
    set aside is settled by `note_session` with the same key."""
    ground: Callable[[Path, TaskContract], Grounded] = not_grounded
    """Puts the public files that the contract names into the task folder. Called before `check_contract`."""
    release: Callable[[str], None] = _nothing
    """Called with the key of a session that ended in a way that is not noted: nothing stays set aside for it."""
