"""How hard tasks are, measured from trials: pass@k and mean score, intervals, bands, beside what was claimed."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from skill2env.analysis.records import UNDECIDED, UNKNOWN, Corpus, Notes, TaskRecord
from skill2env.analysis.statistics import RESAMPLES, bootstrap, pass_at_k, wilson
from skill2env.analysis.trials import TrialRecord
from skill2env.records import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

BANDS: tuple[tuple[str, float, float], ...] = (
    ("nobody", 0.0, 0.0),
    ("hard", 0.0, 0.3),
    ("useful", 0.3, 0.8),
    ("easy", 0.8, 1.0),
    ("everybody", 1.0, 1.0),
)
"""Name, share of passes above which and up to which; the ends stand for themselves."""
KS = (1, 2, 4, 8)


class TaskDifficulty(Record):
    """One task."""

    task: str
    trials: int
    passed: int
    """Trials with full reward."""
    pass1: float
    low: float
    """Wilson interval of 95 %."""
    high: float
    mean: float
    """Mean score; partial reward counts."""
    band: str
    pass_at: dict[int, float] = Field(default_factory=dict)
    """k -> estimate without bias, for every k up to the number of trials."""
    complexity: str = ""
    claimed: str = ""


class Figure(Record):
    """A mean over tasks with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float
    tasks: int


class Difficulty(Record):
    """Everything that `analyze difficulty` says."""

    name: str
    tasks: int
    """Of the dataset, after filters."""
    tried: int
    """Tasks with at least one trial that counts."""
    trials: int
    ungraded: int
    agents: dict[str, int]
    """Agent and model -> trials."""
    pass_at: dict[int, Figure] = Field(default_factory=dict)
    """k -> mean over the tasks with at least k trials."""
    mean_score: Figure | None = None
    bands: dict[str, int] = Field(default_factory=dict)
    nobody: tuple[str, ...] = ()
    """Tasks that nobody solved. They stay, but a reader should know."""
    everybody: tuple[str, ...] = ()
    by_domain: dict[str, Figure] = Field(default_factory=dict)
    """pass@1."""
    by_complexity: dict[str, Figure] = Field(default_factory=dict)
    """pass@1 by the complexity that was planned."""
    agreement: float | None = None
    """Rank correlation of planned complexity and failure; positive when longer tasks are harder. None when unknown."""
    details: tuple[TaskDifficulty, ...] = ()
    oddities: dict[str, int] = Field(default_factory=dict)


def difficulty(
    corpus: Corpus,
    trials: Sequence[TrialRecord],
    *,
    notes: Notes | None = None,
    seed: int = 0,
    agent: str = "",
) -> Difficulty:
    """Measure difficulty.

    Args:
        corpus: its tasks are the only ones that count; texts need not have been read.
        trials: of one agent or of several, all counted alike.
        notes: what was odd about the trials.
        seed: of the bootstrap.
        agent: only trials of this agent, or ``agent/model``.
    """
    notes = notes or Notes()
    wanted = [
        trial for trial in trials if not agent or agent in (trial.agent, f"{trial.agent}/{trial.model}")
    ]
    of_task, strangers = _assign(corpus, wanted)
    if strangers:
        notes.add("trial-of-no-task", f"{strangers} trials are of tasks that are not in the dataset")
    details = tuple(
        _one(task, scores)
        for task in corpus.tasks
        if (scores := [t.score for t in of_task.get(task.key, []) if t.score is not None])
    )
    records = {task.key: task for task in corpus.tasks}
    agents: dict[str, int] = defaultdict(int)
    for found in of_task.values():
        for trial in found:
            agents[f"{trial.agent}/{trial.model}".rstrip("/")] += 1
    counted = sum(item.trials for item in details)
    return Difficulty(
        name=corpus.name,
        tasks=len(corpus.tasks),
        tried=len(details),
        trials=counted,
        ungraded=sum(len(found) for found in of_task.values()) - counted,
        agents=dict(sorted(agents.items())),
        pass_at={
            k: figure
            for k in KS
            if (figure := _figure([item.pass_at[k] for item in details if k in item.pass_at], seed))
            is not None
        },
        mean_score=_figure([item.mean for item in details], seed),
        bands={name: sum(item.band == name for item in details) for name, _, _ in BANDS},
        nobody=tuple(item.task for item in details if item.band == "nobody"),
        everybody=tuple(item.task for item in details if item.band == "everybody"),
        by_domain=_by(details, {key: task.domain or UNDECIDED for key, task in records.items()}, seed),
        by_complexity=_by(
            details, {key: task.axes.get("complexity", UNKNOWN) for key, task in records.items()}, seed
        ),
        agreement=_agreement(details),
        details=details,
        oddities=Corpus(corpus.name, (), (*corpus.diagnostics, *notes.found)).counts(),
    )


def _assign(corpus: Corpus, trials: Sequence[TrialRecord]) -> tuple[dict[str, list[TrialRecord]], int]:
    """Key of a task -> its trials; by name, else by folder."""
    names = {task.name: task.key for task in corpus.tasks}
    folders = {task.key.rsplit("/", 1)[-1]: task.key for task in corpus.tasks}
    short = {task.name.rsplit("/", 1)[-1]: task.key for task in corpus.tasks}
    found: dict[str, list[TrialRecord]] = defaultdict(list)
    strangers = 0
    for trial in trials:
        key = (
            names.get(trial.task)
            or folders.get(trial.task)
            or short.get(trial.task)
            or folders.get(trial.folder)
        )
        if key is None:
            strangers += 1
        else:
            found[key].append(trial)
    return found, strangers


def _one(task: TaskRecord, scores: Sequence[float]) -> TaskDifficulty:
    trials, passed = len(scores), sum(score >= 1.0 for score in scores)
    low, high = wilson(passed, trials)
    return TaskDifficulty(
        task=task.key,
        trials=trials,
        passed=passed,
        pass1=round(passed / trials, 4),
        low=round(low, 4),
        high=round(high, 4),
        mean=round(sum(scores) / trials, 4),
        band=band_of(passed / trials),
        pass_at={k: round(value, 4) for k in KS if (value := pass_at_k(trials, passed, k)) is not None},
        complexity=task.axes.get("complexity", ""),
        claimed=task.difficulty,
    )


def band_of(share: float) -> str:
    """Band of a share of passes."""
    if share <= 0:
        return "nobody"
    if share >= 1:
        return "everybody"
    return next(name for name, _, upper in BANDS[1:4] if share <= upper)


def _figure(values: Sequence[float], seed: int) -> Figure | None:
    if not values:
        return None
    column = np.asarray(values, dtype=np.float64)[:, None]
    low, high = bootstrap(column, seed=seed, resamples=RESAMPLES)[0].tolist()
    return Figure(
        value=round(float(column.mean()), 4), low=round(low, 4), high=round(high, 4), tasks=len(values)
    )


def _by(details: Sequence[TaskDifficulty], kinds: dict[str, str], seed: int) -> dict[str, Figure]:
    grouped: dict[str, list[float]] = defaultdict(list)
    for item in details:
        grouped[kinds[item.task]].append(item.pass1)
    return {name: figure for name in sorted(grouped) if (figure := _figure(grouped[name], seed)) is not None}


def _agreement(details: Sequence[TaskDifficulty]) -> float | None:
    known = [item for item in details if item.complexity]
    planned = np.asarray(
        [sorted({i.complexity for i in known}).index(item.complexity) for item in known], dtype=float
    )
    failed = np.asarray([1 - item.mean for item in known])
    if len(known) < 3 or planned.std() == 0 or failed.std() == 0:
        return None
    return round(float(np.corrcoef(_ranks(planned), _ranks(failed))[0, 1]), 4)


def _ranks(
    values: "NDArray[np.float64]",
) -> "NDArray[np.float64]":
    """Ranks with ties shared."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]
