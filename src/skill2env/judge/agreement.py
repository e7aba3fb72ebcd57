"""How far two judges agree: on the scores, and on what training makes of them, the order within a group."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from skill2env.judge.records import HIGHEST, LOWEST, Judgement


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two judges on the rollouts that both gave a score. Numbers are None where they are not defined."""

    common: int
    """Rollouts with two scores."""
    lacking: int
    """Rollouts that only one of them knows, or gave a score."""
    bias: float | None
    """Mean of second minus first."""
    distance: float | None
    """Mean absolute difference, points."""
    within_one: float | None
    """Share of rollouts with scores at most one point apart."""
    pearson: float | None
    spearman: float | None
    kappa: float | None
    """Quadratically weighted, on scores rounded to whole points: 1 is equal, 0 is what chance gives."""
    ordered_pairs: int
    """Pairs of rollouts of one group that both judges tell apart."""
    same_order: float | None
    """Share of those that they order the same way."""


def agreement(first: Sequence[Judgement], second: Sequence[Judgement]) -> Agreement:
    """Compare two judges; rollouts are matched by id."""
    one = {item.id: item for item in first}
    two = {item.id: item for item in second}
    both = sorted(key for key in one.keys() & two.keys() if _scored(one[key]) and _scored(two[key]))
    xs = [one[key].score or 0.0 for key in both]
    ys = [two[key].score or 0.0 for key in both]
    differences = [y - x for x, y in zip(xs, ys, strict=True)]
    pairs, same = _orders([one[key].group for key in both], xs, ys)
    return Agreement(
        common=len(both),
        lacking=len(one.keys() | two.keys()) - len(both),
        bias=_mean(differences),
        distance=_mean([abs(item) for item in differences]),
        within_one=_mean([float(abs(item) <= 1) for item in differences]),
        pearson=pearson(xs, ys),
        spearman=pearson(ranks(xs), ranks(ys)),
        kappa=weighted_kappa(xs, ys),
        ordered_pairs=pairs,
        same_order=same / pairs if pairs else None,
    )


def pearson(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Correlation; None for fewer than two points, or where one side never changes."""
    if len(xs) < 2:
        return None
    mean_x, mean_y = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    dx, dy = [x - mean_x for x in xs], [y - mean_y for y in ys]
    scale = math.sqrt(math.fsum(x * x for x in dx) * math.fsum(y * y for y in dy))
    return math.fsum(x * y for x, y in zip(dx, dy, strict=True)) / scale if scale > 0 else None


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs."""
    places: Mapping[float, list[int]] = defaultdict(list)
    for place, value in enumerate(sorted(values), 1):
        places[value].append(place)
    return [sum(places[value]) / len(places[value]) for value in values]


def weighted_kappa(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Quadratically weighted kappa of scores rounded to whole points; None where chance alone gives agreement."""
    if not xs:
        return None
    low, high = round(LOWEST), round(HIGHEST)
    a, b = [round(x) for x in xs], [round(y) for y in ys]
    seen = math.fsum((x - y) ** 2 for x, y in zip(a, b, strict=True)) / len(a)
    share_a = [a.count(value) / len(a) for value in range(low, high + 1)]
    share_b = [b.count(value) / len(b) for value in range(low, high + 1)]
    chance = math.fsum(
        p * q * (i - j) ** 2 for i, p in enumerate(share_a) for j, q in enumerate(share_b)
    )  # fmt: skip
    return 1 - seen / chance if chance > 0 else None


def _orders(groups: Sequence[str], xs: Sequence[float], ys: Sequence[float]) -> tuple[int, int]:
    members: Mapping[str, list[int]] = defaultdict(list)
    for at, group in enumerate(groups):
        if group:
            members[group].append(at)
    pairs = same = 0
    for inside in members.values():
        for i, j in combinations(inside, 2):
            product = (xs[i] - xs[j]) * (ys[i] - ys[j])
            pairs += product != 0
            same += product > 0
    return pairs, same


def _scored(item: Judgement) -> bool:
    return item.score is not None


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
