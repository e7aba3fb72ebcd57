"""Family `checks`: write tests that pass on the code as it is and fail when a mistake slips into it.

A few mistakes are described, the others are hidden. The verifier runs the delivered tests on private copies of the project,
right ones and wrong ones mixed; a check that looks at the text of the code sees byte code only.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# The values here are tagged JSON of any shape; `cases.well_formed` checks them where they come in.

import keyword
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skill2env.authors.code.assess import Viable, compare
from skill2env.authors.code.bench import Bench
from skill2env.authors.code.contract import app_folder
from skill2env.authors.code.evidence import can_be_shown, is_public
from skill2env.authors.code.families.assertions import is_plain, test_module
from skill2env.authors.code.families.base import Draft, Family, Ground, NoTask, Offer
from skill2env.authors.code.families.checks_words import CRAFT, WORDS
from skill2env.authors.code.families.task import Telling, delivery_task, metric_names, solve_script, stated
from skill2env.authors.code.faults.source import Edit
from skill2env.authors.code.instruction import symptom
from skill2env.authors.code.phrases import counted
from skill2env.authors.code.preload import preload
from skill2env.authors.code.report import Shown, write_reports
from skill2env.authors.code.rubric import grounding
from skill2env.authors.code.study import Study
from skill2env.authors.code.understand import FunctionInfo
from skill2env.axes import Archetype, Complexity, VerifierPattern
from skill2env.records import Skill, Workflow, canonical_json, digest_of

CHECKS = "checks"
"""Folder in the project that the tests are delivered in."""
COUNTS: dict[str, tuple[int, int]] = {
    Complexity.SHORT: (2, 4),
    Complexity.MODERATE: (2, 6),
    Complexity.LONG: (3, 8),
    Complexity.DEEP: (3, 12),
}
"""(described, hidden) mistakes of a band."""
SHARE = 0.75
"""Share of the hidden mistakes that earns the whole metric: nobody can think of all."""
RIGHT = 4
"""Copies of the original among the versions."""
MAX_PROJECT_CHARS = 400_000
MAX_OFFERS = 3
KILLERS = 4
"""Calls by which the reference solution tells a mistake."""
VERIFIER = ("grading.py", "grade_checks.py", "starter.py", "warm.py")


@dataclass(frozen=True, slots=True)
class Module:
    """One file of the project and the mistakes that are known to matter there."""

    number: int
    file: str
    viable: tuple[Viable, ...]
    functions: tuple[FunctionInfo, ...]
    """Those that a mistake sits in."""


@dataclass(frozen=True, slots=True)
class Mistakes:
    """The wrong versions of one task."""

    known: tuple[Viable, ...]
    hidden: tuple[Viable, ...]


def _offers(skill: Skill, found: Study) -> list[Offer]:
    project = found.project
    stems = [path.rpartition("/")[2] for path in project.modules]
    if sum(len(text) for text in project.files.values()) > MAX_PROJECT_CHARS or len(set(stems)) < len(stems):
        return []
    if "__init__.py" in stems:
        return []  # its modules may only be imported as parts of their package
    if any(stem.removesuffix(".py") in sys.stdlib_module_names for stem in stems):
        return []  # checks would get the module of Python itself
    return [
        Offer(_workflow(skill, found, module), module)
        for module in modules(found)
        if _importable(module.file)
    ]


def _importable(file: str) -> bool:
    """Whether ``import NAME`` in delivered tests means this file."""
    stem = file.rpartition("/")[2].removesuffix(".py")
    return stem.isidentifier() and not keyword.iskeyword(stem) and stem not in sys.stdlib_module_names


def modules(found: Study) -> list[Module]:
    """Files with enough places for mistakes, those with most first."""
    by_file: dict[str, list[Viable]] = {}
    for item in found.viable:
        if not _killers(found, item):
            continue
        by_file.setdefault(item.site.file, []).append(item)
    ranked = sorted(by_file.items(), key=lambda pair: (-len(_distinct(pair[1])), pair[0]))
    able = [(file, viable) for file, viable in ranked if _bands(viable)][:MAX_OFFERS]
    return [
        Module(number, file, tuple(viable), _touched(found, file, viable))
        for number, (file, viable) in enumerate(able, 1)
    ]


def _touched(found: Study, file: str, viable: Sequence[Viable]) -> tuple[FunctionInfo, ...]:
    names = {item.site.function for item in viable}
    return tuple(info for info in found.project.modules[file].functions if info.name in names)


def _bands(viable: Sequence[Viable]) -> list[str]:
    places = len(_distinct(viable))
    return [str(band) for band, counts in COUNTS.items() if places >= sum(counts)]


def _distinct(viable: Sequence[Viable]) -> list[Viable]:
    """Mistakes at different places: two ways to break one line are one mistake to a reader."""
    by_line: dict[tuple[str, int], Viable] = {}
    for item in sorted(viable, key=lambda v: digest_of(v.site.key)):
        by_line.setdefault((item.site.file, item.site.line), item)
    return list(by_line.values())


def _workflow(skill: Skill, found: Study, module: Module) -> Workflow:
    names = [info.name for info in module.functions][:6]
    return Workflow(
        name=f"write-tests-{module.number}",
        summary=f"Write tests for {', '.join(names) or module.file} of {skill.name} that notice mistakes before users do.",
        scenario=f"The code of {skill.name} works and has no tests. A few past mistakes are remembered; the next ones should be caught.",
        initial_world=f"The working project in /app/{found.project.name} without tests; README.md says what it does.",
        planted_problem=f"{len(_distinct(module.viable))} places of the code where a small mistake would change results without an error.",
        difficulty_source="Tests must pin exact behaviour at limits and odd inputs, and must not fail on a rewritten but equal version.",
        solution_sketch="Call each function near its limits, work out what is right from README.md and the code, and assert exact results.",
        verifier_strategy="The tests run on private right and wrong versions of the project, mixed; right ones must pass, wrong ones must fail.",
        grounding=grounding(skill, module.functions),
        suitable={
            "archetype": (Archetype.HARDEN.value,),
            "verifier_pattern": (VerifierPattern.ADVERSARIAL.value,),
            "complexity": tuple(_bands(module.viable)),
        },
    )


def _draft(bench: Bench, ground: Ground, offer: Offer) -> Draft:
    module: Module = offer.material
    found = ground.found
    described, hidden = COUNTS.get(ground.spec.axes.complexity, COUNTS[Complexity.SHORT])
    pool = [item for item in _distinct(module.viable) if _killers(found, item)]
    random.Random(ground.spec.seed).shuffle(pool)
    behaviour = found.behaviour
    tellable = [item for item in pool if _example(found, item) is not None]
    known = tuple(tellable[:described])
    rest = tuple(item for item in pool if item not in known)[:hidden]
    if len(known) < described or len(rest) < hidden:
        raise NoTask("too few mistakes can be described in a sentence")
    mistakes = Mistakes(known, rest)
    ids = sorted({i for item in (*known, *rest) for i in _killers(found, item)})
    texts = {
        item.site.key: found.project.modules[item.site.file].source.apply(item.site.edit)
        for item in (*known, *rest)
    }
    trees: list[dict[str, Any]] = [
        {"id": item.site.key, "texts": {item.site.file: texts[item.site.key]}, "cases": ids}
        for item in (*known, *rest)
    ]
    wrong = compare(bench, found.project, behaviour, trees, full=True)
    if not all(wrong.get(item.site.key) for item in (*known, *rest)):
        raise NoTask("a mistake cannot be told by the recorded calls")
    quoted = [_told(bench, found, item, wrong[item.site.key], texts[item.site.key]) for item in known]
    return _written(ground, module, mistakes, quoted, ids)


def _killers(found: Study, item: Viable) -> list[str]:
    """A few calls that tell a mistake and can be written down as plain assertions."""
    behaviour = found.behaviour
    fit = [i for i in item.broken if is_plain(behaviour.cases[i], behaviour.outcomes[i])]
    return sorted(fit, key=digest_of)[:KILLERS]


def _example(found: Study, item: Viable) -> str | None:
    """The call that a mistake is described by: public, short, with a value on both sides."""
    behaviour = found.behaviour
    fit = [
        i
        for i in _killers(found, item)
        if is_public(behaviour, i)
        and can_be_shown(behaviour.cases[i])
        and "raised" not in behaviour.outcomes[i]
    ]
    return min(
        fit,
        key=lambda i: (len(str(behaviour.cases[i].args)) + len(str(behaviour.outcomes[i])), i),
        default=None,
    )


def _told(bench: Bench, found: Study, item: Viable, wrong: dict[str, Any], text: str) -> str:
    i = _example(found, item)
    if i is None or i not in wrong:
        raise NoTask("a mistake cannot be told by the recorded calls")
    behaviour = found.behaviour
    cases = [(behaviour.cases[i], behaviour.outcomes[i], wrong[i])]
    _, shown = write_reports(bench, found.project, cases, {item.site.file: text}, folder="reports")
    return _sentence(shown[0])


def _sentence(shown: Shown) -> str:
    """A past mistake in a sentence; inputs that do not fit into one are left out."""
    text = symptom(shown)
    if shown.has_input or "expected.txt" in text or "run.py" in text:
        now, right = shown.difference()
        return (
            f"once, `{shown.call[:80]}` on some input gave the line `{now[:100]}` instead of `{right[:100]}`."
        )
    return "once, " + text.replace(" gives ", " gave ").replace(" is right.", " was right.").replace(
        " says ", " said "
    )


def _written(
    ground: Ground, module: Module, mistakes: Mistakes, quoted: Sequence[str], ids: Sequence[str]
) -> Draft:
    project, folder = ground.found.project, app_folder(ground.found.project)
    needed = max(1, round(SHARE * len(mistakes.hidden)))
    telling = Telling(
        title=f"Write tests for {ground.skill.name} that notice mistakes",
        keyword="author-tests",
        words=WORDS,
        craft=CRAFT,
        functions=module.functions,
        fields={
            "functions": _functions(module), "needed": str(needed),
            "mistakes": counted(len(mistakes.hidden), "further mistake"),
        },
        quoted=quoted,
    )  # fmt: skip
    told = stated(ground, telling, CHECKS)
    total = RIGHT + len(mistakes.known) + len(mistakes.hidden)
    versions = {
        "checks": CHECKS, "delivered": f"{folder}/{CHECKS}", "name": project.name, "files": dict(project.files),
        "paths": sorted({path.rpartition("/")[0] or "." for path in project.modules}),
        "metrics": metric_names(told.metrics), "needed": needed, "preload": preload(project, project.modules),
        "known": [_spans(item) for item in mistakes.known], "hidden": [_spans(item) for item in mistakes.hidden],
        "order": sorted(range(total), key=lambda n: digest_of([ground.spec.seed, n])),
    }  # fmt: skip
    files = {"versions.json": canonical_json(versions) + "\n"}
    return delivery_task(ground, told, {}, ("test_checks.sh", VERIFIER, files), _solution(ground.found, ids))


def _functions(module: Module) -> str:
    public = [info.name for info in module.functions if info.public]
    named = ", ".join(f"`{name}`" for name in public[:6])
    return f"{named} in `{module.file}`" if named else f"`{module.file}`"


def _spans(item: Viable) -> dict[str, list[list[Any]]]:
    edit: Edit = item.site.edit
    return {item.site.file: [[edit.start, edit.end, edit.text]]}


def _solution(found: Study, ids: Sequence[str]) -> dict[str, str]:
    folder = app_folder(found.project)
    target = f"{folder}/{CHECKS}"
    script = solve_script(f"mkdir -p {target}", f'cp "$here"/test_recorded.py {target}/')
    return {"solution/solve.sh": script, "solution/test_recorded.py": test_module(found, ids)}


FAMILY = Family(
    name="author-tests",
    about="Tests are written that pass on right versions of the code and fail on wrong ones, most of which nobody described.",
    offers=_offers,
    draft=_draft,
)
