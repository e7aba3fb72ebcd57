"""What a rollout is worth: the verifier's metrics, and the judge's score by one of five policies.

``r_V`` is the mean of the named metrics of a task, *pass* means that all of them equal 1, and ``s`` in [-5, 5] is the
judge's score. A policy says how ``s`` enters. Rewards are made for a whole group at once (the rollouts of one task
that are compared with each other), because what is missing in one member would otherwise look like a low score of it.

Covers: missing rollouts, metrics that are no numbers or differ between members, scores that could not be had. Does not
cover: where rollouts and scores come from (`rollout`, `judge`).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import Field

from skill2env.harbor.rewards import has_passed, mean, named
from skill2env.records import Diagnostic, Record, Severity

SCORE_LIMIT = 5.0
"""Scores of a judge lie in [-5, 5]."""


class RubricPolicy(StrEnum):
    """How the judge's score enters the reward."""

    NONE = "none"
    """The verifier alone: r = r_V."""
    ADDITIVE = "additive"
    """r = r_V + lambda * s / 5, whatever the verifier says; a failed rollout can earn more than a better one."""
    GATED = "gated"
    """The additive term, for rollouts that passed; all others earn r_V."""
    SCALED = "scaled"
    """r = r_V * (1 + lambda * s / 5): nothing delivered earns nothing, however well it was done."""
    SHAPED = "shaped"
    """The additive term, in groups whose rollouts all passed: it decides only where the verifier cannot."""


class MissingPolicy(StrEnum):
    """What becomes of a group in which a rollout has no reward. None ever counts as 0."""

    DROP_GROUP = "drop_group"
    """The whole group is left out."""
    KEEP_REST = "keep_rest"
    """The others are compared among themselves, if at least two are left."""


class RewardConfig(Record):
    """How rewards are made."""

    policy: RubricPolicy = RubricPolicy.NONE
    rubric_weight: float = Field(default=0.2, ge=0, le=10, allow_inf_nan=False)
    """Lambda: what the best score adds, and the worst takes, in units of r_V."""
    missing: MissingPolicy = MissingPolicy.DROP_GROUP


@dataclass(frozen=True, slots=True)
class Graded:
    """One rollout as the reward sees it."""

    metrics: Mapping[str, float] | None
    """What the verifier gave; None when there is no valid verdict (machine, provider, time-out without a grading)."""
    score: float | None = None
    """The judge's; None when it could not be had, or nobody asked."""


@dataclass(frozen=True, slots=True)
class GroupReward:
    """Rewards of one group, in the order of its rollouts."""

    rewards: tuple[float | None, ...]
    """None for rollouts that take no part; all None when the group is not usable."""
    outcomes: tuple[float | None, ...]
    """r_V, where it can be known."""
    passed: tuple[bool, ...]
    rubric: bool
    """The judge's score took part. False also when it was dropped for the group, or the policy left it out."""
    diagnostics: tuple[Diagnostic, ...] = field(default=())

    @property
    def usable(self) -> bool:
        """Whether the group can be trained on."""
        return any(reward is not None for reward in self.rewards)


def outcome_reward(metrics: Mapping[str, float]) -> float:
    """r_V: the mean of the named metrics, in [0,1]; the total itself where a task has nothing else."""
    return mean(metrics)


def group_rewards(
    group: Sequence[Graded], config: RewardConfig | None = None, *, size: int | None = None
) -> GroupReward:
    """Rewards of the rollouts of one task that are compared with each other.

    Args:
        group: the rollouts that there are.
        config: how rewards are made; None for the verifier alone.
        size: how many rollouts there should be; None for as many as there are.

    Returns:
        The rewards, and a diagnostic for everything that took part of them away: severity ``error`` where a rollout
        or the group is left out, ``warn`` where only the judge's term is.
    """
    config = config or RewardConfig()
    found = list(_missing(group, size))
    broken = {index: problem for index, item in enumerate(group) if (problem := _broken(index, item))}
    found += broken.values()
    live = [index for index in range(len(group)) if index not in broken]
    names = {tuple(sorted(named(group[index].metrics or {}))) for index in live}
    if len(names) > 1:
        found.append(
            _error(
                "metrics-differ",
                "the rollouts of the group name different metrics: "
                + " against ".join(", ".join(item) for item in sorted(names)),
            )
        )
    outcomes = tuple(_outcome(group[index]) if index not in broken else None for index in range(len(group)))
    passed = tuple(index in live and has_passed(group[index].metrics or {}) for index in range(len(group)))
    whole = not found
    if not whole and (config.missing is MissingPolicy.DROP_GROUP or len(names) > 1 or len(live) < 2):
        return GroupReward((None,) * len(group), outcomes, passed, rubric=False, diagnostics=tuple(found))
    scores, complaint = _scores(group, live, passed, config)
    rewards = tuple(
        None if value is None else _combine(value, scores.get(index), passed[index], config)
        for index, value in enumerate(outcomes)
    )
    return GroupReward(rewards, outcomes, passed, rubric=bool(scores), diagnostics=(*found, *complaint))


def sweep(policies: Sequence[RubricPolicy], weights: Sequence[float]) -> Iterator[RewardConfig]:
    """One configuration for each policy and weight, policies first; `RubricPolicy.NONE` once."""
    for policy in policies:
        for weight in weights if policy is not RubricPolicy.NONE else weights[:1]:
            yield RewardConfig(policy=policy, rubric_weight=weight)


def _combine(outcome: float, score: float | None, passed: bool, config: RewardConfig) -> float:
    if score is None:
        return outcome
    term = config.rubric_weight * score / SCORE_LIMIT
    match config.policy:
        case RubricPolicy.NONE:
            return outcome
        case RubricPolicy.ADDITIVE | RubricPolicy.SHAPED:
            return outcome + term
        case RubricPolicy.GATED:
            return outcome + term if passed else outcome
        case RubricPolicy.SCALED:
            return outcome * (1 + term)


def _scores(
    group: Sequence[Graded], live: Sequence[int], passed: Sequence[bool], config: RewardConfig
) -> tuple[dict[int, float], list[Diagnostic]]:
    """Scores that take part, by rollout: those of all live rollouts, or none.

    Gated rollouts that failed need no score, but a score that is missing there still drops the term: whether a judge
    answers must not depend on what the policy does with the answer.
    """
    if config.policy is RubricPolicy.NONE:
        return {}, []
    if config.policy is RubricPolicy.SHAPED and not all(passed[index] for index in live):
        return {}, []
    bad = [index for index in live if not _is_score(group[index].score)]
    if bad:
        which = ", ".join(str(index) for index in bad)
        text = f"no usable score for rollout {which}: the judge's term is dropped for the whole group"
        return {}, [Diagnostic(code="rubric-dropped", severity=Severity.WARN, message=text)]
    return {index: score for index in live if (score := group[index].score) is not None}, []


def _is_score(score: float | None) -> bool:
    return score is not None and -SCORE_LIMIT <= score <= SCORE_LIMIT  # false for NaN as well


def _missing(group: Sequence[Graded], size: int | None) -> Iterator[Diagnostic]:
    if not group:
        yield _error("group-empty", "the group has no rollouts")
    elif size is not None and len(group) != size:
        yield _error("group-incomplete", f"the group has {len(group)} rollouts instead of {size}")


def _broken(index: int, item: Graded) -> Diagnostic | None:
    where = f"rollout {index}"
    if item.metrics is None:
        return _error("rollout-missing", "the rollout has no valid reward", where)
    parts = named(item.metrics or {})
    if not parts:
        return _error("metrics-empty", "the verifier named no metric", where)
    for name in sorted(parts):
        value = parts[name]
        if not math.isfinite(value):
            return _error("metric-not-finite", f"metric {name!r} is {value}", where)
        if not 0 <= value <= 1:
            return _error("metric-out-of-range", f"metric {name!r} is {value:g}, outside [0,1]", where)
    return None


def _outcome(item: Graded) -> float:
    return outcome_reward(item.metrics or {})


def _error(code: str, message: str, where: str = "") -> Diagnostic:
    return Diagnostic(code=code, severity=Severity.ERROR, message=message, where=where)
