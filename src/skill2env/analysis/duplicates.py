"""Copies inside a dataset, part by part: exact clusters, and which of them are variants of one workflow on purpose.

Each part (instruction, world, verifier, solution) is compared by word 5-grams; what all tasks have in common, such as a
grading frame, would make everything alike, so 5-grams of more than half of the tasks do not count. `combined` joins
tasks that are near in at least two parts. A cluster whose tasks all come from one workflow of one skill consists of
variants; one of several workflows of a skill is of kin; any other is an accident, and worth a look.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from pydantic import Field

from skill2env.analysis.records import Corpus, TaskRecord
from skill2env.near import Join
from skill2env.records import Record
from skill2env.shingling import Numbers, number_shingles

THRESHOLD = 0.8
PARTS = ("instruction", "world", "tests", "solution")
COMMON = 0.5
"""5-grams of more than this share of the tasks are the frame and not the task (from `LEAST_FOR_FRAME` tasks on)."""
LEAST_FOR_FRAME = 8


class DuplicateCluster(Record):
    """Tasks that are near to a first one."""

    part: str
    kind: str
    """``variants`` (one workflow of one skill), ``kin`` (one skill) or ``accident``."""
    tasks: tuple[str, ...]
    """Keys; the first is the one that all others are near to."""
    measures: tuple[float, ...]
    """Jaccard measure of each with the first, 1 for itself; for ``combined`` how many parts are near."""


class Duplicates(Record):
    """Everything that `analyze duplicates` says."""

    name: str
    tasks: int
    threshold: float
    clusters: tuple[DuplicateCluster, ...] = ()
    surplus: dict[str, int] = Field(default_factory=dict)
    """Part -> tasks that would go if one of each cluster stayed."""
    accidents: dict[str, int] = Field(default_factory=dict)
    """Likewise, in clusters by accident only."""
    oddities: dict[str, int] = Field(default_factory=dict)


def duplicates(corpus: Corpus, *, threshold: float = THRESHOLD) -> Duplicates:
    """Find copies.

    Args:
        corpus: with all texts read.
        threshold: least Jaccard measure of near-copies, in (0,1].
    """
    tasks = corpus.tasks
    near: dict[tuple[int, int], set[str]] = defaultdict(set)
    clusters: list[DuplicateCluster] = []
    for part in PARTS:
        stars = _stars(_own_shingles([getattr(task, part) for task in tasks]), threshold)
        for first, members in stars.items():
            clusters.append(_cluster(part, tasks, first, members))
            for one, other in combinations(sorted((first, *(at for at, _ in members))), 2):
                near[one, other].add(part)
    clusters += _combined(tasks, near)
    surplus, accidents = Counter[str](), Counter[str]()
    for cluster in clusters:
        surplus[cluster.part] += len(cluster.tasks) - 1
        accidents[cluster.part] += (len(cluster.tasks) - 1) * (cluster.kind == "accident")
    return Duplicates(
        name=corpus.name,
        tasks=len(tasks),
        threshold=threshold,
        clusters=tuple(sorted(clusters, key=lambda c: (-len(c.tasks), c.part, c.tasks))),
        surplus={part: surplus[part] for part in (*PARTS, "combined")},
        accidents={part: accidents[part] for part in (*PARTS, "combined")},
        oddities=corpus.counts(),
    )


def _own_shingles(texts: Sequence[str]) -> list[Numbers]:
    """Shingles of each text without those of the frame."""
    sets = [number_shingles(text) for text in texts]
    filled = sum(1 for item in sets if len(item))
    if filled < LEAST_FOR_FRAME:
        return sets
    numbers, counts = np.unique(np.concatenate(sets), return_counts=True)
    frame = numbers[counts > COMMON * filled]
    return [item[~np.isin(item, frame, assume_unique=True)] if len(frame) else item for item in sets]


def _stars(sets: list[Numbers], threshold: float) -> dict[int, list[tuple[int, float]]]:
    """First task of a cluster -> the others with their measure; texts without shingles of their own join none."""
    join = Join(sets, threshold)
    found: dict[int, list[tuple[int, float]]] = {}
    for at, item in enumerate(sets):
        if not len(item):
            continue
        best = next(join.near(at), None)
        if best is None:
            join.add(at)
        else:
            found.setdefault(best[0], []).append((at, best[1]))
    return found


def _cluster(
    part: str, tasks: Sequence[TaskRecord], first: int, members: Sequence[tuple[int, float]]
) -> DuplicateCluster:
    return DuplicateCluster(
        part=part,
        kind=_kind([tasks[at] for at in (first, *(at for at, _ in members))]),
        tasks=(tasks[first].key, *(tasks[at].key for at, _ in members)),
        measures=(1.0, *(round(measure, 4) for _, measure in members)),
    )


def _kind(tasks: Sequence[TaskRecord]) -> str:
    skills = {task.skill_digest or task.skill for task in tasks}
    if len(skills) > 1 or not skills - {""}:
        return "accident"
    return "variants" if len({task.workflow for task in tasks}) == 1 else "kin"


def _combined(tasks: Sequence[TaskRecord], near: dict[tuple[int, int], set[str]]) -> list[DuplicateCluster]:
    """Stars over pairs that are near in two parts or more."""
    neighbours: dict[int, dict[int, int]] = defaultdict(dict)
    for (one, other), parts in near.items():
        if len(parts) > 1:
            neighbours[one][other] = neighbours[other][one] = len(parts)
    taken: set[int] = set()
    clusters: list[DuplicateCluster] = []
    for first in sorted(neighbours):
        members = [(at, float(count)) for at, count in sorted(neighbours[first].items()) if at not in taken]
        if first in taken or not members:
            continue
        taken.update((first, *(at for at, _ in members)))
        clusters.append(_cluster("combined", tasks, first, members))
    return clusters
