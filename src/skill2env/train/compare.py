"""What each rubric policy would make of the same rollouts, before anything is trained.

The judge's term can teach two things that nobody wants: that a rollout which failed is better than one which passed,
and that a rollout which earned less from the verifier is better than one which earned more. It also gives a signal
where the verifier has none. All three are counted here, for each policy and weight.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from skill2env.train.filtering import reason_to_drop
from skill2env.train.reward import Graded, GroupReward, RewardConfig, group_rewards

_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Comparison:
    """One policy and weight. Shares are None where there is nothing to take one of."""

    policy: str
    rubric_weight: float
    groups: int
    """Groups with usable rewards."""
    kept: int
    """Those whose final rewards differ, so that they are trained on."""
    by_the_judge: int
    """Those of the kept ones in which the verifier alone has no signal."""
    contradicted: float | None
    """Of pairs that the verifier tells apart, the share that the reward orders the other way."""
    failed_above_passed: float | None
    """Of pairs of one that passed and one that did not, the share in which the latter earns more."""
    paid_for_nothing: float | None
    """Of rollouts with r_V = 0, the share that earns more than 0."""


def compare(groups: Sequence[Sequence[Graded]], configs: Iterable[RewardConfig]) -> list[Comparison]:
    """Rewards of the same groups under several configurations, in their order."""
    return [_compare(config, [group_rewards(group, config) for group in groups]) for config in configs]


def _compare(config: RewardConfig, made: Sequence[GroupReward]) -> Comparison:
    usable = [item for item in made if item.usable]
    kept = [item for item in usable if reason_to_drop(item.rewards) is None]
    pairs = [pair for item in usable for pair in _pairs(item)]
    mixed = [(better, worse) for better, worse, one_passed in pairs if one_passed]
    nothing = [reward for item in usable for reward in _of_nothing(item)]
    return Comparison(
        policy=config.policy.value,
        rubric_weight=config.rubric_weight,
        groups=len(usable),
        kept=len(kept),
        by_the_judge=sum(reason_to_drop(item.outcomes) is not None for item in kept),
        contradicted=_share([worse > better + _CLOSE for better, worse, _ in pairs]),
        failed_above_passed=_share([worse > better + _CLOSE for better, worse in mixed]),
        paid_for_nothing=_share([reward > _CLOSE for reward in nothing]),
    )


def _pairs(item: GroupReward) -> Iterator[tuple[float, float, bool]]:
    """(reward of the better by the verifier, of the worse, whether only the better passed)."""
    rows = [
        (outcome, reward, passed)
        for outcome, reward, passed in zip(item.outcomes, item.rewards, item.passed, strict=True)
        if outcome is not None and reward is not None
    ]
    for one, two in combinations(rows, 2):
        if abs(one[0] - two[0]) > _CLOSE:
            better, worse = (one, two) if one[0] > two[0] else (two, one)
            yield better[1], worse[1], better[2] and not worse[2]


def _of_nothing(item: GroupReward) -> Iterator[float]:
    for outcome, reward in zip(item.outcomes, item.rewards, strict=True):
        if outcome == 0 and reward is not None:
            yield reward


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None
