"""Is a judge's score worth training on? Its distribution, what it leaves undecided, and whether it drifts.

A judge that gives everything the same score adds nothing, and one whose mean does not move while the policy changes has
a flat term: the policy learns nothing from it, or the judge cannot see what changes. Both are easy to overlook in a
curve of the total reward, so they are tested here.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from skill2env.judge.records import HIGHEST, LOWEST, Judgement

POOR = -2.0
"""Scores up to this one count as poor work."""
SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class Trend:
    """Mann-Kendall test of the mean score a step: does it go up or down more often than chance?"""

    steps: int
    slope: float
    """Median of the slopes between any two steps (Theil-Sen), points a step."""
    z: float
    p: float
    """Two-sided, by the normal approximation with correction for ties; rough below ten steps."""

    @property
    def flat(self) -> bool:
        """No trend that chance does not explain."""
        return self.p >= SIGNIFICANT


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a set of judgements looks like."""

    judged: int
    unscored: int
    """Rollouts without a valid answer."""
    histogram: Mapping[int, int]
    """Whole points, rounded half away from 0, to the number of rollouts."""
    mean: float | None
    deviation: float | None
    poor: float | None
    """Share of scores at `POOR` or lower."""
    groups: int
    """Groups with at least two scores."""
    undecided: float | None
    """Share of those whose scores are all equal: the judge's term vanishes there."""
    flags: Mapping[str, int]
    by_step: Mapping[int, float]
    """Training step to mean score."""
    trend: Trend | None
    """None with fewer than four steps."""


def calibration(judgements: Sequence[Judgement]) -> Calibration:
    """Describe judgements."""
    scores = [item.score for item in judgements if item.score is not None]
    mean = math.fsum(scores) / len(scores) if scores else None
    counted = Counter(_whole(score) for score in scores)
    groups: dict[str, list[float]] = defaultdict(list)
    steps: dict[int, list[float]] = defaultdict(list)
    for item in judgements:
        if item.score is not None and item.group:
            groups[item.group].append(item.score)
        if item.score is not None and item.step is not None:
            steps[item.step].append(item.score)
    compared = [found for found in groups.values() if len(found) > 1]
    by_step = {step: math.fsum(found) / len(found) for step, found in sorted(steps.items())}
    return Calibration(
        judged=len(judgements),
        unscored=len(judgements) - len(scores),
        histogram={value: counted[value] for value in range(round(LOWEST), round(HIGHEST) + 1)},
        mean=mean,
        deviation=_deviation(scores, mean),
        poor=sum(score <= POOR for score in scores) / len(scores) if scores else None,
        groups=len(compared),
        undecided=sum(max(found) == min(found) for found in compared) / len(compared) if compared else None,
        flags=dict(sorted(Counter(flag for item in judgements for flag in item.flags).items())),
        by_step=by_step,
        trend=trend(by_step) if len(by_step) > 3 else None,
    )


def trend(series: Mapping[int, float]) -> Trend:
    """Mann-Kendall test and Theil-Sen slope of a series of at least two points."""
    points = sorted(series.items())
    pairs = list(combinations(points, 2))
    score = sum((later > earlier) - (later < earlier) for (_, earlier), (_, later) in pairs)
    slopes = sorted((later - earlier) / (end - begin) for (begin, earlier), (end, later) in pairs)
    count = len(points)
    ties = Counter(value for _, value in points).values()
    variance = (
        count * (count - 1) * (2 * count + 5) - sum(t * (t - 1) * (2 * t + 5) for t in ties)
    ) / 18  # fmt: skip
    z = 0.0 if not score or variance <= 0 else (score - math.copysign(1, score)) / math.sqrt(variance)
    return Trend(count, _median(slopes), z, math.erfc(abs(z) / math.sqrt(2)))


def sentences(found: Calibration) -> list[str]:
    """What the numbers mean, one sentence each, for a person."""
    told: list[str] = []
    if found.unscored:
        share = f"{found.unscored} of {found.judged}"
        told.append(f"{share} rollouts have no valid answer: their whole groups lose the judge's term.")
    if found.undecided is not None and found.undecided >= 0.5:
        told.append(
            f"{found.undecided:.0%} of the groups have equal scores throughout: the judge decides little."
        )
    if found.flags.get("addresses-judge"):
        told.append(f"{found.flags['addresses-judge']} rollouts seem to speak to the judge: read them.")
    told.append(_drift(found.trend))
    return told


def _drift(found: Trend | None) -> str:
    if found is None:
        return "Fewer than four training steps are known, so no drift is tested."
    test = f"{found.slope:+.4f} points a step, Mann-Kendall z = {found.z:.2f}, p = {found.p:.3f}"
    if found.flat:
        return f"The judge's term is flat: no trend over {found.steps} steps ({test})."
    way = "rises" if found.slope > 0 else "falls"
    return f"The judge's score {way} over {found.steps} steps ({test})."


def _whole(score: float) -> int:
    return int(math.copysign(math.floor(abs(score) + 0.5), score))


def _deviation(scores: Sequence[float], mean: float | None) -> float | None:
    if mean is None or len(scores) < 2:
        return None
    return math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / (len(scores) - 1))


def _median(ordered: Sequence[float]) -> float:
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
