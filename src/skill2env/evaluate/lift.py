"""What a skill changes: the same agent on the same tasks with the skill at hand and without it.

Tasks are the unit: each is compared with itself, and intervals come from resampling tasks, because rollouts of one task
say little about others. Covers: verdicts in plain words for the author of a skill. Does not cover: running the rollouts
(`rollout`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from skill2env.analysis.statistics import bootstrap
from skill2env.errors import UserError
from skill2env.records import digest_of
from skill2env.rollout.records import Rollout

RESAMPLES = 10_000
FEW_TASKS = 5
"""Below so many tasks an interval from resampling them promises more than it holds."""
SELDOM = 0.5
"""A skill that is opened in a smaller share of rollouts counts as seldom opened."""


class Worth(StrEnum):
    """The verdict on a skill."""

    HELPS = "helps"
    """The interval of the difference lies above 0."""
    HURTS = "hurts"
    """The interval of the difference lies below 0."""
    NO_DIFFERENCE = "no_difference"
    """The interval holds 0, and the agent did open the skill (or nobody can tell)."""
    NOT_OPENED = "not_opened"
    """The interval holds 0, and the agent opened the skill in less than half of its rollouts."""
    TOO_FEW = "too_few"
    """Fewer than five tasks could be compared."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A difference (with the skill minus without) and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class TaskLift:
    """One task."""

    task: str
    without: float
    """Mean r_V."""
    with_skill: float
    passed_without: float
    """Share of rollouts in which all named metrics equal 1."""
    passed_with: float
    opened: float | None
    """Share of the rollouts with the skill in which the agent opened it; None when trajectories do not tell."""


@dataclass(frozen=True, slots=True)
class Lift:
    """What a skill changed."""

    skill: str
    worth: Worth
    words: str
    """The verdict for its author."""
    tasks: tuple[TaskLift, ...]
    outcome: Interval | None
    """Of mean r_V; None without a task that could be compared."""
    passed: Interval | None
    opened: float | None
    """Share of all rollouts with the skill in which it was opened."""
    tokens: tuple[float, float]
    """Mean input and output tokens a rollout, without and with."""
    micro_dollars: tuple[float | None, float | None]
    """Mean cost a rollout, without and with; None where a price is unknown."""
    left_out: tuple[str, ...]
    """Tasks without a graded rollout on both sides."""


def lift(
    skill: str,
    without: Sequence[Rollout],
    with_skill: Sequence[Rollout],
    opened: Callable[[Rollout], bool | None],
) -> Lift:
    """Compare.

    Args:
        skill: name of the skill.
        without: rollouts without it; those that are not graded take no part.
        with_skill: rollouts with it.
        opened: whether the agent opened the skill in a rollout; None when it cannot be known.

    Raises:
        UserError: nothing was graded on one of the sides.
    """
    sides = tuple(_by_task(found) for found in (without, with_skill))
    for name, side in zip(("without", "with"), sides, strict=True):
        if not side:
            raise UserError(
                f"no rollout {name} the skill was graded, so there is nothing to compare",
                hint="`skill2env rollout stats` on the folder says how they ended",
            )
    both = sorted(sides[0].keys() & sides[1].keys())
    tasks = tuple(_task(name, sides[0][name], sides[1][name], opened) for name in both)
    outcome = _interval([task.with_skill - task.without for task in tasks], skill)
    passed = _interval([task.passed_with - task.passed_without for task in tasks], skill)
    known = [found for task in both for item in sides[1][task] if (found := opened(item)) is not None]
    rate = sum(known) / len(known) if known else None
    worth = _worth(len(tasks), outcome, rate)
    used = [[item for side in found.values() for item in side] for found in sides]
    return Lift(
        skill=skill,
        worth=worth,
        words=_words(worth, tasks, outcome, rate),
        tasks=tasks,
        outcome=outcome,
        passed=passed,
        opened=rate,
        tokens=(_tokens(used[0]), _tokens(used[1])),
        micro_dollars=(_cost(used[0]), _cost(used[1])),
        left_out=tuple(sorted((sides[0].keys() | sides[1].keys()) - set(both))),
    )


def _by_task(rollouts: Sequence[Rollout]) -> Mapping[str, list[Rollout]]:
    found: dict[str, list[Rollout]] = {}
    for item in rollouts:
        if item.outcome is not None:
            found.setdefault(item.task, []).append(item)
    return found


def _task(
    name: str,
    without: Sequence[Rollout],
    with_skill: Sequence[Rollout],
    opened: Callable[[Rollout], bool | None],
) -> TaskLift:
    known = [found for item in with_skill if (found := opened(item)) is not None]
    return TaskLift(
        task=name,
        without=_mean([item.outcome or 0.0 for item in without]),
        with_skill=_mean([item.outcome or 0.0 for item in with_skill]),
        passed_without=_mean([float(item.passed) for item in without]),
        passed_with=_mean([float(item.passed) for item in with_skill]),
        opened=sum(known) / len(known) if known else None,
    )


def _interval(differences: Sequence[float], skill: str) -> Interval | None:
    if not differences:
        return None
    seed = int(digest_of([skill, list(differences)])[7:15], 16)
    low, high = bootstrap(np.array(differences)[:, None], seed=seed, resamples=RESAMPLES)[0]
    return Interval(_mean(differences), float(low), float(high))


def _worth(tasks: int, outcome: Interval | None, rate: float | None) -> Worth:
    if outcome is None or tasks < FEW_TASKS:
        return Worth.TOO_FEW
    if outcome.low > 0:
        return Worth.HELPS
    if outcome.high < 0:
        return Worth.HURTS
    return Worth.NOT_OPENED if rate is not None and rate < SELDOM else Worth.NO_DIFFERENCE


def _words(worth: Worth, tasks: Sequence[TaskLift], outcome: Interval | None, rate: float | None) -> str:
    many = f"{len(tasks)} task{'' if len(tasks) == 1 else 's'}"
    measured = (
        f"by {outcome.value:+.2f} ({outcome.low:+.2f} to {outcome.high:+.2f}) on {many}" if outcome else ""
    )
    read = "" if rate is None else f" The agent opened it in {rate:.0%} of its rollouts."
    match worth:
        case Worth.HELPS:
            worse = [task.task for task in tasks if task.with_skill < task.without]
            but = f" It lowers {len(worse)} of them: {', '.join(worse[:3])}." if worse else ""
            return f"The skill raises the mean reward {measured}.{read}{but}"
        case Worth.HURTS:
            return (
                f"The skill lowers the mean reward {measured}.{read} Look at what the agent does with it, "
                "beginning with the task that loses most."
            )
        case Worth.NOT_OPENED:
            return (
                f"No difference can be shown ({measured}), but the agent hardly looked.{read} "
                "Say in the description when the skill is of use, in the words of those who ask."
            )
        case Worth.NO_DIFFERENCE:
            full = sum(task.without >= 1 for task in tasks)
            easy = f" {full} of the tasks are solved without it already." if full * 2 >= len(tasks) else ""
            return (
                f"No difference can be shown ({measured}).{read}{easy} More tasks make the interval narrower."
            )
        case Worth.TOO_FEW:
            return f"{many} could be compared, and fewer than {FEW_TASKS} say nothing. Compile more tasks of the skill."


def _tokens(rollouts: Sequence[Rollout]) -> float:
    return _mean([float(item.input_tokens + item.output_tokens) for item in rollouts])


def _cost(rollouts: Sequence[Rollout]) -> float | None:
    costs = [item.micro_dollars for item in rollouts if item.micro_dollars is not None]
    return _mean([float(cost) for cost in costs]) if len(costs) == len(rollouts) else None


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
