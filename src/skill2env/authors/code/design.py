"""From viable faults to the facts of one task: which faults, which broken cases are shown, which stay hidden.

The shown cases must single out the fault: every other small change at the same place that would satisfy them all must
also satisfy the hidden ones. Otherwise a careful solver could be graded wrong for a guess that fits all it was told.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# The values here are tagged JSON of any shape; `cases.well_formed` checks them where they come in.

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill2env.authors.code.assess import Viable, compare, outer_function
from skill2env.authors.code.behaviour import Behaviour
from skill2env.authors.code.bench import Bench
from skill2env.authors.code.evidence import can_be_shown, is_public, spread, spread_over_targets
from skill2env.authors.code.faults.sites import Site, find_sites
from skill2env.authors.code.faults.source import parses
from skill2env.authors.code.understand import Project
from skill2env.axes import Complexity
from skill2env.records import digest_of

MIN_HIDDEN = 4
MAX_HIDDEN = 20
MAX_KEPT = 64
MAX_JOINT = 12
MAX_SHOWN = 5
MAX_ALTERNATIVES = 12
TRIES = 6
SMALL_FUNCTION_LINES = 8


@dataclass(frozen=True, slots=True)
class Level:
    """What a band of complexity means here."""

    faults: int
    shown: int
    """Reported cases per fault, before more are added to single the fault out."""
    distant: bool
    """Symptoms are taken where users meet them, not at the faulty function."""
    silent: bool
    """No recorded input ends in an exception that the original does not raise: there is no stack trace to start from."""


LEVELS: dict[str, Level] = {
    Complexity.SHORT: Level(1, 3, distant=False, silent=False),
    Complexity.MODERATE: Level(1, 2, distant=True, silent=True),
    Complexity.LONG: Level(2, 2, distant=True, silent=True),
    Complexity.DEEP: Level(4, 2, distant=True, silent=True),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One injected fault with its evidence."""

    site: Site
    reported: tuple[str, ...]
    hidden: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Design:
    """Everything a task needs to know about its fault."""

    faults: tuple[Fault, ...]
    texts: Mapping[str, str]
    """Changed files of the broken project."""
    kept: tuple[str, ...]
    """Ids of cases that are right in the broken project and must stay right."""
    joint: tuple[str, ...] = ()
    """Ids of cases in which several faults act together: right only when all of those are mended."""


def level_of(complexity: str) -> Level:
    """Level of a band; bands that are not in the catalog are short ones."""
    return LEVELS.get(complexity, LEVELS[Complexity.SHORT])


def design(
    bench: Bench, project: Project, behaviour: Behaviour, group: Sequence[Viable], level: Level, seed: int
) -> Design | None:
    """Choose faults and evidence for one task; None when no choice of a few tries holds.

    Raises:
        BenchFailed: the code got in the way of the recorder.
        InfraError: the sandbox failed.
    """
    rng = random.Random(seed)
    for chosen in _choices(group, level.faults, behaviour, rng):
        found = _try(bench, project, behaviour, chosen, level)
        if found is not None:
            return found
    return None


def _choices(
    group: Sequence[Viable], count: int, behaviour: Behaviour, rng: random.Random
) -> list[tuple[Viable, ...]]:
    """Sets of faults to try: good ones first, in an order that the seed decides."""
    ranked = sorted(group, key=lambda item: (_rank(item, behaviour) + rng.random() * 2, item.site.key))
    found: list[tuple[Viable, ...]] = []
    for start in range(len(ranked)):
        picked: list[Viable] = []
        for item in [*ranked[start:], *ranked[:start]]:
            apart = all(
                item.site.function != other.site.function or item.site.file != other.site.file
                for other in picked
            )
            if len(picked) < count and apart:
                picked.append(item)
        if len(picked) == count:
            found.append(tuple(picked))
    if count > 1:
        found.sort(key=lambda picked: not _meet(picked))  # stable: good ones first among those that meet
    return found[:TRIES]


def _meet(picked: Sequence[Viable]) -> bool:
    """True when some inputs show several of the faults at once, but most of each fault's inputs show that fault alone."""
    seen = Counter(i for item in picked for i in set(item.broken))
    shared = {i for i, times in seen.items() if times > 1}
    return bool(shared) and all(2 * len(shared & set(item.broken)) <= len(item.broken) for item in picked)


def _rank(item: Viable, behaviour: Behaviour) -> float:
    """Small is good: seen through public code, in the skill's own examples, neither everywhere nor nearly nowhere."""
    public = sum(is_public(behaviour, i) for i in item.broken)
    observed = sum(i in behaviour.observed for i in item.broken)
    share = len(item.broken) / item.tried
    outside = sum(behaviour.cases[i].name != item.site.function for i in item.broken)
    return (
        (0 if public >= 2 else 2)
        + (0 if observed >= 2 else 1)
        + (0 if 0.08 <= share <= 0.7 else 1)
        + (0 if outside >= 2 else 1)
    )


def broken_texts(project: Project, sites: Sequence[Site]) -> dict[str, str] | None:
    """Changed files with all faults in; None when they touch each other or no longer parse."""
    texts: dict[str, str] = {}
    for file in sorted({site.file for site in sites}):
        try:
            texts[file] = project.modules[file].source.apply(
                *(site.edit for site in sites if site.file == file)
            )
        except ValueError:
            return None
        if not parses(texts[file]):
            return None
    return texts


def _try(
    bench: Bench, project: Project, behaviour: Behaviour, chosen: Sequence[Viable], level: Level
) -> Design | None:
    sites = [item.site for item in chosen]
    texts = broken_texts(project, sites)
    if texts is None:
        return None
    reaching = {i for site in sites for i in _reaching(project, behaviour, site)}
    near = {key for site in sites for key in behaviour.through(site.file, "")}
    others = spread_over_targets(set(behaviour.cases) - reaching, near, behaviour)
    tried = sorted({*reaching, *others[:MAX_KEPT]})
    trees: list[dict[str, Any]] = [{"id": "all", "texts": texts, "cases": tried}]
    for number, site in enumerate(sites):
        trees.append({"id": str(number), "texts": broken_texts(project, [site]), "cases": sorted(reaching)})
    found = compare(bench, project, behaviour, trees)
    together = found.get("all", {})
    if "died" in together.values() or (level.silent and "raised" in together.values()):
        return None
    faults: list[Fault] = []
    for number, site in enumerate(sites):
        # Cases that this fault alone breaks, so that mending one of several faults is seen and credited.
        others = {i for key, words in found.items() if key not in ("all", str(number)) for i in words}
        broken = [i for i in together if i in found.get(str(number), {}) and i not in others]
        fault = _evidence(bench, project, behaviour, site, broken, together, level)
        if fault is None:
            return None
        faults.append(fault)
    kept = spread_over_targets({i for i in tried if i not in together}, near, behaviour)
    alone = {i for fault in faults for i in (*fault.reported, *fault.hidden)}
    joint = [
        i
        for i in sorted(together, key=digest_of)
        if i not in alone and sum(i in found.get(str(number), {}) for number in range(len(sites))) != 1
    ]
    return Design(tuple(faults), texts, tuple(sorted(kept[:MAX_KEPT])), tuple(sorted(joint[:MAX_JOINT])))


def _reaching(project: Project, behaviour: Behaviour, site: Site) -> list[str]:
    """Cases whose outcome the fault can change."""
    function = outer_function(site.function, project.modules[site.file].functions)
    return behaviour.through(site.file, function)


def _evidence(
    bench: Bench,
    project: Project,
    behaviour: Behaviour,
    site: Site,
    broken: Sequence[str],
    words: Mapping[str, Any],
    level: Level,
) -> Fault | None:
    """Split the broken cases into reported and hidden ones; None when too few, or when the report stays ambiguous."""
    ranked = sorted(broken, key=lambda i: _showing(project, behaviour, i, site, words, level))
    if len(ranked) < level.shown + MIN_HIDDEN:
        return None
    shown = spread(behaviour, ranked, level.shown)
    rest = [i for i in ranked if i not in shown]
    for differing in _alternatives(bench, project, behaviour, site, broken):
        if differing & set(shown) or not differing:
            continue
        more = [i for i in ranked if i in differing and can_be_shown(behaviour.cases[i])]
        if len(shown) >= MAX_SHOWN or not more:
            return None
        shown.append(more[0])
        rest = [i for i in rest if i not in shown]
    if len(shown) < level.shown or len(rest) < MIN_HIDDEN or words[shown[0]] != "value":
        return None
    return Fault(site, tuple(shown), tuple(sorted(sorted(rest, key=digest_of)[:MAX_HIDDEN])))


def _is_small(project: Project, site: Site) -> bool:
    """True for a function of so few lines that naming it gives the fault away."""
    sizes = [
        f.end_line - f.line - f.doc.count("\n")
        for f in project.modules[site.file].functions
        if f.name == site.function
    ]
    return bool(sizes) and sizes[0] < SMALL_FUNCTION_LINES


def _showing(
    project: Project, behaviour: Behaviour, case_id: str, site: Site, words: Mapping[str, Any], level: Level
) -> tuple[Any, ...]:
    case = behaviour.cases[case_id]
    direct = case.file == site.file and case.name == site.function
    small = _is_small(project, site)
    size = len(str([case.args, case.kwargs])) + len(str(behaviour.outcomes[case_id]))
    return (
        words[case_id] != "value" or "raised" in behaviour.outcomes[case_id],
        not is_public(behaviour, case_id),
        direct if level.distant or small else case.kind == "command",
        case_id not in behaviour.observed,
        size // 400,
        digest_of(case_id),
    )


def _alternatives(
    bench: Bench, project: Project, behaviour: Behaviour, site: Site, broken: Sequence[str]
) -> list[set[str]]:
    """For every other small change at the faulty place: the broken cases that it would still get wrong."""
    source = project.modules[site.file].source
    others = [
        other
        for other in find_sites(site.file, source)
        if other.edit != site.edit and other.line == site.line and other.function == site.function
    ]
    touching = [o for o in others if o.edit.start < site.edit.end and site.edit.start < o.edit.end]
    ordered = [*touching, *(o for o in others if o not in touching)][:MAX_ALTERNATIVES]
    trees: list[dict[str, Any]] = [
        {"id": other.key, "texts": {site.file: source.apply(other.edit)}, "cases": sorted(broken)}
        for other in ordered
    ]
    found = compare(bench, project, behaviour, trees) if trees else {}
    return [set(found.get(tree["id"], {})) for tree in trees]
