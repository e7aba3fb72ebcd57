"""What a gate is given, what it returns, and how that becomes a `GateResult`."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from skill2env.harbor.limits import Timeouts
from skill2env.harbor.outcome import TrialOutcome
from skill2env.harbor.sandboxes import SandboxChoice
from skill2env.harbor.task import TaskFacts
from skill2env.records import (
    Finding,
    GateOutcome,
    GateResult,
    ProbeResult,
    Reason,
    Severity,
    TaskContract,
)
from skill2env.verify.machine import Machine
from skill2env.verify.rules import Profile, rule_of

if TYPE_CHECKING:
    from skill2env.sandbox.conditions import NotApplicable
    from skill2env.sandbox.images import BuiltImage
    from skill2env.verify.study import Study


BUILDING = ("namespace", "docker", "podman")
"""Sandboxes whose images we build, scan and compare ourselves; others build within each trial."""


class Stage(StrEnum):
    """Which part of a task exists."""

    CONTRACT = "contract"
    """Before the seal: no solution yet."""
    SOLUTION = "solution"
    """After the seal: only what the reference solution can break."""
    TASK = "task"
    """A whole task."""


class Level(StrEnum):
    """How much is checked."""

    PAPER = "paper"
    """Nop and Oracle only, as the reference system does."""
    STANDARD = "standard"
    """Every gate, with the probes that find most for their time."""
    STRICT = "strict"
    """Every gate with every probe, for benchmarks."""


@dataclass(frozen=True, slots=True)
class GateContext:
    """Where and how gates run; the same for every task of a batch."""

    sandbox: SandboxChoice
    evidence: Path
    """Folder for logs and trials; each gate writes below its own name. The caller keeps or removes it."""
    image_map: Mapping[str, str] = field(default_factory=dict[str, str])
    """Image references of other people's Dockerfiles to names of our catalog."""
    network: bool = True
    """Whether a task that fails without the network it asks for may have it."""
    level: Level = Level.STANDARD
    """How many probes are run."""
    today: date | None = None
    """The day that texts are compared with, as the caller gives it: the clock would make results differ from day to
    day. None compares with no day."""
    every: bool = False
    """Go on after a failing probe, to see everything at once."""
    trials_at_once: int = 2
    """Trials of one task beside each other."""
    oracle_repeats: int = 2
    """Runs of the reference solution in the task's own mode, the first one included."""
    infra_retries: int = 2
    """Further tries after a failure of the surroundings."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    """Limits that replace or cap the task's own."""
    machine: Machine = field(default_factory=Machine)
    """Shared by everything that runs trials at the same time, so that one can ask for the machine alone."""


@dataclass(slots=True)
class Subject:
    """One task on its way through the gates, and what earlier gates learned about it."""

    task_dir: Path
    profile: Profile
    stage: Stage = Stage.TASK
    contract: TaskContract | None = None
    """Given by `create`; None for published and foreign tasks."""
    facts: TaskFacts | None = None
    image: "BuiltImage | None" = None
    trials: int = 0
    """How many trials were run so far; several threads count."""
    trial_seconds: float = 0.0
    """Wall time of these trials, added up."""
    counting: threading.Lock = field(default_factory=threading.Lock, repr=False)
    online: bool = False
    """True once it has been run with the network that it asks for."""
    nop: TrialOutcome | None = None
    oracle: TrialOutcome | None = None
    study: "Study | NotApplicable | None" = None
    """What `study_of` learned, or why it cannot."""
    studying: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def count_trial(self) -> None:
        """Note that a trial begins."""
        with self.counting:
            self.trials += 1

    def add_trial_seconds(self, seconds: float) -> None:
        """Note how long a trial took."""
        with self.counting:
            self.trial_seconds += seconds


@dataclass(frozen=True, slots=True)
class Hit:
    """One broken rule at one place."""

    code: str
    """Code of a `rules.Rule`."""
    message: str
    where: str = ""
    """Path relative to the task, with ``:line`` when known."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a gate found."""

    hits: Sequence[Hit] = ()
    values: Mapping[str, float | int | str | bool | None] = field(
        default_factory=dict[str, float | int | str | bool | None]
    )
    """Normalised facts for the evidence digest: no logs, times or paths."""
    probes: Sequence[ProbeResult] = ()
    """What its probes said."""
    not_run: str = ""
    """Why the gate does not apply here; empty when it ran."""
    message: str = ""
    """Overrides the message made from the first rejecting hit."""


type GateFunction = Callable[[Subject, GateContext], Report]


@dataclass(frozen=True, slots=True)
class Gate:
    """One check: a name, a function, and where it applies."""

    name: str
    run: GateFunction
    """Raises `InfraError` when it cannot be decided."""
    stages: frozenset[Stage] = frozenset(Stage)
    levels: frozenset[Level] = frozenset({Level.STANDARD, Level.STRICT})


def rejecting(hits: Sequence[Hit], profile: Profile) -> list[Hit]:
    """The hits that reject under a profile."""
    return [hit for hit in hits if rule_of(hit.code).severity(profile) is Severity.ERROR]


def to_result(gate: str, report: Report, profile: Profile) -> GateResult:
    """Judge the hits of a gate under a profile."""
    if report.not_run:
        return GateResult(gate=gate, outcome=GateOutcome.NOT_RUN, message=report.not_run)
    findings = tuple(_finding(hit, profile) for hit in report.hits)
    worst = next((n for n, finding in enumerate(findings) if finding.severity is Severity.ERROR), None)
    if worst is None:
        return GateResult(
            gate=gate,
            outcome=GateOutcome.PASSED,
            findings=findings,
            values=dict(report.values),
            probes=tuple(report.probes),
            message=report.message,
        )
    return GateResult(
        gate=gate,
        outcome=GateOutcome.REJECTED,
        reason=_reason(findings[worst]),
        message=report.message or _sentence(findings[worst]),
        findings=findings,
        values=dict(report.values),
        probes=tuple(report.probes),
    )


def _finding(hit: Hit, profile: Profile) -> Finding:
    rule = rule_of(hit.code)
    return Finding(
        code=hit.code, severity=rule.severity(profile), message=hit.message, where=hit.where, mend=rule.mend
    )


def _reason(finding: Finding) -> Reason:
    return rule_of(finding.code).reason


def _sentence(finding: Finding) -> str:
    return f"{finding.where}: {finding.message}" if finding.where else finding.message
