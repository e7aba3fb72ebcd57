"""Family `migrate`: an interface or a form of data changes by a stated rule, and everything else stays.

The reference solution keeps the old function under a private name for the callers inside and puts the new form in front
of it. New outcomes follow from recorded ones by the rule; both versions are run before the task is written.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from skill2env.authors.code.assess import compare_cases
from skill2env.authors.code.bench import Bench
from skill2env.authors.code.cases import Case
from skill2env.authors.code.design import MAX_KEPT
from skill2env.authors.code.evidence import can_be_shown, spread_over_targets
from skill2env.authors.code.families.base import Draft, Family, Ground, NoTask, Offer
from skill2env.authors.code.families.migrate_words import CRAFT, WORDS
from skill2env.authors.code.families.moves import MIN_CHANGED, Move, migrated, moves
from skill2env.authors.code.families.task import Change, Telling, Truth, bands, code_task, examples, listed
from skill2env.authors.code.faults.source import Edit, parses
from skill2env.authors.code.phrases import counted
from skill2env.authors.code.report import write_reports
from skill2env.authors.code.rubric import grounding
from skill2env.authors.code.study import Study
from skill2env.axes import Archetype, Complexity, VerifierPattern
from skill2env.records import Skill, Workflow, digest_of

SHOWN, MOST_HIDDEN = 4, 24
SPARE = 16
"""Cases that must stay and are tried beyond those that are used."""
COUNTS: dict[str, int] = {Complexity.LONG: 2, Complexity.DEEP: 3}
"""Functions that change form in a task of a band; one otherwise."""
FOLDER = "examples"


def _offers(skill: Skill, found: Study) -> list[Offer]:
    able = moves(found)
    return [Offer(_workflow(skill, found, able, number), (able, number)) for number in range(len(able))]


def _workflow(skill: Skill, found: Study, able: Sequence[Move], number: int) -> Workflow:
    move = able[number]
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
            "complexity": bands(COUNTS, len(able)),
        },
    )


def _draft(bench: Bench, ground: Ground, offer: Offer) -> Draft:
    found = ground.found
    able: Sequence[Move] = offer.material[0]
    first = able[int(offer.material[1])]
    others = [item for item in able if item.key != first.key]
    random.Random(ground.spec.seed).shuffle(others)
    count = COUNTS.get(ground.spec.axes.complexity, 1)
    chosen = sorted([first, *others[: count - 1]], key=lambda item: item.key)
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
    return _checked(bench, ground, chosen, texts, edits)


def _checked(
    bench: Bench,
    ground: Ground,
    chosen: Sequence[Move],
    texts: Mapping[str, str],
    edits: Mapping[str, Sequence[Edit]],
) -> Draft:
    """Run both versions on new and old cases, then split and write."""
    found, behaviour = ground.found, ground.found.behaviour
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
    truth = Truth(
        tuple(groups), tuple(sorted(stay[:MAX_KEPT])), cases, expected, interface=_interface(chosen)
    )
    return _written(bench, ground, chosen, (texts, edits), (truth, now))


def _interface(chosen: Sequence[Move]) -> dict[str, dict[str, Sequence[str]]]:
    """Functions that take other arguments afterwards."""
    found: dict[str, dict[str, Sequence[str]]] = {}
    for move in chosen:
        if move.rule.takes:
            found.setdefault(move.module.file, {})[move.info.name] = (move.rule.takes,)
    return found


def _written(
    bench: Bench,
    ground: Ground,
    chosen: Sequence[Move],
    change: tuple[Mapping[str, str], Mapping[str, Sequence[Edit]]],
    judged: tuple[Truth, Mapping[str, Any]],
) -> Draft:
    (texts, edits), (truth, now) = change, judged
    ids = [i for shown, _ in truth.groups for i in shown]
    cases = [(truth.cases[i], truth.expected[i], now[i]) for i in ids]
    files, shown = write_reports(bench, ground.found.project, cases, {}, texts, FOLDER)
    rules = "\n".join(f"- {move.rule.words.format(function=f'`{move.info.name}`')}" for move in chosen)
    telling = Telling(
        title=f"Move functions of {ground.skill.name} to a new form",
        keyword="migrate",
        words=WORDS,
        craft=CRAFT,
        functions=[move.info for move in chosen],
        fields={
            "functions": listed([(move.info, move.module) for move in chosen]),
            "cases": counted(len(shown), "example"),
            "speak": "speaks" if len(chosen) == 1 else "speak",
        },
        quoted=examples(shown, 1),
        details=f"The new form:\n\n{rules}",
    )
    added = {f"{FOLDER}/{name}": text for name, text in files.items()}
    return code_task(ground, telling, Change({}, added, edits), truth)


FAMILY = Family(
    name="migrate",
    about="One to three functions change the form of their results or arguments by a stated rule; all other behaviour stays.",
    offers=_offers,
    draft=_draft,
)
