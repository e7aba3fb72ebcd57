"""Two datasets side by side, every figure with a test of difference: what changed, and what may be chance."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from skill2env.analysis.coverage import Coverage, coverage
from skill2env.analysis.difficulty import Difficulty
from skill2env.analysis.duplicates import Duplicates, duplicates
from skill2env.analysis.fidelity import BOTH, Fidelity
from skill2env.analysis.overlaps import grams_of_texts, join
from skill2env.analysis.records import UNDECIDED, UNKNOWN, Corpus, TaskRecord
from skill2env.analysis.statistics import difference, g_test, holm
from skill2env.axes import AXIS_NAMES
from skill2env.records import Record

NEAR = 0.8


class Comparison(Record):
    """One figure of both datasets."""

    figure: str
    one: float | None
    other: float | None
    test: str
    """``permutation of means``, ``permutation of counts``, or empty where there is no test."""
    low: float | None = None
    """95 % interval of other - one."""
    high: float | None = None
    p: float | None = None
    adjusted: float | None = None
    """p after Holm over all tests of this comparison."""

    @property
    def differs(self) -> bool:
        """Whether the difference survives at 5 %."""
        return self.adjusted is not None and self.adjusted < 0.05


class Comparisons(Record):
    """Everything that `analyze compare` says."""

    one: Coverage
    other: Coverage
    rows: tuple[Comparison, ...]
    shared: int
    """Tasks of `other` whose instruction is near to one of `one` (13-gram Jaccard of at least 0.8)."""
    duplicates: tuple[Duplicates, Duplicates]
    fidelity: tuple[Fidelity, ...] = ()
    difficulty: tuple[Difficulty, ...] = ()
    oddities: dict[str, int] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Side:
    """One dataset and what else is known of it."""

    corpus: Corpus
    fidelity: Fidelity | None = None
    difficulty: Difficulty | None = None


def compare(one: Side, other: Side, *, seed: int = 0) -> Comparisons:
    """Compare.

    Args:
        one: the first dataset, all texts read.
        other: the second.
        seed: of resampling and permutation.
    """
    covered = coverage(one.corpus), coverage(other.corpus)
    copies = duplicates(one.corpus), duplicates(other.corpus)
    rows = [
        *_counts(covered, seed),
        *_means(one, other, copies, seed),
    ]
    tested = [at for at, row in enumerate(rows) if row.p is not None]
    for at, value in zip(tested, holm([rows[at].p or 0.0 for at in tested]), strict=True):
        rows[at] = rows[at].model_copy(update={"adjusted": round(value, 5)})
    mine, theirs = (grams_of_texts([task.instruction for task in side.corpus.tasks]) for side in (one, other))
    near = join(theirs, mine, jaccard=NEAR, containment=2.0)
    return Comparisons(
        one=covered[0],
        other=covered[1],
        rows=tuple(rows),
        shared=len({pair.one for pair in near}),
        duplicates=copies,
        fidelity=tuple(side.fidelity for side in (one, other) if side.fidelity is not None),
        difficulty=tuple(side.difficulty for side in (one, other) if side.difficulty is not None),
    )


def _counts(covered: tuple[Coverage, Coverage], seed: int) -> Iterator[Comparison]:
    """Balance of each distribution, with a test that both are the same distribution."""

    def row(
        name: str, sides: tuple[Mapping[str, int], Mapping[str, int]], balances: tuple[float, float]
    ) -> Comparison:
        p = g_test(
            *({k: n for k, n in side.items() if k not in (UNKNOWN, UNDECIDED)} for side in sides), seed=seed
        )
        return Comparison(
            figure=f"balance of {name}",
            one=balances[0],
            other=balances[1],
            test="permutation of counts",
            p=round(p, 5),
        )

    for name in ("domains", "verifiers"):
        first, second = (getattr(side, name) for side in covered)
        yield row(name, (first.counts, second.counts), (first.balance, second.balance))
    for axis in AXIS_NAMES:
        if all(axis in side.axes for side in covered):
            first, second = (side.axes[axis] for side in covered)
            yield row(axis, (first.counts, second.counts), (first.balance, second.balance))


def _means(one: Side, other: Side, copies: tuple[Duplicates, Duplicates], seed: int) -> Iterator[Comparison]:
    sizes: dict[str, Callable[[TaskRecord], float]] = {
        "words of the instruction": lambda task: len(task.instruction.split()),
        "words of the rubric": lambda task: len(task.rubric.split()),
        "characters of the solution": lambda task: len(task.solution),
        "files": lambda task: len(task.files),
    }
    for name, size in sizes.items():
        yield _mean(
            name,
            [size(task) for task in one.corpus.tasks],
            [size(task) for task in other.corpus.tasks],
            seed,
        )
    extra = [
        {key for cluster in found.clusters if cluster.part == "combined" for key in cluster.tasks[1:]}
        for found in copies
    ]
    yield _mean(
        "share of near-copies (two parts or more)",
        [float(task.key in extra[0]) for task in one.corpus.tasks],
        [float(task.key in extra[1]) for task in other.corpus.tasks],
        seed,
    )
    if one.fidelity is not None and other.fidelity is not None:
        hits = [
            {p.retriever: p.hits for p in side.probes if p.query == BOTH}
            for side in (one.fidelity, other.fidelity)
        ]
        for retriever in hits[0]:
            if retriever in hits[1]:
                yield _mean(
                    f"source found first by {retriever}", hits[0][retriever], hits[1][retriever], seed
                )
    if one.difficulty is not None and other.difficulty is not None:
        for name in ("pass1", "mean"):
            first, second = (
                [getattr(item, name) for item in side.details] for side in (one.difficulty, other.difficulty)
            )
            yield _mean({"pass1": "pass@1", "mean": "mean score"}[name], first, second, seed)


def _mean(name: str, one: Sequence[float], other: Sequence[float], seed: int) -> Comparison:
    first, second = (np.asarray(values, dtype=np.float64) for values in (one, other))
    _, low, high, p = difference(first, second, seed=seed)
    known = bool(len(first) and len(second))
    return Comparison(
        figure=name,
        one=round(float(first.mean()), 4) if len(first) else None,
        other=round(float(second.mean()), 4) if len(second) else None,
        test="permutation of means" if known else "",
        low=round(low, 4) if known else None,
        high=round(high, 4) if known else None,
        p=round(p, 5) if known else None,
    )
