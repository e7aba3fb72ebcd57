"""Run an agent over tasks, several times each, and keep of every trial what is trained on or judged.

Covers: resuming after a kill (a finished rollout with the same key is never run again), a changed task or setting (it
is run again), retries where the surroundings failed, cancelling. Does not cover: which tasks there are (the caller
finds them), rewards of groups (`train.reward`), scores (`judge`).
"""

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.harbor.digest import skill_digest, task_digest
from skill2env.harbor.limits import Timeouts
from skill2env.harbor.outcome import TrialOutcome, read_head
from skill2env.harbor.rewards import has_passed, mean
from skill2env.harbor.running import trial_workers
from skill2env.harbor.sandboxes import SandboxChoice
from skill2env.harbor.session import AgentReport, read_report
from skill2env.harbor.task import read_task
from skill2env.harbor.trial import run_trial
from skill2env.progress import Event, EventKind, Progress, silent
from skill2env.records import digest_of
from skill2env.rollout.classify import Ending, classify
from skill2env.rollout.folder import INDEX_FILE, TASKS, TRIALS, locked, read_record
from skill2env.rollout.records import (
    DIFFERENCE_FILE,
    INSTRUCTION_FILE,
    RECORD_FILE,
    RUBRIC_FILE,
    TOKENS_FILE,
    TRAJECTORY_FILE,
    Rollout,
    RolloutStatus,
)
from skill2env.rollout.tokens import token_record
from skill2env.store.files import (
    check_writable,
    move_into_place,
    staged_folder,
    sweep,
    write_bytes,
    write_json,
    write_text,
)

TRAJECTORY_LIMIT = 64 * 2**20
NAMESPACE = "namespace"

_STOPPING = frozenset({Boundary.STORAGE, Boundary.HARBOR})
"""A full disk and an agent that cannot be loaded end the run; one task that this sandbox cannot run does not."""

type RunTrial = Callable[..., TrialOutcome]


@dataclass(frozen=True, slots=True)
class Plan:
    """Who acts, how often, and where."""

    agent: str
    """A name of Harbor's, or ``module:Class``."""
    sandbox: SandboxChoice
    model: str = ""
    base_url: str = ""
    attempts: int = 8
    """Rollouts a task: the size of a group."""
    agent_kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    timeouts: Timeouts = field(default_factory=Timeouts)
    tries: int = 3
    """Trials for one rollout, where the surroundings fail."""
    step: int | None = None
    """Training step of the policy; part of the group."""
    evidence: bool = True
    """Keep what the container changed, where the sandbox can tell."""
    workers: int = 2
    attempt_option: str = ""
    """Option of the agent that is told the number of the attempt, for agents that seed their sampling with it."""
    skills: tuple[Path, ...] = ()
    """Folders of skills that the agent finds in its container."""
    passing: frozenset[str] = frozenset({"prices"})
    """Options of the agent that a rollout does not depend on."""

    def identity(self) -> dict[str, Any]:
        """What a rollout depends on beside its task and number."""
        return {
            "agent": self.agent,
            "model": self.model,
            "base_url": self.base_url,
            "kwargs": {
                name: value for name, value in sorted(self.agent_kwargs.items()) if name not in self.passing
            },
            "timeouts": repr(self.timeouts),
            "step": self.step,
            **({"skills": [skill_digest(folder) for folder in self.skills]} if self.skills else {}),
        }

    def choice(self) -> SandboxChoice:
        """The sandbox with what evidence asks of it."""
        if not self.evidence or self.sandbox.name != NAMESPACE:
            return self.sandbox
        return replace(self.sandbox, kwargs={**self.sandbox.kwargs, "difference": True})


@dataclass(frozen=True, slots=True)
class Subject:
    """One task to act on."""

    path: Path
    name: str
    digest: str
    folder: str
    """Name of its folders among the rollouts, unique."""


def subjects(tasks: Sequence[Path]) -> list[Subject]:
    """What rollouts need to know of tasks.

    Raises:
        UserError: a task cannot be read, or two folders hold the same one.
    """
    found: dict[str, Subject] = {}
    for path in tasks:
        try:
            name, digest = read_task(path).name or path.name, task_digest(path)
        except (ValueError, OSError) as error:
            raise UserError(
                f"{path} is no task that can be run: {error}", hint=f"skill2env verify {path.name}"
            ) from error
        if digest in found:
            raise UserError(
                f"{path} and {found[digest].path} are the same task", hint="leave one of them out"
            )
        found[digest] = Subject(path, name, digest, f"{path.name}-{digest[-8:]}")
    return list(found.values())


def run_rollouts(
    tasks: Sequence[Subject],
    plan: Plan,
    out: Path,
    *,
    progress: Progress = silent,
    trial: RunTrial = run_trial,
) -> list[Rollout]:
    """Run what is missing of ``len(tasks) * plan.attempts`` rollouts.

    Args:
        tasks: see `subjects`.
        plan: who acts, how often, and where.
        out: folder of the rollouts; what lies there and is still valid is taken as it is.
        progress: told of each rollout as it ends.
        trial: runs one trial; another one only in tests.

    Returns:
        All of them, in the order of the tasks and attempts.

    Raises:
        UserError: another run works in the folder.
        InfraError: the disk cannot be written, or the agent cannot be loaded.
    """
    check_writable(out)
    with locked(out):
        for task in tasks:
            for group in [path for path in (out / TRIALS / task.folder).glob("*") if path.is_dir()]:
                sweep(group)
        _describe(tasks, plan, out)
        jobs = [(task, attempt) for task in tasks for attempt in range(plan.attempts)]
        progress(Event(EventKind.PHASE, "rollout", total=len(jobs)))
        runner = _Runner(plan, out, progress, trial)
        with trial_workers(plan.workers, "rollout") as pool:
            futures: list[Future[Rollout]] = [pool.submit(runner.one, *job) for job in jobs]
            for future in as_completed(futures):
                future.result()
            return [future.result() for future in futures]


_PRIVATE = re.compile(r"(?i)key|token|secret|password|api_base|base_url")
"""Options of an agent that are not written down."""


def _describe(tasks: Sequence[Subject], plan: Plan, out: Path) -> None:
    """Write who acts on what, and the texts that a judge needs."""
    listed = [{"task": task.name, "digest": task.digest, "folder": task.folder} for task in tasks]
    identity = {key: value for key, value in plan.identity().items() if key != "base_url"}
    identity["kwargs"] = {
        name: value for name, value in identity["kwargs"].items() if not _PRIVATE.search(name)
    }
    write_json(out / INDEX_FILE, {**identity, "attempts": plan.attempts, "tasks": listed})
    for task in tasks:
        folder = out / TASKS / task.folder
        folder.mkdir(parents=True, exist_ok=True)
        for source, name in (("instruction.md", INSTRUCTION_FILE), ("tests/rubric.md", RUBRIC_FILE)):
            data = read_head(task.path / source)
            if data is not None:
                write_text(folder / name, data.decode("utf-8", errors="replace"))


class _Runner:
    def __init__(self, plan: Plan, out: Path, progress: Progress, trial: RunTrial) -> None:
        self._plan = plan
        self._identity = plan.identity()  # reads the skills
        self._out = out
        self._progress = progress
        self._trial = trial

    def one(self, task: Subject, attempt: int) -> Rollout:
        """One rollout, from disk where it is there."""
        identity = self._identity
        group = digest_of({**identity, "task": task.digest})[7:23]
        key = digest_of({**identity, "task": task.digest, "attempt": attempt})
        folder = self._out / TRIALS / task.folder / group / f"{attempt:03d}"
        kept = _kept(folder, key)
        if kept is not None:
            self._progress(Event(EventKind.REUSED, f"{task.name} {attempt}"))
            return kept
        blank = Rollout(
            group=group,
            attempt=attempt,
            task=task.name,
            task_digest=task.digest,
            agent=self._plan.agent,
            model=self._plan.model,
            step=self._plan.step,
            status=RolloutStatus.ERROR,
            key=key,
            place=folder.relative_to(self._out).as_posix(),
        )
        made = self._run(task, blank, folder)
        told = made.status.value if made.outcome is None else f"{made.status.value}, r_V {made.outcome:.3f}"
        self._progress(Event(EventKind.DONE, f"{task.name} {attempt}", detail=told))
        return made

    def _run(self, task: Subject, blank: Rollout, folder: Path) -> Rollout:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = blank
        for tries in range(1, max(1, self._plan.tries) + 1):
            with staged_folder(folder.parent) as stage:
                stage.chmod(0o755)  # sandboxes run as other users
                made, transient = self._try(task, blank.model_copy(update={"tries": tries}), stage)
                if transient and tries < self._plan.tries:
                    continue
                write_text(stage / RECORD_FILE, made.model_dump_json(indent=1) + "\n")
                shutil.rmtree(folder, ignore_errors=True)
                move_into_place(stage, folder)
                break
        return made

    def _try(self, task: Subject, blank: Rollout, stage: Path) -> tuple[Rollout, bool]:
        """One trial; the rollout, and whether running it again may help."""
        plan = self._plan
        trials = stage / "trial"
        told = {plan.attempt_option: blank.attempt} if plan.attempt_option else {}
        try:
            outcome = self._trial(
                task.path,
                plan.agent,
                environment=plan.choice(),
                trials_dir=trials,
                timeouts=plan.timeouts,
                agent_kwargs={**plan.agent_kwargs, **told},
                model=plan.model,
                base_url=plan.base_url,
                **({"skills": plan.skills} if plan.skills else {}),
            )
        except InfraError as error:
            if not error.transient and error.boundary in _STOPPING:
                raise
            reason = f"{error.boundary.value}: {error.message}"[:500]
            return blank.model_copy(update={"reason": reason}), error.transient
        report = read_report(outcome)
        ending = classify(outcome, report)
        _keep(outcome, stage)
        made = _filled(blank, outcome, report, ending)
        shutil.rmtree(trials, ignore_errors=True)
        return made, ending.transient


def _filled(blank: Rollout, outcome: TrialOutcome, report: AgentReport, ending: Ending) -> Rollout:
    graded = ending.status in {RolloutStatus.VALID, RolloutStatus.TIMEOUT}
    metrics = dict(outcome.reward().metrics) if graded else None
    cost = report.cost_usd
    return blank.model_copy(
        update={
            "status": ending.status,
            "reason": ending.reason,
            "metrics": metrics,
            "outcome": mean(metrics) if metrics else None,
            "passed": has_passed(metrics or {}),
            "model_calls": report.turns,
            "tool_calls": report.tool_calls,
            "input_tokens": report.input_tokens,
            "output_tokens": report.output_tokens,
            "cached_tokens": report.cached_tokens,
            "micro_dollars": None if cost is None else round(cost * 1e6),
            "seconds": dict(outcome.seconds),
        }
    )


def _keep(outcome: TrialOutcome, stage: Path) -> None:
    """Copy what is kept of a trial's folder; it was written by untrusted programs and is read like that."""
    wanted = (("agent/trajectory.json", TRAJECTORY_FILE), ("difference.json", DIFFERENCE_FILE))
    for source, name in wanted:
        data = read_head(outcome.folder / source, TRAJECTORY_LIMIT)
        if data is not None and len(data) <= TRAJECTORY_LIMIT:
            write_bytes(stage / name, data)
    tokens = token_record(outcome.folder)
    if tokens is not None:
        write_text(stage / TOKENS_FILE, json.dumps(tokens, separators=(",", ":")) + "\n")


def _kept(folder: Path, key: str) -> Rollout | None:
    """A finished rollout with the same key; those that the surroundings prevented are tried again."""
    file = folder / RECORD_FILE
    if not file.is_file():
        return None
    try:
        found = read_record(file)
    except UserError:
        return None
    return found if found.key == key and found.status is not RolloutStatus.ERROR else None
