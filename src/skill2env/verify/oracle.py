"""Gate `oracle`: the reference solution exits 0 and earns exactly 1 on every metric, the same metrics as Nop's."""

from skill2env.harbor.outcome import TrialOutcome, TrialPhase
from skill2env.harbor.rewards import Reward
from skill2env.verify.gate import GateContext, Hit, Report, Subject, rejecting
from skill2env.verify.trials import (
    failure_hits,
    judged_trial,
    metric_values,
    online_when_needed,
    portable_hits,
)

NAME = "oracle"


@online_when_needed
def check(subject: Subject, context: GateContext) -> Report:
    """Run Harbor's agent that plays solution/solve.sh, in a fresh container."""
    outcome = judged_trial(subject, context, "oracle", folder=NAME, label="trial")
    subject.oracle = outcome
    reward = outcome.reward()
    hits = solution_hits(outcome, reward)
    if not rejecting(hits, subject.profile) and subject.nop is not None:
        hits += _same_names(reward, subject.nop.reward())
    if reward.metrics:
        hits += portable_hits(outcome, reward, subject)
    return Report(hits, {**metric_values(reward), "exit_code": outcome.solve_exit_code or 0})


def solution_hits(outcome: TrialOutcome, reward: Reward) -> list[Hit]:
    """Everything that keeps a run of the reference solution from full marks."""
    failure = outcome.failure
    if failure is not None and failure.phase in (TrialPhase.AGENT, TrialPhase.AGENT_SETUP):
        what = "did not end in time" if failure.timed_out else "cannot be run"
        text = " ".join(failure.message.split())[:300]
        return [
            Hit("oracle-error", f"the reference solution {what}: {failure.type}: {text}", "solution/solve.sh")
        ]
    if outcome.solve_exit_code is not None:
        last = outcome.agent_output.strip().splitlines()[-1:] or ["no output"]
        return [
            Hit(
                "oracle-error",
                f"the reference solution exits {outcome.solve_exit_code}: {last[0][:200]}",
                "solution/solve.sh",
            )
        ]
    hits = failure_hits(outcome, reward, otherwise="oracle-failed")
    missed = {name: value for name, value in reward.metrics.items() if value != 1}
    if missed:
        shown = ", ".join(f"{name} = {value:g}" for name, value in sorted(missed.items()))
        hits.append(Hit("oracle-failed", f"the reference solution earns only {shown}"))
    return hits


def _same_names(reward: Reward, nop: Reward) -> list[Hit]:
    if not nop.metrics or set(nop.metrics) == set(reward.metrics):
        return []
    differing = ", ".join(sorted(set(nop.metrics) ^ set(reward.metrics)))
    return [Hit("metrics-differ", f"Nop and Oracle do not write the same metrics: {differing}")]
