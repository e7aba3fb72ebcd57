"""Probes: many small questions to one task, each a trial or two, asked beside each other within a gate.

A gate made of probes passes when none fails. What could not be asked is said: not applicable with a reason, or an error
of the surroundings, which leaves the gate undecided.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from skill2env.errors import InfraError
from skill2env.harbor.outcome import TrialOutcome
from skill2env.harbor.stages import Stage
from skill2env.records import ProbeOutcome, ProbeResult, Severity
from skill2env.sandbox.conditions import Conditions, NotApplicable
from skill2env.verify.gate import GateContext, GateFunction, Hit, Level, Report, Subject
from skill2env.verify.rules import rule_of
from skill2env.verify.trials import USUAL, judged_trial

_BOTH = frozenset({Level.STANDARD, Level.STRICT})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a probe found."""

    hits: Sequence[Hit] = ()
    """Rules that the task broke; the probe failed when one of them rejects."""
    message: str = ""
    values: Mapping[str, float | int | str | bool | None] = field(
        default_factory=dict[str, float | int | str | bool | None]
    )
    """Normalised facts for the evidence digest."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A task as a probe sees it."""

    subject: Subject
    context: GateContext
    gate: str
    """Name of the gate, which is the folder of its evidence."""
    probe: str

    def trial(
        self,
        agent: str,
        *,
        label: str = "",
        mode: str | None = None,
        conditions: Conditions = USUAL,
        agent_kwargs: dict[str, Any] | None = None,
        stages: Sequence[Stage] = (),
        patient: bool = True,
    ) -> TrialOutcome:
        """Run a trial of this probe; `label` tells several of them apart, the rest is as for `judged_trial`."""
        return judged_trial(
            self.subject,
            self.context,
            agent,
            folder=self.gate,
            label="-".join(filter(None, (self.probe, label))),
            mode=mode,
            conditions=conditions,
            agent_kwargs=agent_kwargs,
            stages=stages,
            patient=patient,
        )


@dataclass(frozen=True, slots=True)
class Probe:
    """One question."""

    name: str
    """Stable id, unique within its gate: lower case words joined by ``-``."""
    ask: Callable[[Asking], Answer]
    """Raises `NotApplicable` where the question makes no sense, and `InfraError` when it cannot be answered."""
    levels: frozenset[Level] = _BOTH


def gate_of(name: str, probes: Callable[[Subject, GateContext], Sequence[Probe]]) -> GateFunction:
    """A gate that asks probes.

    Args:
        name: of the gate.
        probes: which ones, for a task; those of other levels are left out.
    """

    def check(subject: Subject, context: GateContext) -> Report:
        chosen = [probe for probe in probes(subject, context) if context.level in probe.levels]
        if not chosen:
            return Report(not_run="no probe of it applies to this task at this level")
        return _report(_ask_all(chosen, subject, context, name))

    return check


@dataclass(frozen=True, slots=True)
class _Asked:
    result: ProbeResult
    hits: Sequence[Hit] = ()
    error: InfraError | None = None


def _ask_all(probes: Sequence[Probe], subject: Subject, context: GateContext, gate: str) -> list[_Asked]:
    """Answers in the order of the probes, up to and including the first failure unless all are wanted."""
    asked: list[_Asked] = []
    waiting: list[Future[_Asked]] = []
    pool = ThreadPoolExecutor(max_workers=max(1, context.trials_at_once), thread_name_prefix=gate)
    try:
        waiting = [pool.submit(_ask, probe, Asking(subject, context, gate, probe.name)) for probe in probes]
        for future in waiting:
            asked.append(future.result())
            error = asked[-1].error
            if asked[-1].result.outcome is ProbeOutcome.FAILED and not context.every:
                break
            if error is not None and not error.transient:
                break  # trials were cancelled, or nothing else can be asked either
    finally:
        for future in waiting:
            future.cancel()
        pool.shutdown(wait=True)
    return asked


def _ask(probe: Probe, asking: Asking) -> _Asked:
    try:
        answer = probe.ask(asking)
    except NotApplicable as reason:
        return _Asked(ProbeResult(probe=probe.name, outcome=ProbeOutcome.NOT_APPLICABLE, message=reason.why))
    except InfraError as error:
        return _Asked(
            ProbeResult(probe=probe.name, outcome=ProbeOutcome.ERROR, message=error.message), error=error
        )
    profile = asking.subject.profile
    failed = any(rule_of(hit.code).severity(profile) is Severity.ERROR for hit in answer.hits)
    message = answer.message or (answer.hits[0].message if answer.hits else "")
    result = ProbeResult(
        probe=probe.name,
        outcome=ProbeOutcome.FAILED if failed else ProbeOutcome.PASSED,
        message=message,
        values=dict(answer.values),
    )
    return _Asked(result, answer.hits)


def _report(asked: Sequence[_Asked]) -> Report:
    failed = [one for one in asked if one.result.outcome is ProbeOutcome.FAILED]
    errors = [one.error for one in asked if one.error is not None]
    if errors and not failed:
        raise errors[0]
    counts: dict[str, int] = {}
    for one in asked:
        counts[one.result.outcome.value] = counts.get(one.result.outcome.value, 0) + 1
    hits = [hit for one in asked for hit in one.hits]
    return Report(hits, dict(sorted(counts.items())), tuple(one.result for one in asked))
