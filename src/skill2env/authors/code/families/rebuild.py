"""Family `rebuild`: functions lost their bodies; documentation, facts and recorded examples say what they must do.

The shown examples single the right behaviour out: every small wrong version of the lost code that a hidden case would
fault is faulted by a shown one as well.
"""

import ast
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill2env.authors.code.assess import compare
from skill2env.authors.code.bench import Bench
from skill2env.authors.code.contract import (
    Graded,
    Statement,
    app_folder,
    interface_of,
    reverse,
    shared_fields,
    solution_files,
    task_files,
    verifier_files,
)
from skill2env.authors.code.design import MAX_KEPT, can_be_shown, is_public, level_of, spread_over_targets
from skill2env.authors.code.families.base import Draft, Family, NoTask, Offer
from skill2env.authors.code.families.rebuild_words import CRAFT, WORDS
from skill2env.authors.code.faults.sites import find_sites
from skill2env.authors.code.faults.source import Edit, parses
from skill2env.authors.code.instruction import symptom, write_instruction
from skill2env.authors.code.phrases import counted
from skill2env.authors.code.report import write_reports
from skill2env.authors.code.rubric import grounding, write_rubric
from skill2env.authors.code.shown import Split, split
from skill2env.authors.code.study import Study
from skill2env.authors.code.understand import FunctionInfo, ModuleInfo
from skill2env.axes import Archetype, Complexity, VerifierPattern
from skill2env.records import Skill, TaskSpec, Workflow, digest_of

LINES = (4, 60)
"""Fewest and most lines of a body that is worth writing anew."""
MIN_DIRECT = 8
MIN_DOC_CHARS = 24
MAX_FUNCTIONS = 6
LEAST_SHOWN, MOST_SHOWN, MOST_HIDDEN = 6, 12, 30
MIN_HIDDEN = 5
VERSIONS = 36
"""Wrong versions of a body that are tried."""
COUNTS: dict[str, int] = {Complexity.LONG: 2, Complexity.DEEP: 3}
"""Functions that are lost in a task of a band; one otherwise."""
FOLDER = "examples"


@dataclass(frozen=True, slots=True)
class Lost:
    """A function that can be taken out."""

    info: FunctionInfo
    module: ModuleInfo
    node: ast.FunctionDef

    @property
    def key(self) -> str:
        """``file:name``."""
        return f"{self.module.file}:{self.info.name}"

    @property
    def edit(self) -> Edit:
        """The change that takes the body out and leaves signature and docstring."""
        source = self.module.source
        body = self.node.body[1:] if ast.get_docstring(self.node) else self.node.body
        start, end = source.span(body[0])[0], source.span(body[-1])[1]
        return Edit(
            start, end, f'raise NotImplementedError("{self.info.name} is to be written: see CONTRACT.md")'
        )


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
    return [Offer(_workflow(skill, found, able, number), number) for number in range(len(able))]


def _workflow(skill: Skill, found: Study, able: Sequence[Lost], number: int) -> Workflow:
    lost = able[number]
    bands = [Complexity.SHORT, Complexity.MODERATE]
    bands += [band for band, count in COUNTS.items() if count <= len(able)]
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
            "complexity": tuple(str(band) for band in bands),
        },
    )


def _draft(bench: Bench, spec: TaskSpec, skill: Skill, found: Study, offer: Offer) -> Draft:
    able = losable(found)
    first: Lost = able[int(offer.material)]
    others = [item for item in able if item.key != first.key]
    random.Random(spec.seed).shuffle(others)
    chosen = sorted([first, *others[: COUNTS.get(spec.axes.complexity, 1) - 1]], key=lambda item: item.key)
    made: dict[str, list[Edit]] = {}
    for lost in chosen:
        made.setdefault(lost.module.file, []).append(lost.edit)
    texts = {file: found.project.modules[file].source.apply(*edits) for file, edits in made.items()}
    if not all(parses(text) for text in texts.values()):
        raise NoTask("the code without the body does not parse")
    ids = {i for lost in chosen for i in found.behaviour.through(lost.module.file, lost.info.name)}
    near = {i for lost in chosen for i in found.behaviour.through(lost.module.file, "")}
    others = spread_over_targets(set(found.behaviour.cases) - ids, near, found.behaviour)[:MAX_KEPT]
    tree: dict[str, Any] = {"id": "all", "texts": texts, "cases": sorted({*ids, *others})}
    broken = compare(bench, found.project, found.behaviour, [tree], full=True)["all"]
    splits = [_split(bench, found, lost, set(broken)) for lost in chosen]
    kept = spread_over_targets({i for i in (*ids, *others) if i not in broken}, near, found.behaviour)
    return _written(bench, spec, skill, found, chosen, splits, (texts, made, broken), kept)


def _split(bench: Bench, found: Study, lost: Lost, broken: set[str]) -> Split:
    behaviour = found.behaviour
    through = [i for i in behaviour.through(lost.module.file, lost.info.name) if i in broken]
    direct = set(_direct(found, lost.module.file, lost.info.name))
    sites = [
        site
        for site in find_sites(lost.module.file, lost.module.source)
        if site.function.split(".")[0] == lost.info.name
    ]
    tried = sorted(sites, key=lambda site: digest_of(site.key))[:VERSIONS]
    trees: list[dict[str, Any]] = [
        {"id": site.key, "texts": {site.file: lost.module.source.apply(site.edit)}, "cases": sorted(through)}
        for site in tried
    ]
    wrong = compare(bench, found.project, behaviour, trees) if trees and through else {}
    ranked = sorted(
        through,
        key=lambda i: (
            i not in direct,
            i not in behaviour.observed,
            "raised" in behaviour.outcomes[i],
            len(str(behaviour.outcomes[i])) // 400,
            digest_of(i),
        ),
    )
    showable = {i for i in through if can_be_shown(behaviour.cases[i]) and is_public(behaviour, i)}
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
    spec: TaskSpec,
    skill: Skill,
    found: Study,
    chosen: Sequence[Lost],
    splits: Sequence[Split],
    change: tuple[Mapping[str, str], Mapping[str, Sequence[Edit]], Mapping[str, Any]],
    kept: Sequence[str],
) -> Draft:
    project, behaviour, (texts, made, broken) = found.project, found.behaviour, change
    folder = app_folder(project)
    groups = _apart(splits)
    ids = list(dict.fromkeys(i for shown, _ in groups for i in shown))
    cases = [(behaviour.cases[i], behaviour.outcomes[i], broken[i]) for i in ids]
    files, shown = write_reports(bench, project, cases, texts, folder=FOLDER)
    names = [f"`{lost.info.name}` in `{lost.module.file}`" for lost in chosen]
    fields = {
        **shared_fields(skill, project),
        "functions": names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}",
        "cases": counted(len(shown), "recorded example"),
        "have": "has" if len(names) == 1 else "have",
    }
    quoted = [symptom(item) for item in shown[: 1 if level_of(spec.axes.complexity).distant else 2]]
    instruction, metrics = write_instruction(WORDS, fields, quoted, spec.axes, spec.seed)
    told = Statement(
        title=f"Write lost functions of {skill.name} anew",
        instruction=instruction,
        metrics=metrics,
        artifacts=(folder,),
        keyword="rebuild",
        rubric=write_rubric(skill, [lost.info for lost in chosen], CRAFT),
    )
    graded = Graded(
        groups=tuple(groups),
        kept=tuple(sorted(kept[:MAX_KEPT])),
        joint=(),
        cases=behaviour.cases,
        expected=behaviour.outcomes,
        interface=interface_of(project, list(texts)),
    )
    added = {**texts, "CONTRACT.md": contract_text(chosen)}
    added |= {f"{FOLDER}/{name}": text for name, text in files.items()}
    return Draft(
        {**task_files(spec, skill, project, told, added), **verifier_files(project, graded, metrics)},
        solution_files(project, texts, reverse(project, made)),
    )


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


# ------------------------------------------------------------------------------------------------ CONTRACT.md


def contract_text(chosen: Sequence[Lost]) -> str:
    """CONTRACT.md: signature, documentation, and the facts of the lost code that no example can tell."""
    parts = [
        "# What was lost\n\nSignatures and docstrings still stand in the code. What follows was noted down about the old code: the fixed "
        "values and texts that it worked with, what it called, and which errors it raised by itself. The examples folder holds recorded "
        "calls."
    ]
    for lost in chosen:
        source = lost.module.source
        head = source.data[source.span(lost.node)[0] : source.span(lost.node.body[0])[0]].decode().strip()
        facts = [f"## `{lost.info.name}` in `{lost.module.file}`", f"```python\n{head}\n```", lost.info.doc]
        facts.append(
            "\n".join(
                f"- {name}: {', '.join(f'`{v}`' for v in values) or 'none'}" for name, values in _facts(lost)
            )
        )
        parts.append("\n\n".join(facts))
    return "\n\n".join(parts) + "\n"


def _facts(lost: Lost) -> list[tuple[str, list[str]]]:
    """Fixed numbers, texts, names it called, errors it raised; each sorted, so that their order tells nothing."""
    numbers: set[str] = set()
    texts: set[str] = set()
    called: set[str] = set()
    raised: set[str] = set()
    own = {info.name for info in lost.module.functions}
    own |= {
        t.id
        for n in lost.module.source.tree.body
        if isinstance(n, ast.Assign)
        for t in n.targets
        if isinstance(t, ast.Name)
    }
    body = lost.node.body[1:] if ast.get_docstring(lost.node) else lost.node.body
    for node in (part for statement in body for part in ast.walk(statement)):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            numbers.add(repr(node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
            texts.add(repr(node.value))
        elif isinstance(node, ast.Name) and node.id in own and node.id != lost.info.name:
            called.add(node.id)
        elif (
            isinstance(node, ast.Raise)
            and isinstance(node.exc, ast.Call)
            and isinstance(node.exc.func, ast.Name)
        ):
            raised.add(node.exc.func.id)
    clean = sorted(text for text in texts if "`" not in text and len(text) <= 120)
    return [
        ("fixed numbers", sorted(numbers)),
        ("fixed texts", clean),
        ("functions and constants of this file that it used", sorted(called)),
        ("errors that it raised by itself", sorted(raised)),
    ]


FAMILY = Family(
    name="rebuild",
    about="One to three functions lost their bodies; they are written anew from documentation, noted facts and recorded examples.",
    offers=_offers,
    draft=_draft,
)
