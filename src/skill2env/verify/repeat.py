"""Gate `repeat`: grading is a function of the final state alone, and neither chance nor an earlier grading decides.

Covers: chance in verifier and solution (many gradings in one container and in fresh ones), verdicts that are stored and
believed later, verifiers that spoil what they grade, solutions that cannot be run twice. Every comparison is between
two gradings of the same files, so it needs no opinion on what they are worth.
"""

from collections.abc import Mapping, Sequence

from skill2env.harbor.agents import SCRIPT_AGENT
from skill2env.harbor.stages import Stage
from skill2env.sandbox.conditions import NotApplicable
from skill2env.verify.config import facts_of
from skill2env.verify.delivery import Delivery, delivery_of
from skill2env.verify.gate import GateContext, Hit, Level, Subject, rejecting
from skill2env.verify.oracle import solution_hits
from skill2env.verify.probing import Answer, Asking, Probe, gate_of
from skill2env.verify.staging import gradings_within, play

NAME = "repeat"
AGAIN = 6
"""Gradings of one final state; with the repeated Oracles, a verifier that fails one time in three is seen."""
_STRICT = frozenset({Level.STRICT})
_Told = Mapping[str, float | str]


def probes(subject: Subject, context: GateContext) -> Sequence[Probe]:  # noqa: ARG001
    """All probes of the gate."""
    return (
        Probe("same-state", _same_state),
        Probe("changed-state", _changed_state),
        Probe("solution-twice", _solution_twice, _STRICT),
    )


check = gate_of(NAME, probes)


def _same_state(asking: Asking) -> Answer:
    stages = [Stage(f"grading-{number}") for number in range(1, gradings_within(asking, AGAIN) + 1)]
    told = [outcome.told for outcome in play(asking, stages).values()]
    if all(one == told[0] for one in told):
        return _once_less(asking.subject, told[0]) or Answer()
    again = [outcome.told for outcome in play(asking, stages, label="confirmed").values()]
    at = next(number for number, one in enumerate(told) if one != told[0])
    what = f"grading {at + 1} of one final state says {_shown(told[at])}, the first {_shown(told[0])}"
    if told != again:
        return Answer([Hit("unstable", f"{what}; it differs again in another container")])
    separate = asking.subject.facts is not None and asking.subject.facts.mode == "separate"
    return Answer([Hit("grading-spoils-own" if separate else "grading-spoils", what)])


def _once_less(subject: Subject, told: _Told) -> Answer | None:
    """The Oracle gate saw full marks, and whatever of the reward's form it has remarked on already."""
    oracle = subject.oracle
    known = set[str]() if oracle is None else {f"problem:{kind.value}" for kind in oracle.reward().problems}
    missed = {name: value for name, value in told.items() if value != 1 and name not in known}
    if not missed:
        return None
    return Answer(
        [Hit("unstable", f"the Oracle passed once, but in another container it earns {_shown(missed)}")]
    )


def _changed_state(asking: Asking) -> Answer:
    """Spoil the delivery before or after a grading: the same files must earn the same, whatever came before."""
    delivery = delivery_of(asking.subject, asking.context)
    first = _in_order(asking, delivery, graded_before=True)
    second = _in_order(asking, delivery, graded_before=False)
    difference = _difference(first, second) or _bad_remembered(asking, delivery, first, second)
    if not difference:
        return Answer(values={"files": len(delivery.files)})
    if (
        first != _in_order(asking, delivery, graded_before=True, label="confirmed")
        or second != _in_order(asking, delivery, graded_before=False, label="confirmed")
    ):  # fmt: skip
        return Answer([Hit("unstable", f"{difference}; and not the same way in other containers")])
    return Answer([Hit("grading-remembers", difference)])


def _in_order(
    asking: Asking, delivery: Delivery, *, graded_before: bool, label: str = ""
) -> dict[str, _Told]:
    emptied = delivery.put(dict.fromkeys(delivery.files, b""))
    stages = [
        *([Stage("before")] if graded_before else []),
        Stage("emptied", files=emptied),
        Stage("restored", files=delivery.put()),
    ]
    name = "-".join(filter(None, ("after-good" if graded_before else "after-none", label)))
    return {stage: outcome.told for stage, outcome in play(asking, stages, label=name).items()}


def _difference(graded_before: Mapping[str, _Told], fresh: Mapping[str, _Told]) -> str:
    """What an earlier good grading changed, in words; empty when nothing."""
    if graded_before["emptied"] == fresh["emptied"]:
        return ""
    return (
        f"emptied files are graded {_shown(graded_before['emptied'])} after a good grading, "
        f"{_shown(fresh['emptied'])} without one"
    )


def _bad_remembered(
    asking: Asking, delivery: Delivery, graded_before: Mapping[str, _Told], fresh: Mapping[str, _Told]
) -> str:
    """Whether a bad verdict is given again for the right files, although emptied files alone do no harm."""
    good, bad, after = graded_before["before"], fresh["emptied"], fresh["restored"]
    if good in (after, bad) or after != bad:
        return ""
    stages = [
        Stage("emptied", files=delivery.put(dict.fromkeys(delivery.files, b"")), grade=False),
        Stage("restored", files=delivery.put()),
    ]
    if play(asking, stages, label="ungraded")["restored"].told != good:
        return ""  # what the solution left running did not bear it
    return f"after a grading of emptied files the right ones still get {_shown(after)}"


def _shown(told: _Told) -> str:
    return ", ".join(f"{name} = {value}" if value != "" else name for name, value in sorted(told.items()))[
        :200
    ]


def _solution_twice(asking: Asking) -> Answer:
    facts = facts_of(asking.subject)
    if isinstance(facts, Hit) or facts.steps:
        raise NotApplicable("the task has several steps")
    kwargs = {
        "source": str(asking.subject.task_dir / "solution"),
        "env": dict(facts.solution_env),
        "times": 2,
    }
    outcome = asking.trial(SCRIPT_AGENT, agent_kwargs=kwargs)
    wrong = rejecting(solution_hits(outcome, outcome.reward()), asking.subject.profile)
    if wrong:
        return Answer([Hit("solution-once", f"run twice, {wrong[0].message}", "solution/solve.sh")])
    return Answer()
