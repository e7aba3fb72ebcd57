import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.judge.agreement import agreement, pearson, ranks, weighted_kappa
from skill2env.judge.calibration import calibration, sentences, trend
from skill2env.judge.records import Judgement


def judged(*scores: float | None, group: str = "g", step: int | None = None) -> list[Judgement]:
    return [
        Judgement(id=f"{group}/{step}/{at}", group=group, step=step, score=score)
        for at, score in enumerate(scores)
    ]


def test_two_judges() -> None:
    found = agreement(judged(5, 3, 0, -5, None), judged(4, 4, -1, -5, 2))
    assert (found.common, found.lacking) == (4, 1)
    assert (found.bias, found.distance, found.within_one) == (-0.25, 0.75, 1.0)
    assert found.pearson == pytest.approx(0.976, abs=1e-3)
    assert (found.ordered_pairs, found.same_order) == (5, 1.0)
    same = agreement(judged(5, 3, 0), judged(5, 3, 0))
    assert (same.kappa, same.spearman, same.distance) == (1.0, pytest.approx(1.0), 0.0)
    turned = agreement(judged(5, 0, -5), judged(-5, 0, 5))
    assert (turned.kappa, turned.same_order) == (pytest.approx(-1.0), 0.0)


def test_order_is_compared_within_groups_only() -> None:
    first = [*judged(5, 1, group="a"), *judged(0, -1, group="b")]
    second = [*judged(-1, -2, group="a"), *judged(4, 3, group="b")]
    assert (agreement(first, second).ordered_pairs, agreement(first, second).same_order) == (2, 1.0)


def test_what_is_not_defined_is_none() -> None:
    found = agreement(judged(1), judged(2, group="other"))
    assert (found.common, found.lacking, found.bias, found.pearson, found.kappa, found.same_order) == (
        0, 2, None, None, None, None)  # fmt: skip
    assert agreement(judged(3, 3), judged(3, 3)).kappa is None
    assert pearson([1, 1], [1, 2]) is None


def test_kappa_against_a_worked_value() -> None:
    # Observed: (0 + 1 + 4 + 0) / 4; by chance: mean squared difference of all 16 pairs.
    xs, ys = [0, 1, 2, 3], [0, 2, 0, 3]
    chance = sum((x - y) ** 2 for x in xs for y in ys) / 16
    assert weighted_kappa(xs, ys) == pytest.approx(1 - (5 / 4) / chance)


def test_ranks_share_ties() -> None:
    assert ranks([3, 1, 3, 0]) == [3.5, 2, 3.5, 1]


def test_a_report() -> None:
    found = calibration([*judged(5, -2, -2.5, None), *judged(1, 1, group="h")])
    assert (found.judged, found.unscored, found.groups) == (6, 1, 2)
    assert {value: count for value, count in found.histogram.items() if count} == {5: 1, -2: 1, -3: 1, 1: 2}
    assert sum(found.histogram.values()) == 5
    assert found.mean == pytest.approx(0.5)
    assert (found.poor, found.undecided, found.trend) == (0.4, 0.5, None)
    told = sentences(found)
    assert told[0].startswith("1 of 6 rollouts have no valid answer")
    assert told[1].startswith("50% of the groups have equal scores")
    assert told[-1].startswith("Fewer than four training steps")
    assert calibration([]).mean is None


def test_drift_over_training() -> None:
    rising = [item for step in range(12) for item in judged(step * 0.2, step * 0.2 + 1, step=step)]
    found = calibration(rising)
    assert found.trend is not None
    assert not found.trend.flat
    assert found.trend.slope == pytest.approx(0.2)
    assert sentences(found)[-1].startswith("The judge's score rises over 12 steps (+0.2000 points a step")
    wobbling = [item for step in range(12) for item in judged((-1) ** step, step=step)]
    flat = calibration(wobbling)
    assert flat.trend is not None
    assert flat.trend.flat
    assert sentences(flat)[-1].startswith("The judge's term is flat")


def test_the_trend_test_against_a_worked_value() -> None:
    # Ten rising points: S = 45, variance 125, z = 44 / sqrt(125).
    found = trend({step: float(step) for step in range(10)})
    assert found.z == pytest.approx(44 / 125**0.5)
    assert found.p == pytest.approx(8.3e-5, rel=0.01)
    still = trend(dict.fromkeys(range(10), 1.0))
    assert (still.z, still.p, still.slope) == (0.0, 1.0, 0.0)


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=2, max_size=12))
def test_agreement_is_the_same_from_both_sides(pairs: list[tuple[float, float]]) -> None:
    first, second = (judged(*column) for column in zip(*pairs, strict=True))
    one, two = agreement(first, second), agreement(second, first)
    assert one.distance == pytest.approx(two.distance)
    assert one.bias == pytest.approx(-(two.bias or 0.0))
    assert (one.ordered_pairs, one.same_order) == (two.ordered_pairs, two.same_order)
    for a, b in ((one.kappa, two.kappa), (one.pearson, two.pearson)):
        assert (a is None) == (b is None)
        if a is not None:
            assert a == pytest.approx(b, abs=1e-6)
            assert a <= 1 + 1e-9
