"""Gate `nop`: doing nothing earns exactly 0 on every metric, in a valid reward."""

from skill2env.verify.gate import GateContext, Hit, Report, Subject
from skill2env.verify.trials import (
    failure_hits,
    judged_trial,
    metric_values,
    online_when_needed,
    portable_hits,
    weakness_values,
)

NAME = "nop"


@online_when_needed
def check(subject: Subject, context: GateContext) -> Report:
    """Run Harbor's agent that does nothing, in a fresh container."""
    outcome = judged_trial(subject, context, "nop", folder=NAME, label="trial")
    subject.nop = outcome
    reward = outcome.reward()
    hits = failure_hits(outcome, reward, otherwise="nop-failed")
    earned = {name: value for name, value in reward.metrics.items() if value != 0}
    if earned:
        shown = ", ".join(f"{name} = {value:g}" for name, value in sorted(earned.items()))
        hits.append(Hit("nop-rewarded", f"doing nothing earns {shown}"))
    if reward.metrics:
        hits += portable_hits(outcome, reward, subject)
    return Report(hits, {**metric_values(reward), **weakness_values(outcome)})
