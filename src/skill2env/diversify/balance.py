"""How evenly a corpus uses the axes: counts of values and of pairs, and one figure between 0 and 1."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from skill2env.axes import AXIS_NAMES, axis_values
from skill2env.records import Axes, TaskSpec

PAIRS: tuple[tuple[str, str], ...] = tuple(combinations(AXIS_NAMES, 2))


@dataclass(slots=True)
class AxisCounts:
    """Counts over the specs seen so far. Mutable; the sampler adds each new spec before it draws the next."""

    total: int = 0
    single: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """(axis, value) -> specs."""
    pair: Counter[tuple[str, str, str, str]] = field(default_factory=Counter[tuple[str, str, str, str]])
    """(axis, value, axis, value) -> specs, axes in the order of `AXIS_NAMES`."""
    skill: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    """(skill digest, axis, value) -> specs."""

    @classmethod
    def of(cls, specs: Iterable[TaskSpec]) -> "AxisCounts":
        """Counts of finished specs; their order does not matter."""
        counts = cls()
        for spec in specs:
            counts.add(spec.skill_digest, spec.axes)
        return counts

    def add(self, skill_digest: str, axes: Axes) -> None:
        """Count one spec."""
        values = axes.model_dump()
        self.total += 1
        for axis in AXIS_NAMES:
            self.single[axis, values[axis]] += 1
            self.skill[skill_digest, axis, values[axis]] += 1
        for left, right in PAIRS:
            self.pair[left, values[left], right, values[right]] += 1


def evenness(counts: Mapping[str, int], size: int) -> float:
    """exp(H)/N: the effective number of values in use over the `size` values there are.

    1 means perfectly even, 1/N that a single value is used. H is the entropy of the counts in nats. An empty corpus
    gives 0.
    """
    total = sum(counts.values())
    if not total or size < 1:
        return 0.0
    shares = [count / total for count in counts.values() if count]
    entropy = math.fsum(-share * math.log(share) for share in shares)
    return math.exp(entropy) / size


def balance(specs: Iterable[TaskSpec]) -> dict[str, float]:
    """Evenness of every axis, and of every pair of axes as ``left x right``, over the catalogs' values.

    Values outside a catalog enlarge that axis by one each. A corpus of n specs cannot use more than n cells, so for
    pairs with many cells N is at most n.
    """
    counts = AxisCounts.of(specs)
    sizes = {axis: len(_values_in_use(counts, axis)) for axis in AXIS_NAMES}
    found = {
        axis: evenness(
            {value: count for (name, value), count in counts.single.items() if name == axis},
            min(sizes[axis], counts.total),
        )
        for axis in AXIS_NAMES
    }
    for left, right in PAIRS:
        cells = {f"{a}\0{b}": count for (x, a, y, b), count in counts.pair.items() if (x, y) == (left, right)}
        found[f"{left} x {right}"] = evenness(cells, min(sizes[left] * sizes[right], counts.total))
    return found


def _values_in_use(counts: AxisCounts, axis: str) -> set[str]:
    return set(axis_values(axis)) | {value for name, value in counts.single if name == axis}
