"""Figures of a set of rollouts: how they ended, what they earned, how long and dear they were.

*Pass* is every named metric at 1, never "some reward"; means of reward are over graded rollouts (``valid`` and
``timeout``), and what the surroundings prevented is counted apart. Rates over tasks give each task the same weight.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from skill2env.rollout.records import Rollout, RolloutStatus
from skill2env.rollout.trajectory import Step

LOOP_REPEATS = 4
"""The same call so often in a row counts as a loop."""


@dataclass(frozen=True, slots=True)
class TaskStats:
    """One task."""

    task: str
    graded: int
    passes: int
    mean_outcome: float
    spread: float
    """Best minus worst r_V: 0 means that the verifier alone gives this group no signal."""

    @property
    def pass_rate(self) -> float:
        """Passes among graded rollouts."""
        return self.passes / self.graded


@dataclass(frozen=True, slots=True)
class Stats:
    """A set of rollouts. Means are None when there is nothing to take one of."""

    rollouts: int
    by_status: Mapping[str, int]
    mean_outcome: float | None
    """Over graded rollouts."""
    pass_at_1: float | None
    """Mean over tasks of the share of graded rollouts that passed."""
    mean_model_calls: float | None
    mean_tool_calls: float | None
    mean_output_tokens: float | None
    mean_seconds: float | None
    """Of the agent's phase."""
    micro_dollars: int
    """Of rollouts that know what they cost."""
    unpriced: int
    """Rollouts that do not."""
    silent_groups: int
    """Groups whose outcomes are all alike."""
    tasks: tuple[TaskStats, ...]
    """Sorted by name; tasks without a graded rollout are left out."""


def stats(rollouts: Sequence[Rollout]) -> Stats:
    """Figures of rollouts, in any order."""
    graded = [item for item in rollouts if item.outcome is not None]
    by_task: dict[str, list[Rollout]] = defaultdict(list)
    by_group: dict[str, list[float]] = defaultdict(list)
    for item in graded:
        by_task[item.task].append(item)
        by_group[item.group].append(item.outcome or 0.0)
    tasks = tuple(_task(name, found) for name, found in sorted(by_task.items()))
    counted = Counter(item.status for item in rollouts)
    return Stats(
        rollouts=len(rollouts),
        by_status={status.value: counted[status] for status in RolloutStatus},
        mean_outcome=_mean([item.outcome or 0.0 for item in graded]),
        pass_at_1=_mean([task.pass_rate for task in tasks]),
        mean_model_calls=_mean([item.model_calls for item in graded]),
        mean_tool_calls=_mean([item.tool_calls for item in graded]),
        mean_output_tokens=_mean([item.output_tokens for item in graded]),
        mean_seconds=_mean([item.seconds["agent"] for item in graded if "agent" in item.seconds]),
        micro_dollars=sum(item.micro_dollars or 0 for item in rollouts),
        unpriced=sum(item.micro_dollars is None for item in rollouts),
        silent_groups=sum(max(found) == min(found) for found in by_group.values()),
        tasks=tasks,
    )


def longest_loop(steps: Sequence[Step]) -> int:
    """How often at most the same tool was called with the same arguments in a row; 0 without calls."""
    calls = [(step.name, step.text) for step in steps if step.name]
    longest = here = min(1, len(calls))
    for earlier, later in pairwise(calls):
        here = here + 1 if earlier == later else 1
        longest = max(longest, here)
    return longest


def _task(name: str, found: Sequence[Rollout]) -> TaskStats:
    outcomes = [item.outcome or 0.0 for item in found]
    return TaskStats(
        task=name,
        graded=len(found),
        passes=sum(item.passed for item in found),
        mean_outcome=math.fsum(outcomes) / len(outcomes),
        spread=max(outcomes) - min(outcomes),
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
