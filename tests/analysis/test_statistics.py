"""Intervals and tests of difference, against closed forms and by repeating experiments."""

import math

import numpy as np
import pytest

from skill2env.analysis.statistics import balance, bootstrap, difference, g_test, holm, pass_at_k, wilson


def test_wilson() -> None:
    assert wilson(0, 0) == (0, 1)
    low, high = wilson(8, 10)
    assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)
    assert wilson(0, 10)[0] == 0
    assert wilson(10, 10)[1] == pytest.approx(1)


def test_balance() -> None:
    assert balance([5, 5, 5, 5], 4) == pytest.approx(1)
    assert balance([9], 4) == pytest.approx(0.25)
    assert balance([], 4) == 0


@pytest.mark.parametrize(("trials", "passed", "k"), [(8, 3, 1), (8, 3, 4), (8, 0, 4), (8, 8, 8), (5, 2, 2)])
def test_pass_at_k_is_what_drawing_k_trials_gives(trials: int, passed: int, k: int) -> None:
    expected = 1 - math.comb(trials - passed, k) / math.comb(trials, k)
    assert pass_at_k(trials, passed, k) == pytest.approx(expected)
    assert pass_at_k(trials, passed, trials + 1) is None


def test_bootstrap_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for seed in range(200):
        low, high = bootstrap(rng.normal(0.3, 1, size=(80, 1)), seed=seed, resamples=300)[0]
        covered += low <= 0.3 <= high
    assert 0.88 <= covered / 200 <= 0.99


def test_bootstrap_of_groups_is_wider_where_a_group_is_of_one_mind() -> None:
    values = np.repeat(np.random.default_rng(1).integers(0, 2, 40).astype(float), 10)[:, None]
    groups = [at // 10 for at in range(400)]
    alone, together = bootstrap(values)[0], bootstrap(values, groups)[0]
    assert together[1] - together[0] > 2 * (alone[1] - alone[0])
    assert np.array_equal(bootstrap(values, groups), bootstrap(values, groups))
    assert np.isnan(bootstrap(np.zeros((0, 2)))).all()


def test_difference_and_g_find_what_differs_and_nothing_else() -> None:
    rng = np.random.default_rng(2)
    same, other = rng.normal(0, 1, 60), rng.normal(1, 1, 60)
    found, low, high, p = difference(same, other)
    assert low < found < high
    assert low > 0
    assert p < 0.01
    assert difference(same, rng.normal(0, 1, 60))[3] > 0.05
    assert difference(same, np.zeros(0))[3] == 1
    assert g_test({"a": 40, "b": 10}, {"a": 10, "b": 40}) < 0.01
    assert g_test({"a": 40, "b": 10}, {"a": 41, "b": 9}) > 0.3
    assert g_test({}, {"a": 1}) == 1


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
