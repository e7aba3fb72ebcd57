"""Run a trial for a gate and tell the machine's failures from the task's.

A time-out is blamed on the task only after a run alone on the machine; a failure that both can cause only after it
has happened twice the same way.
"""

import dataclasses
import functools
import json
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from skill2env.errors import Boundary, InfraError
from skill2env.harbor.outcome import TrialOutcome, TrialPhase
from skill2env.harbor.rewards import TOLERANCE, TOTAL, Reward, RewardProblem, mean
from skill2env.harbor.sandboxes import SandboxChoice
from skill2env.harbor.stages import Stage
from skill2env.harbor.trial import run_trial
from skill2env.sandbox.conditions import Conditions, NotApplicable
from skill2env.verify.config import facts_of
from skill2env.verify.gate import BUILDING, GateContext, GateFunction, Hit, Report, Subject, rejecting
from skill2env.verify.metrics import MAX_METRICS, metric_sources
from skill2env.verify.rules import Profile

_REWARD_FAILURES = frozenset(
    {"RewardFileNotFoundError", "RewardFileEmptyError", "VerifierOutputParseError", "ValidationError"}
)
"""Exceptions by which Harbor refuses a reward; `Reward.problems` says it more exactly."""

_MORE_TRIES = 2
USUAL = Conditions()


def judged_trial(
    subject: Subject,
    context: GateContext,
    agent: str,
    *,
    folder: str,
    label: str,
    mode: str | None = None,
    conditions: Conditions = USUAL,
    agent_kwargs: dict[str, Any] | None = None,
    stages: Sequence[Stage] = (),
    patient: bool = True,
) -> TrialOutcome:
    """Run `agent` until its outcome says something about the task.

    Args:
        subject: the task.
        context: where to run.
        agent: see `run_trial`.
        folder: folder below the evidence folder, the gate's name.
        label: name of the trial's folder below that.
        mode: verifier mode, None for the task's own.
        conditions: unusual surroundings.
        agent_kwargs: see `run_trial`.
        stages: see `run_trial`.
        patient: False takes a time-out at its word, for runs that are expected to hang.

    Raises:
        NotApplicable: the conditions cannot be made in this image or this sandbox.
        InfraError: the machine failed, or failed differently each time.
    """
    sandbox = _under(context.sandbox, conditions, subject.task_dir)
    _refuse_host_variables(subject)

    def once() -> TrialOutcome:
        subject.count_trial()
        begun = time.monotonic()
        outcome = run_trial(
            subject.task_dir,
            agent,
            environment=sandbox,
            trials_dir=context.evidence / folder,
            mode=mode,
            offline=runs_offline(subject, context),
            timeouts=context.timeouts,
            agent_kwargs=agent_kwargs,
            stages=stages,
        )
        subject.add_trial_seconds(time.monotonic() - begun)
        return _file(outcome, context.evidence / folder / label)

    with context.machine.shared():
        outcome = once()
    if outcome.failure is not None and outcome.failure.timed_out and not outcome.suspect and patient:
        with context.machine.alone():
            return once()
    return _until_certain(outcome, context, once)


def _under(sandbox: SandboxChoice, conditions: Conditions, task_dir: Path) -> SandboxChoice:
    if conditions == USUAL:
        return sandbox
    if sandbox.name not in BUILDING:
        raise NotApplicable(f"{sandbox.name} has no way to change a trial's surroundings")
    if sandbox.for_task(task_dir) != sandbox:
        raise NotApplicable(
            "compose services run in Harbor's own environment, which cannot change surroundings"
        )
    kwargs = {**sandbox.kwargs, "conditions": conditions.model_dump(exclude_defaults=True)}
    return dataclasses.replace(sandbox, kwargs=kwargs)


def _refuse_host_variables(subject: Subject) -> None:
    """Harbor would hand variables of this process to the task; nothing here may reach untrusted code."""
    facts = facts_of(subject)
    wanted = () if isinstance(facts, Hit) else facts.host_variables
    for variable in wanted:
        if variable.is_set or not variable.has_default:
            raise InfraError(
                Boundary.SANDBOX,
                f"{variable.where} takes ${variable.name} from this machine, which gates never hand to a task",
                hint="write the value into task.toml",
                transient=False,
            )


def runs_offline(subject: Subject, context: GateContext) -> bool:
    """Whether a task that asks for a network is run without one: most need none, and offline runs repeat."""
    facts = facts_of(subject)
    if subject.online or isinstance(facts, Hit) or context.sandbox.name not in BUILDING:
        return False
    return any(mode != "no-network" for mode in facts.networks.values())


def online_when_needed(check: GateFunction) -> GateFunction:
    """A gate that is run again with the task's own network when it rejects a task that was run without.

    Raises (the returned gate):
        InfraError: the task needs a network and may not have it, the network failed, or it may need more of one than
            a proxy gives; not transient.
    """
    folder = check.__module__.rpartition(".")[2]  # each gate keeps its trials below its own name

    @functools.wraps(check)
    def gate(subject: Subject, context: GateContext) -> Report:
        report = check(subject, context)
        if not _undecided(report, subject) or not runs_offline(subject, context):
            return report
        if not context.network:
            raise _no_verdict(report, subject, "was run without it", hint="run it without --offline")
        subject.online = True
        report = check(subject, context)
        if _undecided(report, subject):
            _blame_the_network(report, subject, context.evidence / folder)
        return report

    return gate


def _undecided(report: Report, subject: Subject) -> list[Hit]:
    """Rejections that a missing network may have caused; a reward for doing nothing is none of them."""
    return [hit for hit in rejecting(report.hits, subject.profile) if hit.code != "nop-rewarded"]


def _blame_the_network(report: Report, subject: Subject, evidence: Path) -> None:
    """Give no verdict on a task whose network did not carry what it asked for."""
    requests = [
        json.loads(line)
        for log in sorted(evidence.rglob("network-*.jsonl"))
        for line in log.read_text(encoding="utf-8").splitlines()
    ]
    failed = [entry for entry in requests if entry["verdict"] == "failed"]
    if failed:
        first = failed[0]
        raise _no_verdict(
            report,
            subject,
            f"could not reach {first['host']}:{first['port']} ({first['detail']})",
            boundary=Boundary.NETWORK,
            hint="check this machine's network, then run again",
        )
    if not requests:
        raise _no_verdict(
            report,
            subject,
            "did not use it through HTTP, which is all there is here",
            hint="run it with --sandbox docker",
        )


def _no_verdict(
    report: Report, subject: Subject, what: str, *, hint: str, boundary: Boundary = Boundary.SANDBOX
) -> InfraError:
    first = _undecided(report, subject)[0]
    return InfraError(
        boundary, f"the task asks for a network and {what}: {first.message}", hint=hint, transient=False
    )


def _until_certain(
    first: TrialOutcome, context: GateContext, once: Callable[[], TrialOutcome]
) -> TrialOutcome:
    outcome = first
    for _ in range(_MORE_TRIES):
        if not outcome.suspect or outcome.failure is None:
            return outcome
        before = outcome.failure
        with context.machine.shared():
            outcome = once()
        if outcome.failure is not None and (outcome.failure.type, outcome.failure.phase) == (
            before.type,
            before.phase,
        ):
            return outcome
    if outcome.suspect and outcome.failure is not None:
        raise InfraError(Boundary.SANDBOX, f"{outcome.failure.type}: {outcome.failure.message}")
    return outcome


def _file(outcome: TrialOutcome, target: Path) -> TrialOutcome:
    """Give the trial's folder a name that does not change from run to run."""
    if not outcome.folder.is_dir():
        return outcome
    shutil.rmtree(target, ignore_errors=True)
    outcome.folder.rename(target)
    return dataclasses.replace(outcome, folder=target)


def failure_hits(outcome: TrialOutcome, reward: Reward, *, otherwise: str) -> list[Hit]:
    """What is wrong with a trial before anybody looks at the numbers.

    Args:
        outcome: a finished trial.
        reward: its reward.
        otherwise: code for failures that no other rule names.
    """
    failure = outcome.failure
    if failure is not None:
        text = f"{failure.type}: {' '.join(failure.message.split())[:300]}"
        if outcome.breaches:
            text = f"{outcome.breaches[0]} ({text})"
        if failure.phase is TrialPhase.CREATE:
            return [Hit("task-unloadable", f"Harbor cannot load the task: {text}")]
        if failure.phase is TrialPhase.ENVIRONMENT or failure.type == "BuildFailed":
            return [Hit("build-failed", f"the container cannot be started: {text}")]
        if failure.phase is TrialPhase.VERIFIER and failure.timed_out:
            return [Hit("verifier-hung", f"the verifier did not end: {text}")]
        if failure.type not in _REWARD_FAILURES:
            return [Hit(otherwise, f"{failure.phase.value} failed: {text}")]
    hits = [Hit(problem.value, message) for problem, message in reward.problems.items()]
    refused = failure is not None or not outcome.valid or not reward.metrics
    # A problem that is mild beside a good reward.json is not mild where nothing else was read.
    if refused and not rejecting(hits, Profile.FOREIGN):
        text = "Harbor does not count the reward" if failure is None else failure.message[:300]
        hits.append(Hit(otherwise, text))
    return hits


def portable_hits(outcome: TrialOutcome, reward: Reward, subject: Subject) -> list[Hit]:
    """Rules about the reward that our own format adds: named metrics, their mean, and the text file."""
    names = {name for name in reward.metrics if name != TOTAL}
    sources = metric_sources(subject)
    hits: list[Hit] = []
    if sources is not None and names != set(sources):
        differing = ", ".join(sorted(names ^ set(sources)))
        hits.append(Hit("metrics-undeclared", f"written and declared metrics differ: {differing}"))
    if sources is None and len(names) > MAX_METRICS:
        hits.append(Hit("metric-count", f"{len(names)} metrics, more than {MAX_METRICS}"))
    total = reward.metrics.get(TOTAL)
    if total is None:
        hits.append(Hit("reward-total", "reward.json has no metric named reward"))
    elif names and abs(total - mean(reward.metrics)) > TOLERANCE:
        hits.append(
            Hit("reward-total", f"reward is {total:g}, the mean of the metrics {mean(reward.metrics):g}")
        )
    if outcome.reward_txt is None and not outcome.steps and RewardProblem.MISSING not in reward.problems:
        hits.append(Hit("reward-text-missing", "the verifier writes no reward.txt"))
    return hits


def metric_values(reward: Reward) -> dict[str, float | int | str | bool | None]:
    """Metrics as evidence, sorted, under names that no other fact has."""
    return {f"metric:{name}": value for name, value in sorted(reward.metrics.items())}


def weakness_values(outcome: TrialOutcome) -> dict[str, float | int | str | bool | None]:
    """How the sandbox was weaker than it should be, as evidence; nothing when it was not.

    ``degraded`` is ``single-uid`` where agent and verifier could not be two users: such a verdict is right for the
    task's honest agents, and nothing that is published should rest on it.
    """
    values: dict[str, float | int | str | bool | None] = {}
    if outcome.degraded:
        values["degraded"] = outcome.degraded
    if outcome.absent_limits:
        values["absent_limits"] = ", ".join(outcome.absent_limits)
    return values
