"""Family `rebuild`: functions lost their bodies; documentation, facts and recorded examples say what they must do.

The shown examples single the right behaviour out: every small wrong version of the lost code that a hidden case would
fault is faulted by a shown one as well.
"""

import ast
import random
from collections.abc import Mapping, Sequence
from typing import Any

from skill2env.authors.code.assess import compare
from skill2env.authors.code.bench import Bench
from skill2env.authors.code.contract import reverse
from skill2env.authors.code.design import MAX_KEPT, level_of
from skill2env.authors.code.evidence import can_be_shown, is_public, spread_over_targets
from skill2env.authors.code.families.base import Draft, Family, Ground, NoTask, Offer
from skill2env.authors.code.families.lost import Lost, contract_text
from skill2env.authors.code.families.rebuild_words import CRAFT, WORDS
from skill2env.authors.code.families.task import Change, Telling, Truth, bands, code_task, examples, listed
from skill2env.authors.code.faults.sites import find_sites
from skill2env.authors.code.faults.source import Edit, parses
from skill2env.authors.code.phrases import counted
from skill2env.authors.code.report import write_reports
from skill2env.authors.code.rubric import grounding
from skill2env.authors.code.shown import Split, split
from skill2env.authors.code.study import Study
from skill2env.authors.code.understand import FunctionInfo
from skill2env.axes import Archetype, Complexity, VerifierPattern
from skill2env.records import Skill, Workflow, digest_of

LINES = (4, 60)
"""Fewest and most lines of a body that is worth writing anew."""
MIN_DIRECT = 8
MIN_DOC_CHARS = 24
MAX_FUNCTIONS = 6
LEAST_SHOWN, MOST_SHOWN, MOST_HIDDEN = 6, 12, 30
MOST_TRIED = 64
"""Cases that wrong versions are tried on."""
MIN_HIDDEN = 5
VERSIONS = 24
"""Wrong versions of a body that are tried."""
COUNTS: dict[str, int] = {Complexity.LONG: 2, Complexity.DEEP: 3}
"""Functions that are lost in a task of a band; one otherwise."""
FOLDER = "examples"


def losable(found: Study) -> list[Lost]:
    """Documented public functions that recorded calls pin down, those with most calls first."""
    texts = list(found.project.files.values())
    ranked: list[tuple[int, str, Lost]] = []
    for file, module in sorted(found.project.modules.items()):
        if texts.count(module.source.text) > 1:
            continue
        by_name = {info.name: info for info in module.functions}
        for node in module.source.tree.body:
            info = by_name.get(node.name) if isinstance(node, ast.FunctionDef) else None
            if info is None or not isinstance(node, ast.FunctionDef) or not _fits(node, info):
                continue
            direct = _direct(found, file, info.name)
            if len(direct) >= MIN_DIRECT:
                ranked.append((-len(direct), f"{file}:{info.name}", Lost(info, module, node)))
    return [lost for *_, lost in sorted(ranked, key=lambda item: item[:2])][:MAX_FUNCTIONS]


def _fits(node: ast.FunctionDef, info: FunctionInfo) -> bool:
    body = node.body[1:] if ast.get_docstring(node) else node.body
    if not body or not info.public or info.name == "main" or node.decorator_list:
        return False
    lines = (body[-1].end_lineno or 0) - body[0].lineno + 1
    return LINES[0] <= lines <= LINES[1] and len(info.doc) >= MIN_DOC_CHARS


def _direct(found: Study, file: str, name: str) -> list[str]:
    return [
        i
        for i, case in found.behaviour.cases.items()
        if case.kind == "function" and (case.file, case.name) == (file, name)
    ]


def _offers(skill: Skill, found: Study) -> list[Offer]:
    able = losable(found)
    return [Offer(_workflow(skill, found, able, number), (able, number)) for number in range(len(able))]


def _workflow(skill: Skill, found: Study, able: Sequence[Lost], number: int) -> Workflow:
    lost = able[number]
    return Workflow(
        name=f"rebuild-{number + 1}",
        summary=f"Write {lost.info.name} of {skill.name} anew from its contract and recorded examples.",
        scenario=f"Part of the code of {skill.name} was lost. What it did is documented, and old results were kept. {lost.info.doc.splitlines()[0]}",
        initial_world=(
            f"The project in /app/{found.project.name} with one to three functions that only raise NotImplementedError, CONTRACT.md "
            "with what is known about them, and an examples folder with recorded calls and their right output."
        ),
        planted_problem=f"The body of {lost.info.name} in {lost.module.file}, and of others in longer tasks, is gone.",
        difficulty_source="Limits, roundings and odd cases have to be read out of documentation and examples together.",
        solution_sketch="Read contract and examples, write the function, run the examples, try inputs beyond them.",
        verifier_strategy="Recorded outcomes of the original on inputs that are not among the examples, and on everything that must not change.",
        grounding=grounding(skill, [lost.info]),
        suitable={
            "archetype": (Archetype.BUILD.value,),
            "verifier_pattern": (VerifierPattern.DIFFERENTIAL.value,),
            "complexity": bands(COUNTS, len(able)),
        },
    )


def _draft(bench: Bench, ground: Ground, offer: Offer) -> Draft:
    found = ground.found
    able: Sequence[Lost] = offer.material[0]
    first = able[int(offer.material[1])]
    others = [item for item in able if item.key != first.key]
    random.Random(ground.spec.seed).shuffle(others)
    count = COUNTS.get(ground.spec.axes.complexity, 1)
    chosen = sorted([first, *others[: count - 1]], key=lambda item: item.key)
    made: dict[str, list[Edit]] = {}
    for lost in chosen:
        made.setdefault(lost.module.file, []).append(lost.edit)
    texts = {file: found.project.modules[file].source.apply(*edits) for file, edits in made.items()}
    if not all(parses(text) for text in texts.values()):
        raise NoTask("the code without the body does not parse")
    ids = {i for lost in chosen for i in found.behaviour.through(lost.module.file, lost.info.name)}
    near = {i for lost in chosen for i in found.behaviour.through(lost.module.file, "")}
    away = spread_over_targets(set(found.behaviour.cases) - ids, near, found.behaviour)[:MAX_KEPT]
    tree: dict[str, Any] = {"id": "all", "texts": texts, "cases": sorted({*ids, *away})}
    broken = compare(bench, found.project, found.behaviour, [tree], full=True)["all"]
    splits = [_split(bench, found, lost, set(broken)) for lost in chosen]
    kept = spread_over_targets({i for i in (*ids, *away) if i not in broken}, near, found.behaviour)
    return _written(bench, ground, chosen, splits, (texts, made, broken), kept)


def _split(bench: Bench, found: Study, lost: Lost, broken: set[str]) -> Split:
    behaviour = found.behaviour
    direct = set(_direct(found, lost.module.file, lost.info.name))
    ranked = sorted(
        (i for i in behaviour.through(lost.module.file, lost.info.name) if i in broken),
        key=lambda i: (
            i not in direct,
            i not in behaviour.observed,
            "raised" in behaviour.outcomes[i],
            len(str(behaviour.outcomes[i])) // 400,
            digest_of(i),
        ),
    )[:MOST_TRIED]
    sites = [
        site
        for site in find_sites(lost.module.file, lost.module.source)
        if site.function.split(".")[0] == lost.info.name
    ]
    tried = sorted(sites, key=lambda site: digest_of(site.key))[:VERSIONS]
    trees: list[dict[str, Any]] = [
        {"id": site.key, "texts": {site.file: lost.module.source.apply(site.edit)}, "cases": sorted(ranked)}
        for site in tried
    ]
    wrong = compare(bench, found.project, behaviour, trees) if trees and ranked else {}
    showable = {i for i in ranked if can_be_shown(behaviour.cases[i]) and is_public(behaviour, i)}
    result = split(
        ranked,
        showable,
        {key: set(words) for key, words in wrong.items()},
        least=LEAST_SHOWN, most=MOST_SHOWN, hidden=MOST_HIDDEN,
    )  # fmt: skip
    if result is None or len(result.hidden) < MIN_HIDDEN:
        raise NoTask(f"the recorded calls of {lost.info.name} do not single out what it does")
    return result


def _written(
    bench: Bench,
    ground: Ground,
    chosen: Sequence[Lost],
    splits: Sequence[Split],
    change: tuple[Mapping[str, str], Mapping[str, Sequence[Edit]], Mapping[str, Any]],
    kept: Sequence[str],
) -> Draft:
    project, behaviour, (texts, made, broken) = ground.found.project, ground.found.behaviour, change
    groups = _apart(splits)
    ids = list(dict.fromkeys(i for shown, _ in groups for i in shown))
    cases = [(behaviour.cases[i], behaviour.outcomes[i], broken[i]) for i in ids]
    files, shown = write_reports(bench, project, cases, texts, folder=FOLDER)
    telling = Telling(
        title=f"Write lost functions of {ground.skill.name} anew",
        keyword="rebuild",
        words=WORDS,
        craft=CRAFT,
        functions=[lost.info for lost in chosen],
        fields={
            "functions": listed([(lost.info, lost.module) for lost in chosen]),
            "cases": counted(len(shown), "recorded example"),
            "have": "has" if len(chosen) == 1 else "have",
        },
        quoted=examples(shown, 1 if level_of(ground.spec.axes.complexity).distant else 2),
    )
    added = {"CONTRACT.md": contract_text(chosen), **{f"{FOLDER}/{n}": text for n, text in files.items()}}
    truth = Truth(tuple(groups), tuple(sorted(kept[:MAX_KEPT])), behaviour.cases, behaviour.outcomes)
    return code_task(ground, telling, Change(texts, added, reverse(project, made)), truth)


def _apart(splits: Sequence[Split]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Shown and hidden cases of each function: no case belongs to two, and none that is shown anywhere is hidden."""
    shown = {i for item in splits for i in item.shown}
    taken: set[str] = set()
    groups: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    for item in splits:
        mine = tuple(i for i in item.shown if i not in taken)
        hidden = tuple(i for i in item.hidden if i not in taken and i not in shown)
        taken |= {*mine, *hidden}
        if not mine or len(hidden) < MIN_HIDDEN:
            raise NoTask("the functions are called in the same places only")
        groups.append((mine, hidden))
    return groups


FAMILY = Family(
    name="rebuild",
    about="One to three functions lost their bodies; they are written anew from documentation, noted facts and recorded examples.",
    offers=_offers,
    draft=_draft,
)
