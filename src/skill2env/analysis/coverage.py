"""What a dataset is spread over: domains, axes and their pairs, verifiers, languages, tools, sizes."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np
from pydantic import Field

from skill2env.analysis.languages import formats_of, languages_of, verifier_of
from skill2env.analysis.records import UNDECIDED, UNKNOWN, Corpus, SkillText, TaskRecord
from skill2env.analysis.statistics import balance
from skill2env.analysis.strategy import tools_of
from skill2env.axes import AXIS_NAMES, axis_values
from skill2env.domains import load_classifier
from skill2env.records import Domain, Record

DOMAINS: tuple[str, ...] = tuple(domain.value for domain in Domain)
_SIZES: dict[str, Callable[[TaskRecord], int]] = {
    "words of the instruction": lambda task: len(task.instruction.split()),
    "words of the rubric": lambda task: len(task.rubric.split()),
    "bytes of the tests": lambda task: _bytes(task, "tests/"),
    "bytes of the solution": lambda task: _bytes(task, "solution/"),
    "bytes of the agent's world": lambda task: _bytes(task, "environment/"),
    "files": lambda task: len(task.files),
    "bytes": lambda task: task.size,
}


class Distribution(Record):
    """How often each value of one field occurs."""

    counts: dict[str, int] = Field(default_factory=dict)
    """Most frequent first."""
    kinds: int
    """Values that are possible: those of the catalog, or those that occur where there is none."""
    balance: float
    """exp(H)/N over the possible values: 1 when all are equally frequent. Unknown and undecided are left out."""
    absent: tuple[str, ...] = ()
    """Possible values that never occur."""


class PairCoverage(Record):
    """Two axes together."""

    one: str
    other: str
    seen: int
    """Combinations that occur."""
    possible: int
    balance: float
    counts: dict[str, dict[str, int]] = Field(default_factory=dict)
    """Value of `one` -> value of `other` -> tasks."""


class Quantiles(Record):
    """One size over all tasks."""

    least: float
    quarter: float
    median: float
    three_quarters: float
    most: float
    total: float


class Coverage(Record):
    """Everything that `analyze coverage` says of one dataset."""

    name: str
    tasks: int
    skills: int
    """Distinct skills that tasks name as their source."""
    tasks_per_skill: Quantiles | None = None
    domains: Distribution
    guessed_domains: int
    """Tasks whose domain is the classifier's guess and not stated."""
    categories: Distribution
    """Domains as the makers call them, where they do not use the thirteen."""
    skill_domains: Distribution | None = None
    """Of the skills given, by the classifier."""
    axes: dict[str, Distribution] = Field(default_factory=dict)
    pairs: tuple[PairCoverage, ...] = ()
    verifiers: Distribution
    languages: Distribution
    """A task counts once for each of its languages."""
    formats: Distribution
    tools: Distribution
    """Programs that reference solutions call; a task counts once for each."""
    licences: Distribution
    authors: Distribution
    difficulties: Distribution
    """As claimed by the makers."""
    sizes: dict[str, Quantiles] = Field(default_factory=dict)
    oddities: dict[str, int] = Field(default_factory=dict)
    """Kind of diagnostic -> how often."""


def distribution(values: Iterable[str], catalog: Sequence[str] = ()) -> Distribution:
    """Count values; those of `catalog` that never occur are named."""
    counted = Counter(values)
    told = {value: count for value, count in counted.items() if value not in (UNKNOWN, UNDECIDED)}
    possible = {*catalog, *told}
    return Distribution(
        counts=dict(sorted(counted.items(), key=lambda item: (-item[1], item[0]))),
        kinds=len(possible),
        balance=round(balance(told.values(), len(possible)), 4),
        absent=tuple(value for value in catalog if value not in counted),
    )


def coverage(corpus: Corpus, skills: Sequence[SkillText] = ()) -> Coverage:
    """Measure one dataset.

    Args:
        corpus: with all texts read.
        skills: the hub or collection that it was made from, for the chart beside; may be empty.
    """
    tasks = corpus.tasks
    per_skill = Counter(task.skill_digest or task.skill for task in tasks if task.skill_digest or task.skill)
    return Coverage(
        name=corpus.name,
        tasks=len(tasks),
        skills=len(per_skill),
        tasks_per_skill=quantiles(list(per_skill.values())),
        domains=distribution((task.domain or UNDECIDED for task in tasks), DOMAINS),
        categories=distribution(task.category or UNKNOWN for task in tasks if task.category != task.domain),
        guessed_domains=sum(task.guessed for task in tasks),
        skill_domains=distribution((skill_domain(skill) for skill in skills), DOMAINS) if skills else None,
        axes={axis: _axis(tasks, axis) for axis in AXIS_NAMES if any(axis in task.axes for task in tasks)},
        pairs=tuple(_pairs(tasks)),
        verifiers=distribution(verifier_of(task) for task in tasks),
        languages=distribution(language for task in tasks for language in languages_of(task)),
        formats=distribution(ending for task in tasks for ending in formats_of(task)),
        tools=distribution(tool for task in tasks for tool in tools_of(task)),
        licences=distribution(task.licence or UNKNOWN for task in tasks),
        authors=distribution(task.author or UNKNOWN for task in tasks),
        difficulties=distribution(task.difficulty or UNKNOWN for task in tasks),
        sizes={
            name: found
            for name, size in _SIZES.items()
            if (found := quantiles([size(task) for task in tasks]))
        },
        oddities=corpus.counts(),
    )


def skill_domain(skill: SkillText) -> str:
    """The classifier's guess for a skill."""
    return load_classifier().classify(skill.name, "", skill.text).domain or UNDECIDED


def quantiles(values: Sequence[int]) -> Quantiles | None:
    """Five numbers and the sum; None for nothing."""
    if not values:
        return None
    least, quarter, median, three, most = np.percentile(values, [0, 25, 50, 75, 100]).round(1).tolist()
    return Quantiles(
        least=least, quarter=quarter, median=median, three_quarters=three, most=most, total=float(sum(values))
    )


def _axis(tasks: Sequence[TaskRecord], axis: str) -> Distribution:
    return distribution((task.axes.get(axis, UNKNOWN) for task in tasks), axis_values(axis))


def _pairs(tasks: Sequence[TaskRecord]) -> Iterable[PairCoverage]:
    for one, other in combinations(AXIS_NAMES, 2):
        counted = Counter(
            (task.axes[one], task.axes[other]) for task in tasks if one in task.axes and other in task.axes
        )
        if not counted:
            continue
        first, second = (
            {*axis_values(axis), *(pair[at] for pair in counted)} for at, axis in enumerate((one, other))
        )
        table: dict[str, dict[str, int]] = {}
        for (mine, theirs), count in sorted(counted.items()):
            table.setdefault(mine, {})[theirs] = count
        possible = len(first) * len(second)
        yield PairCoverage(
            one=one,
            other=other,
            seen=len(counted),
            possible=possible,
            balance=round(balance(counted.values(), possible), 4),
            counts=table,
        )


def _bytes(task: TaskRecord, prefix: str) -> int:
    return sum(size for path, size in task.files if path.startswith(prefix))


def domain_shares(found: Mapping[str, int]) -> dict[str, float]:
    """Share of each of the thirteen domains among the tasks whose domain is known."""
    total = sum(found.get(domain, 0) for domain in DOMAINS)
    return {domain: found.get(domain, 0) / total if total else 0.0 for domain in DOMAINS}
