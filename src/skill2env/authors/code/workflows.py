"""From viable faults to workflows: one a group of neighbouring functions, each with room for several tasks."""

from collections.abc import Sequence
from dataclasses import dataclass

from skill2env.authors.code.assess import Viable
from skill2env.authors.code.rubric import grounding
from skill2env.authors.code.study import Study
from skill2env.authors.code.understand import FunctionInfo
from skill2env.axes import Archetype, Complexity, VerifierPattern
from skill2env.records import Skill, Workflow

MAX_GROUPS = 8
FAULTS_A_GROUP = 4
"""Viable faults that a workflow should have to choose from."""


@dataclass(frozen=True, slots=True)
class Group:
    """Functions that one workflow is about."""

    name: str
    """Name of its workflow."""
    functions: tuple[tuple[str, str], ...]
    """(file, outer function) pairs; an empty function stands for a module's constants."""
    viable: tuple[Viable, ...]


def groups(found: Study) -> list[Group]:
    """All groups of a skill, those with most viable faults first.

    Groups are neighbours in the source with about equal numbers of faults. How many there are depends on the skill
    alone, so that a workflow means the same whatever number was asked for.
    """
    by_function: dict[tuple[str, int, str], list[Viable]] = {}
    for item in found.viable:
        name = item.site.function.split(".")[0]
        line = min((v.site.line for v in found.viable if v.site.function.split(".")[0] == name), default=0)
        by_function.setdefault((item.site.file, line, name), []).append(item)
    ordered = sorted(by_function.items(), key=lambda pair: pair[0])
    parts = min(MAX_GROUPS, max(1, len(found.viable) // FAULTS_A_GROUP), len(ordered))
    per_part = -(-len(found.viable) // parts)
    result: list[list[tuple[tuple[str, int, str], list[Viable]]]] = [[]]
    for position, entry in enumerate(ordered):
        have = sum(len(items) for _, items in result[-1])
        left, open_parts = len(ordered) - position, parts - len(result)
        if result[-1] and open_parts > 0 and (have >= per_part or left <= open_parts):
            result.append([])
        result[-1].append(entry)
    return sorted(_named(result), key=lambda group: (-len(group.viable), group.name))


def _named(parts: Sequence[Sequence[tuple[tuple[str, int, str], list[Viable]]]]) -> list[Group]:
    """Names say nothing about the place of the fault: a task's name shows them."""
    return [
        Group(
            f"wrong-results-{number}",
            tuple((key[0], key[2]) for key, _ in part),
            tuple(item for _, items in part for item in items),
        )
        for number, part in enumerate(parts, 1)
    ]


def infos(found: Study, group: Group) -> list[FunctionInfo]:
    """What is known about the group's functions."""
    return [
        info
        for file, name in group.functions
        for info in found.project.modules[file].functions
        if info.name == name or info.name.startswith(f"{name}.")
    ]


def complexities(group: Group) -> tuple[str, ...]:
    """Bands that the group has enough independent faults for."""
    apart = len({(v.site.file, v.site.function) for v in group.viable})
    bands = [Complexity.SHORT, Complexity.MODERATE]
    bands += [Complexity.LONG] if apart >= 2 else []
    bands += [Complexity.DEEP] if apart >= 5 else []
    return tuple(band.value for band in bands)


def workflow(skill: Skill, found: Study, group: Group) -> Workflow:
    """The group as a workflow."""
    known = infos(found, group)
    names = [f"{name or 'constants'} in {file}" for file, name in group.functions][:6]
    kinds = sorted({v.site.kind.value.replace("_", " ") for v in group.viable})
    doc = next((info.doc.split("\n\n")[0] for info in known if info.doc), "")
    touched = {i for v in group.viable for i in v.broken}
    return Workflow(
        name=group.name,
        summary=f"Find and mend wrong results of {skill.name} that come out of {', '.join(names)}.",
        scenario=(
            f"Somebody who depends on {skill.name} noticed that some results changed after an edit. "
            f"They hand over the project with a few reported cases. {' '.join(doc.split())}"
        ).strip(),
        initial_world=(
            f"The project in /app/{found.project.name}: its code, README.md, sample data and a reports folder with the reported "
            "cases, each with a program that shows it and the right output. No tests."
        ),
        planted_problem=f"One to four small faults ({', '.join(kinds)}) in {', '.join(names)}; the code still runs.",
        difficulty_source=(
            "Results are wrong without an error, away from where they are computed, and most affected inputs are not among the reports."
        ),
        solution_sketch="Trace a reported case to the value that is first wrong, compare with the documented rule, mend that place.",
        verifier_strategy=(
            f"Recorded outcomes of the original on {len(touched)} or more affected inputs, most of them held out, and on inputs that must "
            "not change; the delivered code runs in a child process that never sees the answers."
        ),
        grounding=grounding(skill, known),
        suitable={
            "archetype": (Archetype.REPAIR.value,),
            "verifier_pattern": (VerifierPattern.BEHAVIOURAL.value,),
            "complexity": complexities(group),
        },
    )
