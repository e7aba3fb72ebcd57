"""Family `operate`: the tool works; the data it needs arrived in pieces, and its results are wanted, checked.

Every order is a recorded call or run. Its input files were cut into parts, sent in several encodings, some twice and once
damaged; they are put together by a stated procedure, the tool is run on them, and results are delivered with a summary.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# The values here are tagged JSON of any shape; `cases.well_formed` checks them where they come in.

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill2env.authors.code.bench import Bench
from skill2env.authors.code.contract import app_folder, helpers
from skill2env.authors.code.families.base import Draft, Family, Ground, NoTask, Offer
from skill2env.authors.code.families.operate_words import CRAFT, PROCEDURE, WORDS
from skill2env.authors.code.families.orders import Order, order_of
from skill2env.authors.code.families.parts import Part, cut
from skill2env.authors.code.families.task import Telling, delivery_task, metric_names, solve_script, stated
from skill2env.authors.code.phrases import counted
from skill2env.authors.code.rubric import grounding
from skill2env.authors.code.study import Study
from skill2env.authors.code.understand import FunctionInfo
from skill2env.axes import Archetype, Complexity, VerifierPattern
from skill2env.records import Skill, Workflow, canonical_json, digest_of

COUNTS: dict[str, int] = {
    Complexity.SHORT: 4,
    Complexity.MODERATE: 6,
    Complexity.LONG: 10,
    Complexity.DEEP: 14,
}
"""Orders of a band."""
MAX_OFFERS = 4
VERIFIER = ("grading.py", "grade_delivery.py")


@dataclass(frozen=True, slots=True)
class Desk:
    """Orders of one entry point."""

    number: int
    target: str
    orders: tuple[Order, ...]
    functions: tuple[FunctionInfo, ...]


def desks(found: Study) -> list[Desk]:
    """Entry points with enough orders, those with most different results first."""
    by_target: dict[str, list[Order]] = {}
    for i, case in found.behaviour.cases.items():
        infos = [f for f in found.project.modules[case.file].functions if f.name == case.name]
        public = case.kind == "command" or (infos and infos[0].public and "." not in case.name)
        order = (
            order_of(case, found.behaviour.outcomes[i], infos[0].parameters if infos else ())
            if public
            else None
        )
        if order is not None:
            by_target.setdefault(case.target, []).append(order)
    ranked: list[tuple[int, str, list[Order]]] = []
    for target, orders in sorted(by_target.items()):
        results = {canonical_json(order.result) for order in orders}
        if len(results) >= COUNTS[Complexity.SHORT] - 1 and len(orders) >= COUNTS[Complexity.SHORT]:
            ranked.append((-len(results), target, orders))
    found_desks: list[Desk] = []
    for number, (_, target, orders) in enumerate(sorted(ranked, key=lambda item: item[:2])[:MAX_OFFERS], 1):
        case = orders[0].case
        module = found.project.modules[case.file]
        infos = [f for f in module.functions if f.name == case.name] or [
            f for f in module.functions if f.public
        ][:6]
        found_desks.append(Desk(number, target, tuple(orders), tuple(infos)))
    return found_desks


def _offers(skill: Skill, found: Study) -> list[Offer]:
    return [Offer(_workflow(skill, found, desk), desk) for desk in desks(found)]


def _workflow(skill: Skill, found: Study, desk: Desk) -> Workflow:
    bands = [band for band, count in COUNTS.items() if count <= len(desk.orders)]
    return Workflow(
        name=f"operate-{desk.number}",
        summary=f"Put delivered data together, run {desk.target} of {skill.name} on it, and hand in checked results.",
        scenario=f"Orders for {skill.name} came with data that was sent in parts. {skill.description[:200]}",
        initial_world=f"The working project in /app/{found.project.name} and an inbox folder with orders, parts and the procedure for putting them together.",
        planted_problem="Parts are out of order, overlap, come in several encodings, and some were sent twice, once damaged.",
        difficulty_source="A part taken in the wrong version or joined in the wrong place changes results without an error.",
        solution_sketch="Restore every file by the procedure, run the tool as README.md says, collect results, count and check.",
        verifier_strategy="Restored files and results are compared with private ones, order by order; the summary must agree with them.",
        grounding=grounding(skill, desk.functions),
        suitable={
            "archetype": (Archetype.TRANSFORM.value,),
            "verifier_pattern": (VerifierPattern.RECOMPUTE.value,),
            "complexity": tuple(str(band) for band in bands),
        },
    )


def _draft(bench: Bench, ground: Ground, offer: Offer) -> Draft:
    del bench  # everything that is needed was recorded
    desk: Desk = offer.material
    count = COUNTS.get(ground.spec.axes.complexity, COUNTS[Complexity.SHORT])
    rng = random.Random(ground.spec.seed)
    orders = _different(desk.orders, rng)[:count]
    if len(orders) < count:
        raise NoTask("too few recorded calls have results that differ")
    named = {f"order-{number:02d}": order for number, order in enumerate(orders, 1)}
    inbox, parts = _inbox(named, rng)
    return _written(ground, desk, named, inbox, len(parts))


def _different(orders: Sequence[Order], rng: random.Random) -> list[Order]:
    """Orders in random order, those whose result was not yet seen first."""
    left = sorted(orders, key=lambda order: order.id)
    rng.shuffle(left)
    seen: set[str] = set()
    first: list[Order] = []
    again: list[Order] = []
    for order in left:
        key = digest_of(order.result)
        (again if key in seen else first).append(order)
        seen.add(key)
    return [*first, *again]


def _inbox(named: Mapping[str, Order], rng: random.Random) -> tuple[dict[str, str], list[Part]]:
    """Files of the inbox by path, and its parts."""
    parts: list[Part] = []
    for name, order in named.items():
        for file, text in sorted(order.files.items()):
            parts += cut(name, file, text, rng)
    rng.shuffle(parts)
    files = {"inbox/PROCEDURE.md": PROCEDURE}
    listed: list[dict[str, Any]] = []
    for number, part in enumerate(parts, 1):
        listed.append({"part": f"p-{number:03d}.txt", **part.facts})
        files[f"inbox/parts/p-{number:03d}.txt"] = part.sent
    orders = [{"id": name, **order.run, "files": sorted(order.files)} for name, order in named.items()]
    files["inbox/parts.json"] = json.dumps(listed, indent=1, ensure_ascii=False) + "\n"
    files["inbox/orders.json"] = json.dumps(orders, indent=1, ensure_ascii=False) + "\n"
    return files, parts


def _written(
    ground: Ground, desk: Desk, named: Mapping[str, Order], inbox: Mapping[str, str], parts: int
) -> Draft:
    folder = app_folder(ground.found.project)
    telling = Telling(
        title=f"Run orders through {ground.skill.name} and hand in checked results",
        keyword="operate",
        words=WORDS,
        craft=CRAFT,
        functions=desk.functions,
        fields={
            "orders": counted(len(named), "order"), "parts": str(parts),
            "target": f"`{desk.target.replace(':', '` and its function `')}`",
        },
        details=_form(desk),
        background=True,
    )  # fmt: skip
    told = stated(ground, telling, "outbox")
    truth = {
        "delivered": f"{folder}/outbox",
        "metrics": metric_names(told.metrics),
        "orders": {
            name: {"files": dict(order.files), "result": dict(order.result)} for name, order in named.items()
        },
    }
    files = {"truth.json": canonical_json(truth) + "\n"}
    script = solve_script(f'exec /usr/bin/python3 -s -B "$here/operate.py" {folder}')
    solution = {"solution/solve.sh": script, **helpers("solution", ("operate.py",))}
    return delivery_task(ground, told, inbox, ("test_delivery.sh", VERIFIER, files), solution)


def _form(desk: Desk) -> str:
    """What is to be delivered, whole."""
    command = desk.orders[0].case.kind == "command"
    how = (
        "start the script with the arguments given, in an empty folder into which the order's restored files were put under their names; the "
        'result is `{"exit": exit code, "stdout": what it printed, "files": {path: text}}` with every file that it wrote or changed there'
        if command
        else "call the function with the arguments given by name, where the name of a restored file stands for its path (of the type in paths_as); the result is "
        '`{"value": what it returned}` as JSON (tuples as lists), or `{"raised": name of the exception class}`'
    )
    return (
        "To be delivered in the folder `outbox`:\n\n"
        "- `outbox/ORDER/FILE` for each order and each of its files: the restored file, UTF-8.\n"
        f"- `outbox/results.json`: an object that maps the id of each order to its result. For each order, {how}.\n"
        '- `outbox/summary.json`: `{"orders": number of orders, "lines": {order: lines of all its restored files together}, '
        '"same": [[orders with equal results, sorted], ...]}`, where "same" lists every group of two or more, sorted.'
    )


FAMILY = Family(
    name="operate",
    about="Data that came in parts is restored by a stated procedure, the skill's tool is run on it, and results are handed in with a summary.",
    offers=_offers,
    draft=_draft,
)
