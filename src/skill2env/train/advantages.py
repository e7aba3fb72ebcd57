"""How much better each rollout of a group was than the others: the baseline of the policy gradient.

Plain numbers, no torch: a group has a handful of rollouts. Segments of one rollout (see `stitching`) share its
advantage and count once in the baseline.
"""

import math
from collections.abc import Sequence
from enum import StrEnum

STD_EPSILON = 1e-6
"""Added to the standard deviation, as trainers do, so that their numbers and ours agree."""


class Advantage(StrEnum):
    """Estimators of the advantage of a rollout within its group."""

    CENTERED = "centered"
    """Reward minus the mean of the group."""
    STANDARDISED = "standardised"
    """Centered, divided by the standard deviation of the group (n - 1 in the denominator): easy and hard tasks weigh
    the same, and so do tiny differences."""
    LEAVE_ONE_OUT = "leave_one_out"
    """Reward minus the mean of the other rollouts: centered times n / (n - 1)."""


def advantages(
    rewards: Sequence[float | None], kind: Advantage = Advantage.CENTERED, *, ddof: int = 1
) -> tuple[float | None, ...]:
    """Advantages of the rollouts of one group.

    Args:
        rewards: final rewards; None for rollouts that take no part.
        kind: the estimator.
        ddof: 1 divides the variance by n - 1, 0 by n; for `Advantage.STANDARDISED` only.

    Returns:
        One number for each reward, None where the reward is. All are 0 when fewer than two rewards are left, or all are
        equal: there is nothing to learn from such a group.

    Raises:
        ValueError: a reward is not finite.
    """
    live = [reward for reward in rewards if reward is not None]
    if not all(math.isfinite(reward) for reward in live):
        raise ValueError("a reward is not finite")
    if len(live) < 2 or max(live) == min(live):
        return tuple(None if reward is None else 0.0 for reward in rewards)
    middle = math.fsum(live) / len(live)
    scale = 1.0
    match kind:
        case Advantage.CENTERED:
            pass
        case Advantage.LEAVE_ONE_OUT:
            scale = len(live) / (len(live) - 1)
        case Advantage.STANDARDISED:
            variance = math.fsum((reward - middle) ** 2 for reward in live) / (len(live) - ddof)
            scale = 1 / (math.sqrt(variance) + STD_EPSILON)
    return tuple(None if reward is None else (reward - middle) * scale for reward in rewards)
