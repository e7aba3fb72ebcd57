"""Files that the tasks of all families share: the world, the contract, the verifier of changed code, the solution."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skill2env.authors.code.bench import helper_text
from skill2env.authors.code.cases import Case
from skill2env.authors.code.faults.source import Edit
from skill2env.authors.code.libraries import Libraries
from skill2env.authors.code.preload import preload
from skill2env.authors.code.understand import Project
from skill2env.axes import TURNS, Complexity
from skill2env.records import Limits, Metric, Skill, TaskContract, TaskSpec, canonical_json

BASE = "debian-bookworm"
VERIFIER = ("test.sh", "grade.py", "grading.py", "child.py", "tagged_values.py", "warm.py")
SECONDS_A_TURN = 45
"""Time limit of the agent per expected tool-calling turn, thinking included."""


def app_folder(project: Project) -> str:
    """Where the project lies in the container."""
    return f"/app/{project.name}"


def shared_fields(skill: Skill, project: Project) -> dict[str, str]:
    """What the phrases of all families may name."""
    told = project.libraries.told(project.foreign)
    return {"tool": skill.name, "dir": app_folder(project), "libraries": told}


@dataclass(frozen=True, slots=True)
class Statement:
    """What a task says about itself."""

    title: str
    instruction: str
    metrics: tuple[Metric, ...]
    artifacts: tuple[str, ...]
    keyword: str
    """The family, as dataset users search for it."""
    rubric: str


def task_files(
    spec: TaskSpec, skill: Skill, project: Project, told: Statement, added: Mapping[str, str]
) -> dict[str, str]:
    """Everything of the contract session but the verifier, by path below ``task/``.

    Args:
        spec: decides the time limit.
        skill: named in the notice, with its licence.
        project: the code that the world holds.
        told: instruction, metrics, rubric.
        added: files of the world that differ from the project's or are new, by path in the project.
    """
    folder = app_folder(project)
    contract = TaskContract(
        title=told.title[:120],
        metrics=told.metrics,
        artifacts=told.artifacts,
        limits=Limits(agent_timeout_sec=_agent_seconds(spec.axes.complexity)),
        keywords=("python", told.keyword, skill.slug),
    )
    files = {
        "instruction.md": told.instruction,
        "contract.json": json.dumps(contract.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n",
        "environment/Dockerfile": _dockerfile(folder, project.libraries),
        "environment/NOTICE": _notice(skill),
        "tests/rubric.md": told.rubric,
    }
    world = {**project.files, **added}
    return {**files, **{f"environment/project/{path}": text for path, text in sorted(world.items())}}


def _agent_seconds(complexity: str) -> float:
    return float(max(900, TURNS.get(complexity, TURNS[Complexity.MODERATE])[1] * SECONDS_A_TURN))


def _dockerfile(folder: str, libraries: Libraries) -> str:
    return (
        f"FROM {BASE}\n{libraries.install}"
        f"RUN useradd --create-home --shell /bin/bash agent && install -d -o agent -g agent {folder}\n"
        f"COPY --chown=agent:agent project/ {folder}/\n"
        f"WORKDIR {folder}\n"
    )


def _notice(skill: Skill) -> str:
    origin = f" ({skill.origin})" if skill.origin else ""
    return (
        f"project/ is the code of the Agent Skill {skill.name}{origin}, licence {skill.licence.spdx or 'unknown'}.\n"
        "It was changed for this task: tests and hidden files were left out, the skill's text became README.md, material of\n"
        "the task was added, and code may have been altered on purpose. This file is not part of the image.\n"
    )


@dataclass(frozen=True, slots=True)
class Graded:
    """What the verifier of changed code compares."""

    groups: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    """(ids of shown cases, ids of hidden ones) of every part of the work."""
    kept: tuple[str, ...]
    joint: tuple[str, ...]
    cases: Mapping[str, Case]
    expected: Mapping[str, Any]
    interface: Mapping[str, Mapping[str, Sequence[str]]]
    """File -> qualified function name -> parameters that it must have."""


def verifier_files(project: Project, graded: Graded, metrics: Sequence[Metric]) -> dict[str, str]:
    """The verifier of the families in which code is changed.

    Args:
        project: names the folder that is graded.
        graded: cases with the outcomes that are right.
        metrics: shown cases, hidden cases, behaviour that must stay, interface; in this order.
    """
    groups = [{"reported": list(shown), "unreported": list(hidden)} for shown, hidden in graded.groups]
    used = _ordered(graded)
    files = {graded.cases[i].file for i in used}
    spec = {
        "project": app_folder(project),
        "metrics": [metric.name for metric in metrics],
        "groups": groups,
        "joint": list(graded.joint),
        "kept": list(graded.kept),
        "interface": {file: {name: list(p) for name, p in named.items()} for file, named in graded.interface.items()},
        "cases": [graded.cases[i].to_json() for i in used],
        "expected": {i: graded.expected[i] for i in used}, "preload": preload(project, files),
    }  # fmt: skip
    return {"tests/cases.json": canonical_json(spec) + "\n", **helpers("tests", VERIFIER)}


def _ordered(graded: Graded) -> list[str]:
    """Ids of all cases: modules and scripts that the work is about first, within each of them mixed.

    So what cannot earn anything is seen early, and no case tells what it is for by its place.
    """
    work = {i for pair in graded.groups for ids in pair for i in ids} | set(graded.joint)
    targets = {_block(graded.cases[i]) for i in work}
    return sorted({*graded.kept, *work}, key=lambda i: (_block(graded.cases[i]) not in targets, i))


def _block(case: Case) -> str:
    """Cases that run in forks of one process."""
    return case.file if case.kind == "function" else ""


def helpers(folder: str, names: Sequence[str]) -> dict[str, str]:
    """Our programs of those names, by path below ``task/``."""
    return {f"{folder}/{name}": helper_text(name) for name in names}


def interface_of(project: Project, files: Sequence[str]) -> dict[str, dict[str, Sequence[str]]]:
    """Parameters of every public module-level function of some files."""
    return {
        file: {
            info.name: info.parameters
            for info in project.modules[file].functions
            if info.public and "." not in info.name
        }
        for file in sorted(set(files))
    }


def solution_files(
    project: Project, before: Mapping[str, str], edits: Mapping[str, Sequence[Edit]]
) -> dict[str, str]:
    """Every file of a solution session that changes code, by path below ``task/``.

    Args:
        project: names the folder.
        before: files as the world holds them.
        edits: what to do to them; offsets are bytes of `before`.
    """
    changes: dict[str, object] = {}
    for file, wanted in sorted(edits.items()):
        digest = hashlib.sha256(before[file].encode()).hexdigest()
        changes[file] = {"sha256": digest, "spans": [[e.start, e.end, e.text] for e in sorted(wanted)]}
    script = (
        "#!/bin/bash\nset -euo pipefail\n"
        'here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\n'
        f'exec /usr/bin/python3 -I "$here/apply.py" {app_folder(project)}\n'
    )
    return {
        "solution/solve.sh": script,
        "solution/apply.py": helper_text("apply.py"),
        "solution/change.json": json.dumps(changes, indent=2, ensure_ascii=False) + "\n",
    }


def reverse(project: Project, made: Mapping[str, Sequence[Edit]]) -> dict[str, list[Edit]]:
    """Edits of the changed files that restore the originals byte for byte."""
    found: dict[str, list[Edit]] = {}
    for file, edits in made.items():
        source, moved = project.modules[file].source, 0
        for edit in sorted(edits):
            new = len(edit.text.encode())
            start = edit.start + moved
            found.setdefault(file, []).append(
                Edit(start, start + new, source.data[edit.start : edit.end].decode())
            )
            moved += new - (edit.end - edit.start)
    return found


def write_files(files: Mapping[str, str], target: Path) -> None:
    """Write files below `target`; scripts become executable.

    Raises:
        OSError: the disk refused.
    """
    for name, text in sorted(files.items()):
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        path.chmod(0o755 if name.endswith(".sh") else 0o644)
