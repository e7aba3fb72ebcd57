"""Whose doing the end of a trial was, and what of it may be learned from.

A failure of the machine or the provider is never a reward of 0: it says nothing about the policy. An agent whose time
is over is graded on what it had left, as it would be at work.
"""

from dataclasses import dataclass

from skill2env.harbor.outcome import TrialOutcome, TrialPhase
from skill2env.harbor.session import AgentReport
from skill2env.rollout.records import RolloutStatus

_REASON_CHARS = 500


@dataclass(frozen=True, slots=True)
class Ending:
    """How a trial ended."""

    status: RolloutStatus
    reason: str = ""
    transient: bool = False
    """Running it again may help."""


def classify(outcome: TrialOutcome, report: AgentReport) -> Ending:
    """The ending of a trial that Harbor ran to its end.

    Args:
        outcome: what happened.
        report: the agent's side of it, `harbor.session.read_report`.
    """
    reward = outcome.reward()
    told = _told(outcome)
    failed = report.failed
    if outcome.failure is not None and outcome.failure.phase is TrialPhase.CREATE:
        return Ending(RolloutStatus.INVALID, f"task: {told}"[:_REASON_CHARS])
    if failed is not None and failed.whose in {"machine", "provider"}:
        return Ending(
            RolloutStatus.ERROR, f"{failed.whose}: {failed.message}"[:_REASON_CHARS], failed.transient
        )
    if reward.problems or not reward.metrics:
        problem = next(iter(reward.problems.values()), "the verifier named no metric")
        if outcome.suspect or outcome.breaches:
            return Ending(RolloutStatus.ERROR, f"machine: {told or problem}"[:_REASON_CHARS], outcome.suspect)
        if failed is not None and failed.whose == "agent":
            # The agent's program broke before anything was graded: neither policy nor task is to blame.
            return Ending(RolloutStatus.ERROR, f"agent: {told}"[:_REASON_CHARS])
        return Ending(RolloutStatus.INVALID, f"verifier: {problem}; {told}".rstrip("; ")[:_REASON_CHARS])
    if failed is not None and failed.whose == "time":
        return Ending(RolloutStatus.TIMEOUT, told)
    if not outcome.valid or (failed is not None and not failed.graded):
        return Ending(RolloutStatus.ERROR, f"agent: {told}"[:_REASON_CHARS])
    return Ending(RolloutStatus.VALID, told)


def _told(outcome: TrialOutcome) -> str:
    failure = outcome.failure
    return "" if failure is None else f"{failure.type}: {failure.message}"[:_REASON_CHARS]
