"""Family `repair`: one to four faults in working code; the shown symptoms lie away from their cause.

The world is the code with the faults, the reported cases show them, and the verifier compares with what the private
original does on inputs that nobody was shown.
"""

from typing import Any

from skill2env.authors.code.assess import compare
from skill2env.authors.code.bench import Bench, BenchFailed
from skill2env.authors.code.contract import reverse
from skill2env.authors.code.design import Design, Level, broken_texts, design, level_of
from skill2env.authors.code.families.base import Draft, Family, Ground, NoTask, Offer
from skill2env.authors.code.families.task import Change, Telling, Truth, code_task, examples
from skill2env.authors.code.faults.source import Edit
from skill2env.authors.code.instruction import Words
from skill2env.authors.code.phrases import counted
from skill2env.authors.code.report import Shown, write_reports
from skill2env.authors.code.rubric import REPAIR
from skill2env.authors.code.study import Study
from skill2env.authors.code.workflows import Group, groups, workflow
from skill2env.axes import Expertise
from skill2env.records import Skill

ATTEMPTS = 4
"""Designs tried for one spec before it is skipped."""


WORDS = Words(
    problems={
        Expertise.OUTSIDER: (
            "Some of what it gives out is wrong since the last change; the rest looks fine.",
            "Since it was last changed, part of what comes out is not right any more.",
        ),
        Expertise.PRACTITIONER: (
            "A recent change broke some of its results without any error message.",
            "Since a recent edit some results are wrong, and nothing crashes.",
        ),
        Expertise.SPECIALIST: (
            "A recent edit altered behaviour that README.md and the code's own comments describe; there is no error, only wrong values.",
            "A regression went in unnoticed: the values disagree with the documented rules while everything still runs.",
        ),
        Expertise.ADJACENT: (
            "The instrument still runs, but after the last adjustment some of its readings are off.",
            "It behaves like a gauge that somebody knocked: it runs, and part of the readings are wrong.",
        ),
    },
    evidence=(
        "`{dir}/reports` holds {cases}: `python3 reports/case-01/run.py` (and so on) prints what we get today, "
        "`expected.txt` beside it is what should be printed.",
        "You find {cases} in `{dir}/reports`. Each has a `run.py` that prints today's result and an `expected.txt` "
        "with the right one.",
    ),
    musts={
        "reported_cases": {
            Expertise.OUTSIDER: (
                "In the end every reported case must come out exactly as its expected.txt says.",
                "All the reported cases have to give what their expected.txt shows.",
            ),
            "": (
                "Every run.py under reports must print exactly its expected.txt.",
                "For each reported case the output must equal its expected.txt.",
            ),
        },
        "unreported_cases": {
            Expertise.OUTSIDER: (
                "The reported cases are only examples: the same mistake must also be gone for other data that I have not shown you.",
                "What I sent are examples, and the tool must be right for everything else that was hit by the same mistake too.",
            ),
            "": (
                "The cause has to be mended, so that inputs nobody reported but the same fault affects come out right as well.",
                "Other inputs that suffer from the same cause, none of them in reports, must give the right results too.",
            ),
        },
        "kept_behaviour": {
            Expertise.OUTSIDER: (
                "And with the mistake really gone, everything that comes out right today must still come out exactly the same.",
                "Once a mistake is truly gone, nothing that is right today may look any different.",
            ),
            "": (
                "With a fault really gone, everything that is right today must stay exactly as it is, under the same function names and options.",
                "A mended fault counts only if all results that are right today stay identical and functions and options keep their names.",
            ),
        },
        "interface": {
            Expertise.OUTSIDER: (
                "Other programs here use it by name, so nothing may be renamed and nothing may ask for other inputs than today.",
                "Names, and what each part asks for, have to stay the way they are, because other programs rely on them.",
            ),
            "": (
                "Public functions keep their names and the names and order of their parameters.",
                "No public function may change its name or its parameters.",
            ),
        },
    },
    rules=(
        "Mend the code itself; Python here has {libraries}, and there is no network.",
        "Please change the code, not the reports; there is no network, and Python has {libraries}.",
    ),
)


def _offers(skill: Skill, found: Study) -> list[Offer]:
    return [Offer(workflow(skill, found, group), group) for group in groups(found)]


def _draft(bench: Bench, ground: Ground, offer: Offer) -> Draft:
    group: Group = offer.material
    found, level = ground.found, level_of(ground.spec.axes.complexity)
    why = f"no set of {level.faults} faults in {group.name} leaves enough to show and to hold back"
    for attempt in range(ATTEMPTS):
        try:
            seed = ground.spec.seed + attempt
            plan = design(bench, found.project, found.behaviour, group.viable, level, seed)
            if plan is not None:
                return _written(ground, plan, level, _reports(bench, found, plan))
        except BenchFailed as error:
            why = str(error)
    raise NoTask(why)


def _reports(bench: Bench, found: Study, plan: Design) -> tuple[dict[str, str], list[Shown]]:
    behaviour = found.behaviour
    ids = list(dict.fromkeys(i for fault in plan.faults for i in fault.reported))
    texts = broken_texts(found.project, [fault.site for fault in plan.faults])
    trees = [{"id": "all", "texts": texts, "cases": sorted(ids)}]
    wrong: dict[str, Any] = compare(bench, found.project, behaviour, trees, full=True)["all"]
    cases = [(behaviour.cases[i], behaviour.outcomes[i], wrong[i]) for i in ids]
    return write_reports(bench, found.project, cases, plan.texts)


def _written(
    ground: Ground, plan: Design, level: Level, reports: tuple[dict[str, str], list[Shown]]
) -> Draft:
    project, behaviour, (files, shown) = ground.found.project, ground.found.behaviour, reports
    through = {name for fault in plan.faults for i in fault.reported for name in behaviour.reached[i]}
    telling = Telling(
        title=f"Mend wrong results in {ground.skill.name}",
        keyword="repair",
        words=WORDS,
        craft=REPAIR,
        functions=[
            info
            for file, module in sorted(project.modules.items())
            for info in module.functions
            if f"{file}:{info.name}" in through
        ],
        fields={"cases": counted(len(shown), "reported case")},
        quoted=examples(shown, 1 if level.distant else 3),
        background=True,
    )
    made: dict[str, list[Edit]] = {}
    for fault in plan.faults:
        made.setdefault(fault.site.file, []).append(fault.site.edit)
    added = {f"reports/{name}": text for name, text in files.items()}
    change = Change(plan.texts, added, reverse(project, made))
    groups = tuple((fault.reported, fault.hidden) for fault in plan.faults)
    truth = Truth(groups, plan.kept, behaviour.cases, behaviour.outcomes, plan.joint)
    return code_task(ground, telling, change, truth)


FAMILY = Family(
    name="repair",
    about="One to four faults from the catalogue in working code; symptoms are reported, the cause is to be found and mended.",
    offers=_offers,
    draft=_draft,
)
