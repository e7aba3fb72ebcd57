"""What tasks of all families have in common, from the facts of one spec to the files of its two sessions.

A family says what it found, in which words, and what the verifier is to hold; everything that reads the same whatever
the family is written here: fields of the phrases, title, rubric, notice, world, verifier of changed code, solution.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skill2env.authors.code.cases import Case
from skill2env.authors.code.contract import (
    Graded,
    Statement,
    app_folder,
    helpers,
    interface_of,
    shared_fields,
    solution_files,
    task_files,
    verifier_files,
)
from skill2env.authors.code.families.base import Draft, Ground
from skill2env.authors.code.faults.source import Edit
from skill2env.authors.code.instruction import Words, symptom, write_instruction
from skill2env.authors.code.report import Shown
from skill2env.authors.code.rubric import Craft, write_rubric
from skill2env.authors.code.understand import FunctionInfo, ModuleInfo
from skill2env.axes import Complexity
from skill2env.records import Metric

BACKGROUND = 'For background, this is a kind of thing that it gets to do: "{request}" What I want from you is the rest of this text.'

type Groups = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
"""(ids of shown cases, ids of hidden ones) of every part of the work."""


@dataclass(frozen=True, slots=True)
class Telling:
    """How a family tells its task."""

    title: str
    keyword: str
    """The family, as dataset users search for it."""
    words: Words
    craft: Craft
    functions: Sequence[FunctionInfo]
    """Those whose sentences the rubric quotes."""
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    quoted: Sequence[str] = ()
    """Sentences that show what is meant."""
    details: str = ""
    background: bool = False
    """Tell as well what people ask of the skill, where its own evals say so."""


def stated(ground: Ground, telling: Telling, artifact: str = "") -> Statement:
    """Instruction, metrics and rubric of a task.

    Args:
        ground: where it comes from.
        telling: the family's part.
        artifact: folder below the project that is graded; empty for the whole project.
    """
    project, spec = ground.found.project, ground.spec
    fields = {**shared_fields(ground.skill, project), **telling.fields}
    requests = project.seeds.requests if telling.background else ()
    asked = [BACKGROUND.format(request=requests[spec.seed % len(requests)])] if requests else []
    details = "\n\n".join([*asked, *filter(None, [telling.details])])
    instruction, metrics = write_instruction(
        telling.words, fields, telling.quoted, spec.axes, spec.seed, details
    )
    folder = app_folder(project)
    return Statement(
        title=telling.title,
        instruction=instruction,
        metrics=metrics,
        artifacts=(f"{folder}/{artifact}" if artifact else folder,),
        keyword=telling.keyword,
        rubric=write_rubric(ground.skill, telling.functions, telling.craft),
    )


@dataclass(frozen=True, slots=True)
class Change:
    """What a task that changes code holds and how its reference solution mends it."""

    world: Mapping[str, str]
    """Changed files of the project in the world, as they are given to the agent."""
    added: Mapping[str, str]
    """Further files of the world."""
    edits: Mapping[str, Sequence[Edit]]
    """The reference solution; offsets are bytes of the world's files."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What the verifier of changed code compares with."""

    groups: Groups
    kept: tuple[str, ...]
    cases: Mapping[str, Case]
    expected: Mapping[str, Any]
    joint: tuple[str, ...] = ()
    interface: Mapping[str, Mapping[str, Sequence[str]]] = field(
        default_factory=dict[str, Mapping[str, Sequence[str]]]
    )
    """Functions whose parameters are to change; those of all others stay."""


def code_task(ground: Ground, telling: Telling, change: Change, truth: Truth) -> Draft:
    """A task in which code is changed: the verifier runs it on recorded inputs."""
    project = ground.found.project
    told = stated(ground, telling)
    interface = interface_of(project, list(change.edits))
    for file, functions in truth.interface.items():
        interface[file] = {**interface[file], **functions}
    graded = Graded(truth.groups, truth.kept, truth.joint, truth.cases, truth.expected, interface)
    before = {file: change.world.get(file, project.files[file]) for file in change.edits}
    added = {**change.world, **change.added}
    return Draft(
        {
            **task_files(ground.spec, ground.skill, project, told, added),
            **verifier_files(project, graded, told.metrics),
        },
        solution_files(project, before, change.edits),
    )


def delivery_task(
    ground: Ground,
    told: Statement,
    added: Mapping[str, str],
    verifier: tuple[str, Sequence[str], Mapping[str, str]],
    solution: Mapping[str, str],
) -> Draft:
    """A task in which something is delivered beside the code.

    Args:
        ground: where it comes from.
        told: from `stated`.
        added: files of the world beside the project's.
        verifier: name of the template of test.sh, names of our programs, and further files below tests/ by name.
        solution: files of the solution session by path.
    """
    script, programs, files = verifier
    tests = {f"tests/{name}": text for name, text in files.items()}
    tests["tests/test.sh"] = helpers("tests", (script,))[f"tests/{script}"]
    shared = task_files(ground.spec, ground.skill, ground.found.project, told, added)
    return Draft({**shared, **helpers("tests", programs), **tests}, solution)


def metric_names(metrics: Sequence[Metric]) -> list[str]:
    """Names in order, as verifiers write them."""
    return [metric.name for metric in metrics]


def solve_script(*lines: str) -> str:
    """solve.sh that knows its own folder as ``$here``."""
    head = ["#!/bin/bash", "set -euo pipefail", 'here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"']
    return "\n".join([*head, *lines]) + "\n"


def bands(least: Mapping[str, int], have: int) -> tuple[str, ...]:
    """Bands of complexity that need at most what there is; short and moderate tasks need one."""
    always = [Complexity.SHORT, Complexity.MODERATE]
    return tuple(str(band) for band in (*always, *(b for b, count in least.items() if count <= have)))


def listed(functions: Sequence[tuple[FunctionInfo, ModuleInfo]]) -> str:
    """Functions in a sentence: ``a in x.py``, ``a in x.py and b in y.py``."""
    names = [f"`{info.name}` in `{module.file}`" for info, module in functions]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def examples(shown: Sequence[Shown], count: int) -> list[str]:
    """The first few shown cases in a sentence each."""
    return [symptom(item) for item in shown[:count]]
