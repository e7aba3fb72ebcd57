"""What one task's verdict comes to: the headline that every report shows, and the findings that count."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skill2env.records import Finding, GateOutcome, Severity, VerdictStatus
from skill2env.verify.many import Verified
from skill2env.verify.report.baseline import Baseline
from skill2env.verify.rules import rule_of

KNOWN = "known"
"""Status of a task that is rejected, and all of whose findings the baseline has."""


@dataclass(frozen=True, slots=True)
class GateFinding:
    """A finding with the gate that made it."""

    gate: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class Outcome:
    """One task in a report."""

    verified: Verified
    status: str
    """``accepted``, ``rejected``, ``infra``, or `KNOWN`."""
    reason: str = ""
    """Value of a `Reason`, or the boundary of an infra failure."""
    gate: str = ""
    """The gate that decided; empty when accepted."""
    message: str = ""
    mend: str = ""
    findings: tuple[GateFinding, ...] = ()
    """Of weight `warn` and above; with a baseline only those that it lacks."""

    @property
    def name(self) -> str:
        """What to call the task."""
        return self.verified.name or self.verified.path.name

    @property
    def warnings(self) -> int:
        """How many findings ask a reviewer to look."""
        return sum(item.finding.severity is Severity.WARN for item in self.findings)

    @property
    def trials(self) -> int:
        """Trials that were run for the verdict, in whatever run that was."""
        return sum(gate.trials for gate in self.verified.verdict.gates)

    @property
    def trial_seconds(self) -> float:
        """Wall time of the trials added up."""
        return sum(gate.trial_seconds for gate in self.verified.verdict.gates)

    @property
    def seconds(self) -> float:
        """Wall time of all gates."""
        return sum(gate.seconds for gate in self.verified.verdict.gates)


def outcome_of(verified: Verified, baseline: Baseline | None = None) -> Outcome:
    """Sum up a verdict.

    Args:
        verified: a task and its verdict.
        baseline: what an earlier run found; its findings do not count.
    """
    verdict = verified.verdict
    counting = tuple(
        GateFinding(gate.gate, finding)
        for gate in verdict.gates
        for finding in gate.findings
        if finding.severity is not Severity.INFO
        and not (baseline is not None and baseline.knows(verified, finding))
    )
    if verdict.status is VerdictStatus.INFRA:
        gate = next((g.gate for g in verdict.gates if g.outcome is GateOutcome.INFRA), "")
        return Outcome(verified, "infra", verdict.boundary, gate, verdict.message, _RETRY, counting)
    if verdict.status is VerdictStatus.ACCEPTED:
        return Outcome(verified, "accepted", findings=counting)
    worst = next((item for item in counting if item.finding.severity is Severity.ERROR), None)
    if worst is None:
        return Outcome(verified, KNOWN, str(verdict.reason), message=verdict.message, findings=counting)
    found = worst.finding
    message = f"{found.where}: {found.message}" if found.where else found.message
    reason = rule_of(found.code).reason.value
    return Outcome(verified, "rejected", reason, worst.gate, message, found.mend, counting)


_RETRY = "Nothing is wrong with the task; mend the surroundings and run again."


def record(outcome: Outcome) -> dict[str, Any]:
    """The JSON record of one task, the same keys for every task; a later run takes it as a baseline."""
    verified, verdict = outcome.verified, outcome.verified.verdict
    return {
        "path": str(verified.path),
        "task": outcome.name,
        "content": verified.content,
        "profile": verified.profile.value,
        "verdict": verdict.status.value,
        "reason": verdict.reason.value if verdict.reason else None,
        "boundary": verdict.boundary or None,
        "message": verdict.message,
        "mend": outcome.mend,
        "cached": verified.cached,
        "trials": outcome.trials,
        "seconds": round(outcome.seconds, 3),
        "new": [{"code": item.finding.code, "where": item.finding.where} for item in outcome.findings],
        "gates": [gate.model_dump(mode="json") for gate in verdict.gates],
    }


def totals(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], int]:
    """How many tasks ended with each status and reason, sorted."""
    counts: dict[tuple[str, str], int] = {}
    for outcome in outcomes:
        key = (outcome.status, outcome.reason)
        counts[key] = counts.get(key, 0) + 1
    return dict(sorted(counts.items()))
