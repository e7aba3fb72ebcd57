"""Intervals, balance and tests of difference: the only place where analysis decides how sure a figure is.

Everything is a pure function; what draws at random takes a seed.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESAMPLES = 1000
"""Bootstrap resamples unless somebody asks for another number."""
_Z95 = 1.959963984540054


def wilson(hits: float, total: float, z: float = _Z95) -> tuple[float, float]:
    """Wilson interval of a share, in [0,1]; nothing tried leaves everything possible.

    Args:
        hits: successes.
        total: trials.
        z: quantile of the normal distribution; the default is for 95 %.
    """
    if total <= 0:
        return 0.0, 1.0
    share = hits / total
    spread = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    middle, scale = share + z * z / (2 * total), 1 + z * z / total
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def balance(counts: Iterable[int], kinds: int) -> float:
    """exp(H)/N: 1 when all `kinds` are equally frequent, 1/N when only one occurs, 0 when nothing does."""
    found = np.asarray([count for count in counts if count > 0], dtype=float)
    if not len(found) or kinds < 1:
        return 0.0
    shares = found / found.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()) / kinds)


def pass_at_k(trials: int, passed: int, k: int) -> float | None:
    """Chance that at least one of `k` trials passes, without bias from the number of trials; None when k > trials."""
    if k < 1 or k > trials:
        return None
    if trials - passed < k:
        return 1.0
    return 1.0 - math.prod((trials - passed - at) / (trials - at) for at in range(k))


def bootstrap(
    values: "NDArray[np.float64]",
    groups: Sequence[int] | None = None,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> "NDArray[np.float64]":
    """95 % percentile intervals of the column means.

    Args:
        values: one row an observation, one column a figure, shape (n, f).
        groups: number of the group of each row. Rows of one group depend on each other (tasks of one skill), so whole
            groups are drawn; None draws rows.
        seed: equal seeds give equal intervals.
        resamples: how many.

    Returns:
        Shape (f, 2): low and high; NaN without rows.
    """
    columns = values.shape[1]
    if not len(values):
        return np.full((columns, 2), np.nan)
    labels = (
        np.arange(len(values)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    )
    many = int(labels.max()) + 1
    sums = np.zeros((many, columns + 1))
    np.add.at(sums, labels, np.column_stack([values, np.ones(len(values))]))
    rng = np.random.default_rng(seed)
    means = np.empty((resamples, columns))
    step = max(1, 4_000_000 // many)
    for start in range(0, resamples, step):
        draws = rng.multinomial(many, np.full(many, 1 / many), size=min(step, resamples - start))
        totals = draws @ sums
        means[start : start + len(totals)] = totals[:, :columns] / totals[:, columns:]
    return np.percentile(means, [2.5, 97.5], axis=0).T


def g_test(one: Mapping[str, int], other: Mapping[str, int], *, seed: int = 0, draws: int = 2000) -> float:
    """p-value that two tables of counts come from one distribution, by permutation of the items; 1 when one is empty.

    The measure is the likelihood ratio G. Permutation needs no expected count above five, which rare kinds never have.
    """
    keys = sorted({*one, *other})
    table = np.asarray(
        [[one.get(key, 0) for key in keys], [other.get(key, 0) for key in keys]], dtype=np.int64
    )
    if not table.sum(axis=1).all() or len(keys) < 2:
        return 1.0
    columns = table.sum(axis=0)
    first = int(table[0].sum())
    drawn = np.random.default_rng(seed).multivariate_hypergeometric(
        columns, first, size=draws, method="marginals"
    )
    observed = float(_g(table[:1], columns)[0])
    return float((1 + np.count_nonzero(_g(drawn, columns) >= observed - 1e-9)) / (draws + 1))


def _g(first: "NDArray[np.int64]", columns: "NDArray[np.int64]") -> "NDArray[np.float64]":
    """G of tables that share their margins; first row of each, shape (draws, kinds)."""
    total, own = columns.sum(), first.sum(axis=1, keepdims=True)
    rest = columns - first
    measure = np.zeros(len(first))
    for part, size in ((first, own), (rest, total - own)):
        expected = size * columns / total
        with np.errstate(divide="ignore", invalid="ignore"):
            measure += np.where(part > 0, part * np.log(part / expected), 0.0).sum(axis=1)
    return 2 * measure


def difference(
    one: "NDArray[np.float64]", other: "NDArray[np.float64]", *, seed: int = 0, draws: int = 2000
) -> tuple[float, float, float, float]:
    """Difference of two means (other - one), its 95 % bootstrap interval, and a two-sided permutation p-value.

    Returns:
        difference, low, high, p; NaN and p = 1 when one side is empty.
    """
    if not len(one) or not len(other):
        return math.nan, math.nan, math.nan, 1.0
    rng = np.random.default_rng(seed)
    found = float(other.mean() - one.mean())
    spread = [
        other[rng.integers(0, len(other), len(other))].mean()
        - one[rng.integers(0, len(one), len(one))].mean()
        for _ in range(RESAMPLES)
    ]
    low, high = np.percentile(spread, [2.5, 97.5])
    pool = np.concatenate([one, other])
    extreme = 0
    for _ in range(draws):
        mixed = rng.permutation(pool)
        extreme += abs(mixed[len(one) :].mean() - mixed[: len(one)].mean()) >= abs(found) - 1e-12
    return found, float(low), float(high), (1 + extreme) / (draws + 1)


def holm(values: Sequence[float]) -> list[float]:
    """p-values adjusted for asking several questions at once (Holm), in the order given."""
    order = sorted(range(len(values)), key=lambda at: values[at])
    adjusted, highest = [1.0] * len(values), 0.0
    for place, at in enumerate(order):
        highest = max(highest, min(1.0, values[at] * (len(values) - place)))
        adjusted[at] = highest
    return adjusted


def bootstrap_strata(
    values: "NDArray[np.float64]",
    groups: "NDArray[np.int64]",
    strata: "NDArray[np.int64]",
    many_strata: int,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
    """Means and 95 % percentile intervals of many figures, overall and within strata, from one set of resamples.

    Args:
        values: shape (n, f), n at least 1.
        groups: number of the group of each row; whole groups are drawn.
        strata: number of the stratum of each row, from 0.
        many_strata: how many strata there are.
        seed: equal seeds give equal intervals.
        resamples: how many.

    Returns:
        Means of shape (1 + strata, f), overall first, and intervals of shape (1 + strata, f, 2).
    """
    figures = values.shape[1]
    labels = np.unique(groups, return_inverse=True)[1]
    many = int(labels.max()) + 1
    sums = np.zeros((many, many_strata, figures + 1))
    np.add.at(sums, (labels, strata), np.column_stack([values, np.ones(len(values))]))
    flat = sums.reshape(many, -1)
    rng = np.random.default_rng(seed)
    drawn = np.empty((resamples, 1 + many_strata, figures))
    step = max(1, 2_000_000 // many)
    for start in range(0, resamples, step):
        weights = rng.multinomial(many, np.full(many, 1 / many), size=min(step, resamples - start))
        drawn[start : start + len(weights)] = _means((weights @ flat).reshape(len(weights), many_strata, -1))
    with np.errstate(invalid="ignore"):
        low, high = np.nanpercentile(drawn, [2.5, 97.5], axis=0)
    return _means(sums.sum(axis=0)[None])[0], np.stack([low, high], axis=-1)


def _means(totals: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Sums and a count in the last column, shape (draws, strata, figures + 1), as means with those over all first."""
    both = np.concatenate([totals.sum(axis=1, keepdims=True), totals], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(both[:, :, -1:] > 0, both[:, :, :-1] / both[:, :, -1:], np.nan)
