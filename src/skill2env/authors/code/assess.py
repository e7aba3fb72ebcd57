"""Which faults are worth a task: each is tried against the recorded behaviour of the code that it touches.

A fault is viable when it breaks enough and leaves enough, when most of what it breaks turns into a wrong value and not
into an exception, and when nothing hangs or dies.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill2env.authors.code.behaviour import ROOT, Behaviour
from skill2env.authors.code.bench import Bench, ask
from skill2env.authors.code.cases import Case
from skill2env.authors.code.faults.catalog import Kind
from skill2env.authors.code.faults.sites import Site, find_sites
from skill2env.authors.code.preload import preload
from skill2env.authors.code.understand import Project
from skill2env.records import digest_of

SITES_A_FUNCTION = 16
MAX_SITES = 100
CASES_A_SITE = 44
COMMANDS_A_SITE = 8
MIN_REACHING = 8
MIN_BROKEN = 5
MIN_KEPT = 3
WEIGHTS: dict[Kind, int] = {
    Kind.WRONG_KEY: 3,
    Kind.SWAPPED: 3,
    Kind.TEXT: 2,
    Kind.FALLBACK: 2,
    Kind.ENCODING: 3,
    Kind.ALIAS: 2,
}
"""Kinds that give weaker tasks (an exception, or a slip that reading shows at once) come later; others weigh 1."""


@dataclass(frozen=True, slots=True)
class Viable:
    """A fault that gives a task."""

    site: Site
    broken: tuple[str, ...]
    """Ids of sampled cases whose outcome changes."""
    tried: int
    """Sampled cases that reach the fault."""


def assess(bench: Bench, project: Project, behaviour: Behaviour) -> list[Viable]:
    """Try the most promising sites; the viable ones in a fixed order.

    Raises:
        BenchFailed: the code got in the way of the recorder.
        InfraError: the sandbox failed.
    """
    trees: list[dict[str, Any]] = []
    by_key: dict[str, Site] = {}
    for site, ids in _promising(project, behaviour):
        by_key[site.key] = site
        trees.append({"id": site.key, "texts": {site.file: _changed(project, site)}, "cases": ids})
    found = compare(bench, project, behaviour, trees) if trees else {}
    viable: list[Viable] = []
    for tree in trees:
        words = found.get(tree["id"], {})
        if is_viable(words, len(tree["cases"])):
            viable.append(Viable(by_key[tree["id"]], tuple(sorted(words)), len(tree["cases"])))
    return viable


def compare(
    bench: Bench,
    project: Project,
    behaviour: Behaviour,
    trees: Sequence[Mapping[str, Any]],
    *,
    full: bool = False,
) -> dict[str, dict[str, Any]]:
    """Cases of each changed tree that differ from the original: a word each, or with `full` the whole outcome."""
    used = sorted(
        {i for tree in trees for i in (behaviour.cases if tree["cases"] is None else tree["cases"])}
    )
    job = {
        "mode": "compare", "root": ROOT, "full": full, "trees": list(trees),
        "cases": [behaviour.cases[i].to_json() for i in used],
        "expected": {i: behaviour.outcomes[i] for i in used},
        "preload": preload(project, [behaviour.cases[i].file for i in used]),
    }  # fmt: skip
    answer = ask(bench, job)
    return {key: value for key, value in answer.items() if isinstance(value, dict)}


def compare_cases(
    bench: Bench,
    project: Project,
    cases: Mapping[str, Case],
    expected: Mapping[str, Any],
    trees: Mapping[str, tuple[Mapping[str, str], Sequence[str]]],
) -> dict[str, dict[str, Any]]:
    """Outcomes that differ from what is expected, on each version (name -> changed files and ids of cases)."""
    job = {
        "mode": "compare", "root": ROOT, "full": True, "expected": dict(expected),
        "trees": [{"id": name, "texts": dict(t), "cases": list(ids)} for name, (t, ids) in trees.items()],
        "cases": [case.to_json() for case in cases.values()],
        "preload": preload(project, [case.file for case in cases.values()]),
    }  # fmt: skip
    answer = ask(bench, job)
    return {name: found if isinstance(found := answer.get(name), dict) else {} for name in trees}


def is_viable(words: Mapping[str, Any], tried: int) -> bool:
    """Judge one fault by the words of `recorder.compare`."""
    values = list(words.values())
    wrong, died = values.count("value"), values.count("died")
    return (
        len(values) >= MIN_BROKEN
        and tried - len(values) >= MIN_KEPT
        and not died
        and wrong * 4 >= len(values) * 3
    )


def _changed(project: Project, site: Site) -> str:
    return project.modules[site.file].source.apply(site.edit)


def _promising(project: Project, behaviour: Behaviour) -> list[tuple[Site, list[str]]]:
    """Sites with the cases that reach them: a few of each function, kinds mixed, the better kinds first."""
    found: list[tuple[int, str, Site, list[str]]] = []
    texts = list(project.files.values())
    for file, module in sorted(project.modules.items()):
        if texts.count(module.source.text) > 1:
            continue  # a second copy in the project would show the right version
        by_function: dict[str, list[Site]] = {}
        for site in find_sites(file, module.source):
            by_function.setdefault(site.function, []).append(site)
        for function, sites in sorted(by_function.items()):
            reaching = behaviour.through(file, outer_function(function, module.functions))
            if len(reaching) < MIN_REACHING:
                continue
            sample = _sample(reaching, behaviour)
            for rank, site in enumerate(_mixed(sites)[:SITES_A_FUNCTION]):
                found.append((rank // 2, site.key, site, sample))
    found.sort(key=lambda item: (item[0], digest_of(item[1])))
    return [(site, sample) for _, _, site, sample in found[:MAX_SITES]]


def outer_function(function: str, known: Iterable[Any]) -> str:
    """The named function itself, or the one around it when it is local and so has a name of its own at run time."""
    names = {info.name for info in known}
    while function and function not in names:
        function = function.rpartition(".")[0]
    return function


def _mixed(sites: Sequence[Site]) -> list[Site]:
    """Order sites so that every kind appears early; within a kind by digest, so that no part of the text is favoured."""
    seen: dict[Kind, int] = {}
    ranked: list[tuple[int, str, Site]] = []
    for site in sorted(sites, key=lambda item: digest_of(item.key)):
        seen[site.kind] = seen.get(site.kind, 0) + 1
        ranked.append((seen[site.kind] * WEIGHTS.get(site.kind, 1), digest_of(site.key), site))
    return [site for *_, site in sorted(ranked, key=lambda item: item[:2])]


def _sample(ids: Sequence[str], behaviour: Behaviour) -> list[str]:
    """Observed cases first, then others, few commands because each starts an interpreter."""
    ranked = sorted(ids, key=lambda i: (i not in behaviour.observed, digest_of(i)))
    commands = [i for i in ranked if behaviour.cases[i].kind == "command"][:COMMANDS_A_SITE]
    calls = [i for i in ranked if behaviour.cases[i].kind == "function"][: CASES_A_SITE - len(commands)]
    return sorted([*commands, *calls])
