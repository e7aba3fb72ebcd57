"""Run a trial for a gate and tell the machine's failures from the task's.

A time-out is blamed on the task only after a run alone on the machine; a failure that both can cause only after it
has happened twice the same way.
"""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

from skill2env.errors import Boundary, InfraError
from skill2env.harbor.outcome import TrialOutcome, TrialPhase
from skill2env.harbor.rewards import TOLERANCE, TOTAL, Reward, RewardProblem, mean
from skill2env.harbor.trial import run_trial
from skill2env.verify.config import facts_of
from skill2env.verify.gate import GateContext, Hit, Subject, rejecting
from skill2env.verify.metrics import MAX_METRICS, metric_sources

_REWARD_FAILURES = frozenset(
    {"RewardFileNotFoundError", "RewardFileEmptyError", "VerifierOutputParseError", "ValidationError"}
)
"""Exceptions by which Harbor refuses a reward; `Reward.problems` says it more exactly."""

_MORE_TRIES = 2


def judged_trial(
    subject: Subject, context: GateContext, agent: str, *, folder: str, label: str, mode: str | None = None
) -> TrialOutcome:
    """Run `agent` until its outcome says something about the task.

    Args:
        subject: the task.
        context: where to run.
        agent: see `run_trial`.
        folder: folder below the evidence folder, the gate's name.
        label: name of the trial's folder below that.
        mode: verifier mode, None for the task's own.

    Raises:
        InfraError: the machine failed, or failed differently each time.
    """
    _refuse_host_variables(subject)

    def once() -> TrialOutcome:
        outcome = run_trial(
            subject.task_dir,
            agent,
            environment=context.sandbox,
            trials_dir=context.evidence / folder,
            mode=mode,
            offline=runs_offline(subject, context),
            timeouts=context.timeouts,
        )
        return _file(outcome, context.evidence / folder / label)

    with context.machine.shared():
        outcome = once()
    if outcome.failure is not None and outcome.failure.timed_out and not outcome.suspect:
        with context.machine.alone():
            return once()
    return _until_certain(outcome, context, once)


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
    """Whether a task that asks for a network is run without one, because our sandbox gives none."""
    facts = facts_of(subject)
    if isinstance(facts, Hit) or context.sandbox.name != "namespace":
        return False
    return any(mode != "no-network" for mode in facts.networks.values())


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
    if not hits and (failure is not None or not outcome.valid or not reward.metrics):
        hits = [
            Hit(otherwise, "Harbor does not count the reward" if failure is None else failure.message[:300])
        ]
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


def refuse_if_cut_off(subject: Subject, context: GateContext, hits: list[Hit]) -> None:
    """Say nothing about a task that wanted a network and failed without it.

    Raises:
        InfraError: the failure may be the missing network's; not transient.
    """
    undecided = [hit for hit in rejecting(hits, subject.profile) if hit.code != "nop-rewarded"]
    if undecided and runs_offline(subject, context):
        raise InfraError(
            Boundary.SANDBOX,
            f"the task asks for a network, which this sandbox does not give: {undecided[0].message}",
            hint="run it with --sandbox docker",
            transient=False,
        )
