"""Write the files of a task: the contract session's part, and the solution session's."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from skill2env.authors.code.behaviour import Behaviour
from skill2env.authors.code.bench import helper_text
from skill2env.authors.code.design import Design, Level
from skill2env.authors.code.instruction import write_instruction
from skill2env.authors.code.report import Shown
from skill2env.authors.code.rubric import write_rubric
from skill2env.authors.code.understand import Project
from skill2env.axes import TURNS, Complexity
from skill2env.records import Limits, Skill, TaskContract, TaskSpec, canonical_json

BASE = "debian-bookworm"
VERIFIER = ("test.sh", "grade.py", "child.py", "tagged_values.py")
SECONDS_A_TURN = 45
"""Time limit of the agent per expected tool-calling turn, thinking included."""


def app_folder(project: Project) -> str:
    """Where the project lies in the container."""
    return f"/app/{project.name}"


def contract_files(
    spec: TaskSpec,
    skill: Skill,
    project: Project,
    behaviour: Behaviour,
    plan: Design,
    reports: tuple[Mapping[str, str], Sequence[Shown]],
    level: Level,
) -> dict[str, str]:
    """Every file of the contract session, by path below ``task/``."""
    folder, (report_files, shown) = app_folder(project), reports
    instruction, metrics = write_instruction(skill.name, folder, shown, spec.axes, level, spec.seed)
    through = {name for fault in plan.faults for i in fault.reported for name in behaviour.reached[i]}
    functions = [
        info
        for file, module in sorted(project.modules.items())
        for info in module.functions
        if f"{file}:{info.name}" in through
    ]
    contract = TaskContract(
        title=f"Mend wrong results in {skill.name}"[:120],
        metrics=metrics,
        artifacts=(folder,),
        limits=Limits(agent_timeout_sec=_agent_seconds(spec.axes.complexity)),
        keywords=("python", "repair", skill.slug),
    )
    files = {
        "instruction.md": instruction,
        "contract.json": json.dumps(contract.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n",
        "environment/Dockerfile": _dockerfile(folder),
        "environment/NOTICE": _notice(skill),
        "tests/rubric.md": write_rubric(skill, functions, len(plan.faults)),
        "tests/cases.json": _cases(folder, behaviour, plan),
    }
    files.update({f"tests/{name}": helper_text(name) for name in VERIFIER})
    world = {
        **project.files,
        **plan.texts,
        **{f"reports/{name}": text for name, text in report_files.items()},
    }
    files.update({f"environment/project/{path}": text for path, text in sorted(world.items())})
    return files


def _agent_seconds(complexity: str) -> float:
    return float(max(900, TURNS.get(complexity, TURNS[Complexity.MODERATE])[1] * SECONDS_A_TURN))


def _dockerfile(folder: str) -> str:
    return (
        f"FROM {BASE}\n"
        f"RUN useradd --create-home --shell /bin/bash agent && install -d -o agent -g agent {folder}\n"
        f"COPY --chown=agent:agent project/ {folder}/\n"
        f"WORKDIR {folder}\n"
    )


def _notice(skill: Skill) -> str:
    origin = f" ({skill.origin})" if skill.origin else ""
    return (
        f"project/ is the code of the Agent Skill {skill.name}{origin}, licence {skill.licence.spdx or 'unknown'}.\n"
        "It was changed for this task: tests and hidden files were left out, the skill's text became README.md, reports/\n"
        "was added, and behaviour was altered on purpose. This file is not part of the image.\n"
    )


def _cases(folder: str, behaviour: Behaviour, plan: Design) -> str:
    groups = [{"reported": list(fault.reported), "unreported": list(fault.hidden)} for fault in plan.faults]
    used = sorted({*plan.kept, *(i for group in groups for ids in group.values() for i in ids)})
    return (
        canonical_json(
            {
                "project": folder,
                "groups": groups,
                "kept": list(plan.kept),
                "cases": [behaviour.cases[i].to_json() for i in used],
                "expected": {i: behaviour.outcomes[i] for i in used},
            }
        )
        + "\n"
    )


def solution_files(project: Project, plan: Design) -> dict[str, str]:
    """Every file of the solution session, by path below ``task/``: the spans that turn the broken files back."""
    changes: dict[str, object] = {}
    for file, text in sorted(plan.texts.items()):
        spans: list[tuple[int, int, str]] = []
        source = project.modules[file].source
        moved = 0
        for edit in sorted(fault.site.edit for fault in plan.faults if fault.site.file == file):
            new = len(edit.text.encode())
            spans.append(
                (edit.start + moved, edit.start + moved + new, source.data[edit.start : edit.end].decode())
            )
            moved += new - (edit.end - edit.start)
        changes[file] = {"sha256": hashlib.sha256(text.encode()).hexdigest(), "spans": spans}
    folder = app_folder(project)
    script = (
        "#!/bin/bash\nset -euo pipefail\n"
        'here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\n'
        f'exec /usr/bin/python3 -I "$here/apply.py" {folder}\n'
    )
    return {
        "solution/solve.sh": script,
        "solution/apply.py": helper_text("apply.py"),
        "solution/change.json": json.dumps(changes, indent=2, ensure_ascii=False) + "\n",
    }


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
