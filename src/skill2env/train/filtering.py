"""Leave out groups that teach nothing, and draw others until the batch is full.

A group teaches nothing when its *final* rewards are all alike. Neither the mean nor the pass rate can tell: a group of
eight half solved tasks has a mean of 0.5 and no signal, and a group that passed throughout has one when the judge's
term tells its rollouts apart.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

SPREAD_TOLERANCE = 1e-6
"""Rewards that lie no further apart are alike."""


class Drop(StrEnum):
    """Why a group is left out."""

    UNUSABLE = "unusable"
    """It has fewer than two rewards."""
    ALL_LOW = "all_low"
    """No spread, and nobody earned anything."""
    ALL_HIGH = "all_high"
    """No spread, and everybody earned at least 1."""
    ALL_ALIKE = "all_alike"
    """No spread, somewhere between."""


@dataclass(slots=True)
class Filled[G]:
    """A batch, and what was left out on the way."""

    groups: list[G] = field(default_factory=list[G])
    drawn: int = 0
    """Groups looked at."""
    dropped: Counter[Drop] = field(default_factory=Counter[Drop])
    full: bool = False
    """As many groups as asked for. Otherwise the source ran dry, or the bound on draws was reached."""

    @property
    def kept_share(self) -> float:
        """Kept groups among those looked at; 0 when there were none."""
        return len(self.groups) / self.drawn if self.drawn else 0.0


def spread(rewards: Sequence[float | None]) -> float:
    """Distance between the best and the worst reward; 0 when there are fewer than two."""
    live = [reward for reward in rewards if reward is not None]
    return max(live) - min(live) if len(live) > 1 else 0.0


def reason_to_drop(rewards: Sequence[float | None], tolerance: float = SPREAD_TOLERANCE) -> Drop | None:
    """Why a group with these final rewards is left out; None when it is kept."""
    live = [reward for reward in rewards if reward is not None]
    if len(live) < 2:
        return Drop.UNUSABLE
    if spread(live) > tolerance:
        return None
    if max(live) <= tolerance:
        return Drop.ALL_LOW
    return Drop.ALL_HIGH if min(live) >= 1 - tolerance else Drop.ALL_ALIKE


def fill_batch[G](
    source: Iterable[G],
    wanted: int,
    *,
    rewards_of: Callable[[G], Sequence[float | None]],
    tolerance: float = SPREAD_TOLERANCE,
    most_drawn: int | None = None,
) -> Filled[G]:
    """Draw groups until `wanted` of them teach something.

    Args:
        source: groups in the order in which they are to be used; drawn one at a time and no further than needed.
        wanted: size of the batch, in groups.
        rewards_of: final rewards of a group.
        tolerance: see `reason_to_drop`.
        most_drawn: draw no more than this, so that a policy that has learned everything (or nothing) does not sample
            for ever; None for as many as the source has.

    Returns:
        The batch, possibly short. A short batch is for the caller to judge: `Filled.full` says so.
    """
    filled = Filled[G]()
    if wanted <= 0 or most_drawn == 0:
        filled.full = wanted <= 0
        return filled
    for group in source:
        filled.drawn += 1
        reason = reason_to_drop(rewards_of(group), tolerance)
        if reason is None:
            filled.groups.append(group)
        else:
            filled.dropped[reason] += 1
        if len(filled.groups) == wanted or filled.drawn == most_drawn:
            break
    filled.full = len(filled.groups) == wanted
    return filled
