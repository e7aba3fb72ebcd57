"""Family `migrate`: an interface or a form of data changes by a stated rule, and everything else stays.

The reference solution keeps the old function under a private name for the callers inside and puts the new form in front
of it. New outcomes follow from recorded ones by the rule; both versions are run before the task is written.
"""

import ast
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill2env.authors.code.assess import compare_cases
from skill2env.authors.code.bench import Bench
from skill2env.authors.code.cases import Case
from skill2env.authors.code.contract import (
    Graded,
    Statement,
    app_folder,
    interface_of,
    shared_fields,
    solution_files,
    task_files,
    verifier_files,
)
from skill2env.authors.code.design import MAX_KEPT, can_be_shown, spread_over_targets
from skill2env.authors.code.families.base import Draft, Family, NoTask, Offer
from skill2env.authors.code.families.migrate_words import CRAFT, WORDS
from skill2env.authors.code.families.rules import RULES, Rule
from skill2env.authors.code.faults.source import Edit, parses
from skill2env.authors.code.instruction import symptom, write_instruction
from skill2env.authors.code.phrases import counted
from skill2env.authors.code.report import write_reports
from skill2env.authors.code.rubric import grounding, write_rubric
from skill2env.authors.code.study import Study
from skill2env.authors.code.templates.tagged_values import same
from skill2env.authors.code.understand import FunctionInfo, ModuleInfo
from skill2env.axes import Archetype, Complexity, VerifierPattern
from skill2env.records import Skill, TaskSpec, Workflow, digest_of

MIN_CHANGED = 8
SHOWN, MOST_HIDDEN = 4, 24
MAX_OFFERS = 6
SPARE = 16
"""Cases that must stay and are tried beyond those that are used."""
COUNTS: dict[str, int] = {Complexity.LONG: 2, Complexity.DEEP: 3}
"""Functions that change form in a task of a band; one otherwise."""
FOLDER = "examples"


@dataclass(frozen=True, slots=True)
class Move:
    """One function and the rule by which it changes."""

    info: FunctionInfo
    module: ModuleInfo
    node: ast.FunctionDef
    rule: Rule
    changed: Mapping[str, tuple[Case, Any]]
    """Id of a recorded call -> the call in its new form and its right outcome."""

    @property
    def key(self) -> str:
        """``file:name``."""
        return f"{self.module.file}:{self.info.name}"


def moves(found: Study) -> list[Move]:
    """Every function that a rule fits, those with callers inside the project first, rules mixed."""
    ranked: list[tuple[int, int, str, Move]] = []
    used: dict[str, int] = {}
    for file, module in sorted(found.project.modules.items()):
        by_name = {info.name: info for info in module.functions}
        for node in module.source.tree.body:
            info = by_name.get(node.name) if isinstance(node, ast.FunctionDef) else None
            if (
                info is None
                or not isinstance(node, ast.FunctionDef)
                or not _movable(found, module, node, info)
            ):
                continue
            for rule in _rules(f"{file}:{info.name}"):
                changed = _changed(found, file, info, node, rule)
                if len(changed) >= MIN_CHANGED:
                    used[rule.name] = used.get(rule.name, 0) + 1
                    inside = len(_loads(module, info.name)) > 0
                    ranked.append(
                        (
                            used[rule.name],
                            int(not inside),
                            f"{file}:{info.name}",
                            Move(info, module, node, rule, changed),
                        )
                    )
    distinct: dict[str, Move] = {}
    for *_, move in sorted(ranked, key=lambda item: item[:3]):
        distinct.setdefault(move.key, move)
    return list(distinct.values())[:MAX_OFFERS]


def _rules(key: str) -> list[Rule]:
    """All rules in an order of the function's own, so that no rule is always tried first."""
    return sorted(RULES, key=lambda rule: digest_of([key, rule.name]))


def _movable(found: Study, module: ModuleInfo, node: ast.FunctionDef, info: FunctionInfo) -> bool:
    if not info.public or info.name == "main" or node.decorator_list or node.args.vararg or node.args.kwarg:
        return False
    if any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(node)):
        return False
    word = re.compile(rf"\b{re.escape(info.name)}\b")
    others = [path for path in found.project.modules if path != module.file]
    if any(word.search(found.project.files[path]) for path in others):
        return False  # other modules would have to follow, which the reference solution does not do
    bound = [part for part in ast.walk(module.source.tree) if _binds(part, info.name)]
    return len(bound) == 1


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name == name
    if isinstance(node, ast.arg):
        return node.arg == name
    if isinstance(node, ast.alias):
        return (node.asname or node.name) == name
    return isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id == name


def _loads(module: ModuleInfo, name: str) -> list[ast.Name]:
    return [
        part
        for part in ast.walk(module.source.tree)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id == name
    ]


def _changed(
    found: Study, file: str, info: FunctionInfo, node: ast.FunctionDef, rule: Rule
) -> dict[str, tuple[Case, Any]]:
    """Recorded calls that look or end differently under a rule."""
    if rule.takes and (len(info.parameters) < 2 or node.args.posonlyargs):
        return {}
    result: dict[str, tuple[Case, Any]] = {}
    for i, case in found.behaviour.cases.items():
        if case.kind != "function" or (case.file, case.name) != (file, info.name):
            continue
        outcome = found.behaviour.outcomes[i]
        new = rule.change(case, outcome, info.parameters)
        if new is not None and not (new[0].id == case.id and same(new[1], outcome)):
            result[i] = new
    return result


def _offers(skill: Skill, found: Study) -> list[Offer]:
    able = moves(found)
    return [Offer(_workflow(skill, found, able, number), number) for number in range(len(able))]


def _workflow(skill: Skill, found: Study, able: Sequence[Move], number: int) -> Workflow:
    move = able[number]
    bands = [Complexity.SHORT, Complexity.MODERATE]
    bands += [band for band, count in COUNTS.items() if count <= len(able)]
    return Workflow(
        name=f"migrate-{number + 1}",
        summary=f"Move {move.info.name} of {skill.name} to a new form by a stated rule ({move.rule.name}), everything else unchanged.",
        scenario=f"A consumer of {skill.name} needs results or calls in another form; what is inside must not notice. {' '.join(move.info.doc.split())[:200]}",
        initial_world=f"The working project in /app/{found.project.name}, and an examples folder with calls in the new form and their right output.",
        planted_problem=f"{move.info.name} in {move.module.file} still speaks the old form, and code inside the project depends on that.",
        difficulty_source="The rule holds at any depth and for odd inputs, and callers inside must keep what they get today.",
        solution_sketch="Keep the old function for the callers inside, put the new form in front of it, check both sides.",
        verifier_strategy="Recorded outcomes turned by the rule, on shown and held-out calls; recorded outcomes as they were for all else.",
        grounding=grounding(skill, [move.info]),
        suitable={
            "archetype": (Archetype.MIGRATE.value,),
            "verifier_pattern": (VerifierPattern.DIFFERENTIAL.value,),
            "complexity": tuple(str(band) for band in bands),
        },
    )


def migrated(module: ModuleInfo, wanted: Sequence[Move]) -> list[Edit]:
    """Edits of one file: old functions get private names, inside callers follow, new functions stand after them."""
    source = module.source
    edits: list[Edit] = []
    helpers: set[str] = set()
    for move in sorted(wanted, key=lambda item: item.node.lineno):
        old = f"_{move.info.name}_before"
        start = source.span(move.node)[0] + len(b"def ")
        edits.append(Edit(start, start + len(move.info.name.encode()), old))
        edits += [source.replace(name, old) for name in _loads(module, move.info.name)]
        helper = move.rule.helper if move.rule.name not in helpers else ""
        helpers.add(move.rule.name)
        given = [f"{a.arg}" for a in (*move.node.args.posonlyargs, *move.node.args.args)]
        given += [f"{a.arg}={a.arg}" for a in move.node.args.kwonlyargs]
        takes = move.rule.takes or ast.unparse(move.node.args)
        body = move.rule.body.format(call=f"{old}({', '.join(given)})", old=old)
        doc = f'    """{move.info.name} in its new form: {move.rule.name}."""\n'
        text = f"\n\n\n{helper}{chr(10) * 2 if helper else ''}def {move.info.name}({takes}):\n{doc}{body}"
        end = source.span(move.node)[1]
        edits.append(Edit(end, end, text.rstrip("\n")))
    return edits


def _draft(bench: Bench, spec: TaskSpec, skill: Skill, found: Study, offer: Offer) -> Draft:
    able = moves(found)
    first: Move = able[int(offer.material)]
    others = [item for item in able if item.key != first.key]
    random.Random(spec.seed).shuffle(others)
    chosen = sorted([first, *others[: COUNTS.get(spec.axes.complexity, 1) - 1]], key=lambda item: item.key)
    edits = {
        file: migrated(found.project.modules[file], [m for m in chosen if m.module.file == file])
        for file in sorted({m.module.file for m in chosen})
    }
    try:
        texts = {file: found.project.modules[file].source.apply(*made) for file, made in edits.items()}
    except ValueError as error:
        raise NoTask("the places that have to change overlap") from error
    if not all(parses(text) for text in texts.values()):
        raise NoTask("the migrated code does not parse")
    return _checked(bench, spec, skill, found, chosen, texts, edits)


def _checked(
    bench: Bench,
    spec: TaskSpec,
    skill: Skill,
    found: Study,
    chosen: Sequence[Move],
    texts: Mapping[str, str],
    edits: Mapping[str, Sequence[Edit]],
) -> Draft:
    """Run both versions on new and old cases, then split and write."""
    behaviour = found.behaviour
    targets = {move.key for move in chosen}
    reaching = {i for move in chosen for i in behaviour.through(move.module.file, move.info.name)}
    still = {i for i, case in behaviour.cases.items() if case.target not in targets}
    kept = spread_over_targets(still, reaching, behaviour)[: MAX_KEPT + SPARE]
    cases: dict[str, Case] = {i: behaviour.cases[i] for i in kept}
    expected: dict[str, Any] = {i: behaviour.outcomes[i] for i in kept}
    mine: list[list[str]] = []
    for move in chosen:
        news = {case.id: (case, outcome) for case, outcome in move.changed.values()}
        cases |= {i: case for i, (case, _) in news.items()}
        expected |= {i: outcome for i, (_, outcome) in news.items()}
        mine.append(sorted(news, key=digest_of))
    changed = sorted({i for ids in mine for i in ids})
    trees: dict[str, tuple[Mapping[str, str], Sequence[str]]] = {
        "now": ({}, changed),
        "right": (texts, sorted(cases)),
    }
    answers = compare_cases(bench, found.project, cases, expected, trees)
    now, wrong = answers["now"], set(answers["right"])
    groups: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    for ids in mine:
        usable = [i for i in ids if i in now and i not in wrong]
        showable = [i for i in usable if can_be_shown(cases[i])]
        showable.sort(key=lambda i: ("raised" in expected[i], len(str(expected[i])) // 300, digest_of(i)))
        shown = showable[:SHOWN]
        hidden = [i for i in usable if i not in shown][:MOST_HIDDEN]
        if len(shown) < 2 or len(hidden) < MIN_CHANGED // 2:
            raise NoTask("too few recorded calls change under the rule")
        groups.append((tuple(shown), tuple(sorted(hidden))))
    stay = [i for i in kept if i not in wrong]
    if len(stay) * 10 < len(kept) * 9:
        raise NoTask("behaviour that must stay would change")
    graded = Graded(
        tuple(groups),
        tuple(sorted(stay[:MAX_KEPT])),
        (),
        cases,
        expected,
        _interface(found, chosen, list(texts)),
    )
    return _written(bench, spec, skill, found, chosen, (texts, edits), (graded, now))


def _interface(
    found: Study, chosen: Sequence[Move], files: Sequence[str]
) -> dict[str, dict[str, Sequence[str]]]:
    interface = interface_of(found.project, files)
    for move in chosen:
        if move.rule.takes:
            interface[move.module.file][move.info.name] = (move.rule.takes,)
    return interface


def _written(
    bench: Bench,
    spec: TaskSpec,
    skill: Skill,
    found: Study,
    chosen: Sequence[Move],
    change: tuple[Mapping[str, str], Mapping[str, Sequence[Edit]]],
    truth: tuple[Graded, Mapping[str, Any]],
) -> Draft:
    project, (texts, edits), (graded, now) = found.project, change, truth
    folder = app_folder(project)
    ids = [i for shown, _ in graded.groups for i in shown]
    cases = [(graded.cases[i], graded.expected[i], now[i]) for i in ids]
    files, shown = write_reports(bench, project, cases, {}, texts, FOLDER)
    names = [f"`{move.info.name}` in `{move.module.file}`" for move in chosen]
    fields = {
        **shared_fields(skill, project),
        "functions": names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}",
        "cases": counted(len(shown), "example"),
        "speak": "speaks" if len(names) == 1 else "speak",
    }
    rules = "\n".join(f"- {move.rule.words.format(function=f'`{move.info.name}`')}" for move in chosen)
    instruction, metrics = write_instruction(
        WORDS,
        fields,
        [symptom(item) for item in shown[:1]],
        spec.axes,
        spec.seed,
        f"The new form:\n\n{rules}",
    )
    told = Statement(
        title=f"Move functions of {skill.name} to a new form",
        instruction=instruction,
        metrics=metrics,
        artifacts=(folder,),
        keyword="migrate",
        rubric=write_rubric(skill, [move.info for move in chosen], CRAFT),
    )
    added = {f"{FOLDER}/{name}": text for name, text in files.items()}
    before = {file: project.files[file] for file in texts}
    return Draft(
        {**task_files(spec, skill, project, told, added), **verifier_files(project, graded, metrics)},
        solution_files(project, before, edits),
    )


FAMILY = Family(
    name="migrate",
    about="One to three functions change the form of their results or arguments by a stated rule; all other behaviour stays.",
    offers=_offers,
    draft=_draft,
)
