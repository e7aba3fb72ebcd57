"""What a judge is asked about: the rollouts of a folder, or one trajectory and its task."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from skill2env.errors import UserError
from skill2env.harbor.outcome import read_head
from skill2env.judge.asking import render_trajectory
from skill2env.judge.records import Case
from skill2env.rollout.folder import TASKS
from skill2env.rollout.records import (
    DIFFERENCE_FILE,
    INSTRUCTION_FILE,
    RUBRIC_FILE,
    TRAJECTORY_FILE,
    Rollout,
)
from skill2env.rollout.trajectory import read_trajectory
from skill2env.sandbox.difference import Change, ChangedPath, Difference

_SIGNS = {Change.ADDED: "+", Change.CHANGED: "~", Change.REMOVED: "-"}


def cases_of(folder: Path, rollouts: Sequence[Rollout]) -> tuple[list[Case], list[str]]:
    """Cases of the graded rollouts of a folder, and a sentence for each that cannot be judged.

    Rollouts without a reward are left out in silence: there is nothing to add a score to.
    """
    cases: list[Case] = []
    left_out: list[str] = []
    for item in rollouts:
        if item.outcome is None:
            continue
        task = folder / TASKS / Path(item.place).parent.parent.name  # trials/TASK/GROUP/ATTEMPT
        try:
            cases.append(
                Case(
                    id=item.id,
                    group=item.group,
                    step=item.step,
                    instruction=_text(task / INSTRUCTION_FILE, "instruction"),
                    rubric=_text(task / RUBRIC_FILE, "rubric"),
                    trajectory=render_trajectory(read_trajectory(folder / item.place / TRAJECTORY_FILE)),
                    difference=render_difference(folder / item.place / DIFFERENCE_FILE),
                )
            )
        except UserError as error:
            left_out.append(f"{item.task} {item.attempt} is not judged: {error.message}")
    return cases, left_out


def case_of(trajectory: Path, task: Path) -> Case:
    """The case of one trajectory file of a task directory.

    Raises:
        UserError: the trajectory, the instruction or the rubric is missing.
    """
    return Case(
        id=trajectory.parent.name or trajectory.stem,
        instruction=_text(task / "instruction.md", "instruction"),
        rubric=_text(task / "tests" / "rubric.md", "rubric"),
        trajectory=render_trajectory(read_trajectory(trajectory)),
        difference=render_difference(trajectory.parent / DIFFERENCE_FILE),
    )


def render_difference(file: Path) -> str:
    """A record of changed files as text; empty when there is none that can be read."""
    data = read_head(file, 16 * 2**20)
    try:
        found = Difference.model_validate_json(data or b"")
    except ValidationError:
        return ""
    lines = [_line(entry) for entry in found.entries] or ["(nothing was changed)"]
    if found.left_out:
        lines.append(f"({found.left_out} more paths are not listed)")
    if found.unread:
        lines.append(f"({found.unread} files or folders could not be read)")
    return "\n".join(lines)


def _line(entry: ChangedPath) -> str:
    sizes = (
        f"{entry.size} bytes" if entry.size_before is None else f"{entry.size_before} -> {entry.size} bytes"
    )
    what = (
        f" -> {entry.target}"
        if entry.target
        else f" ({sizes})"
        if entry.kind in {"file", ""}
        else f" ({entry.kind})"
    )
    head = f"{_SIGNS[entry.change]} {entry.path}{what}"
    return f"{head}\n{entry.text}" if entry.text else head


def _text(file: Path, what: str) -> str:
    data = read_head(file)
    if not data or not data.strip():
        raise UserError(f"the task has no {what}: {file.name} is missing or empty")
    return data.decode("utf-8", errors="replace")
