"""Gate `agreement`: the reference solution earns the same again, and in the verifier's other mode."""

from collections.abc import Iterator

from skill2env.verify.config import facts_of
from skill2env.verify.gate import GateContext, Hit, Report, Subject, rejecting
from skill2env.verify.oracle import solution_hits
from skill2env.verify.rules import Profile
from skill2env.verify.trials import judged_trial, online_when_needed

NAME = "agreement"
_OTHER = {"separate": "shared", "shared": "separate"}


@online_when_needed
def check(subject: Subject, context: GateContext) -> Report:
    """Repeat the Oracle in fresh containers."""
    runs = list(_runs(subject, context))
    if not runs:
        return Report(not_run="no repetition was asked for")
    hits: list[Hit] = []
    for label, mode in runs:
        hits += _repeat(subject, context, label, mode)
    return Report(hits, {label: not any(hit.where == label for hit in hits) for label, _ in runs})


def _runs(subject: Subject, context: GateContext) -> Iterator[tuple[str, str | None]]:
    for number in range(2, context.oracle_repeats + 1):
        yield f"repeat-{number}", None
    facts = facts_of(subject)
    if subject.profile is not Profile.OURS or isinstance(facts, Hit) or facts.verifier_image:
        # A verifier with an image of its own has tools there that the agent's container lacks.
        return
    if subject.nop is not None and subject.nop.degraded:
        return  # agent and verifier cannot share a container where both are one user; the gate `nop` says so
    yield f"mode-{_OTHER[facts.mode]}", _OTHER[facts.mode]


def _repeat(subject: Subject, context: GateContext, label: str, mode: str | None) -> Iterator[Hit]:
    outcome = judged_trial(subject, context, "oracle", folder=NAME, label=label, mode=mode)
    reward = outcome.reward()
    where = "in the other verifier mode" if mode else "when repeated"
    wrong = rejecting(solution_hits(outcome, reward), subject.profile)
    if wrong:
        yield Hit("unstable", f"the Oracle passed once, but {where}: {wrong[0].message}", label)
    elif subject.oracle is not None and subject.oracle.reward().metrics != reward.metrics:
        yield Hit("unstable", f"the Oracle's metrics differ {where}", label)
