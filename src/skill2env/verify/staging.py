"""The reference solution followed by stages in the container where the verifier runs."""

from collections.abc import Sequence

from skill2env.harbor.stages import Stage, StageOutcome, read_stages
from skill2env.sandbox.conditions import Conditions, NotApplicable
from skill2env.verify.config import facts_of
from skill2env.verify.gate import Hit, Level
from skill2env.verify.probing import Asking
from skill2env.verify.trials import USUAL

_PATIENCE_SEC = {Level.STANDARD: 15.0, Level.STRICT: 60.0}


def play(
    asking: Asking,
    stages: Sequence[Stage],
    *,
    label: str = "",
    conditions: Conditions = USUAL,
) -> dict[str, StageOutcome]:
    """Run the solution, then stages where the verifier runs.

    Returns:
        What each stage left, in order.

    Raises:
        NotApplicable: the solution or a stage did not come to its end.
        InfraError: the machine failed.
    """
    facts = facts_of(asking.subject)
    if isinstance(facts, Hit) or facts.steps:
        raise NotApplicable("the task has several steps")
    outcome = asking.trial("oracle", label=label, conditions=conditions, stages=stages)
    found = read_stages(outcome.folder)
    if outcome.failure is not None:
        why = f"{outcome.failure.type}: {' '.join(outcome.failure.message.split())[:200]}"
        raise NotApplicable(f"the gradings did not end: {why}")
    if len(found) < len(stages):
        raise NotApplicable("not all gradings were made")
    return found


def gradings_within(asking: Asking, wanted: int) -> int:
    """How many gradings fit into the time that a level gives one probe, at least three and at most `wanted`."""
    oracle = asking.subject.oracle
    seconds = 0.0 if oracle is None else oracle.seconds.get("verifier", 0.0)
    return max(3, min(wanted, int(_PATIENCE_SEC.get(asking.context.level, 0.0) / max(seconds, 0.1))))
