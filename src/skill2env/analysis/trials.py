"""Trials of solving agents, read from Harbor's job folders: every ``result.json`` below counts, whoever ran it."""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skill2env.analysis.reading import read_bytes
from skill2env.analysis.records import Notes
from skill2env.errors import UserError
from skill2env.harbor.rewards import total

RESULT = "result.json"
_LIMIT = 32 * 1024 * 1024
_CONTROLS = ("oracle", "nop")


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One agent on one task, as far as difficulty goes."""

    task: str
    """Name as the trial states it."""
    agent: str
    model: str
    score: float | None
    """In [0,1]; None when the surroundings failed and nothing is known about the task."""
    reason: str = ""
    """Kind of the failure, if one was recorded."""
    folder: str = ""
    """Last part of the path of the task, for tasks without a name."""


def read_trials(places: Sequence[Path], notes: Notes, *, controls: bool = False) -> tuple[TrialRecord, ...]:
    """Read trials.

    Args:
        places: job folders, or folders of them.
        notes: takes what is odd.
        controls: also those of Harbor's own agents Oracle and Nop.

    Raises:
        UserError: a place does not exist, or there is no trial in it.
    """
    found: list[TrialRecord] = []
    for place in places:
        if not place.is_dir():
            raise UserError(f"{place} is no folder", hint="give a job folder of Harbor's")
        found += [trial for path in _results(place) if (trial := _read(path, place, notes)) is not None]
    if not found:
        raise UserError(
            "no trial in " + ", ".join(map(str, places)), hint="a trial is a folder with result.json"
        )
    return tuple(trial for trial in found if controls or trial.agent not in _CONTROLS)


def _results(place: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(place, followlinks=False):
        folders.sort()
        if RESULT in files:
            yield Path(folder) / RESULT


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _read(path: Path, root: Path, notes: Notes) -> TrialRecord | None:
    where = path.relative_to(root).as_posix()
    data = read_bytes(path, _LIMIT)
    try:
        tree: Any = json.loads(data or b"")
    except (ValueError, RecursionError):
        notes.add("result-unreadable", "result.json is no JSON", where)
        return None
    if not isinstance(tree, dict) or "task_name" not in tree:
        return None  # the result of a whole job
    tree = _table(tree)
    agent = _table(tree.get("agent_info"))
    error = _table(tree.get("exception_info"))
    reason = str(error.get("exception_type") or "")
    score = _score(tree, notes, where)
    if score is None and "Timeout" in reason and "Agent" in reason:
        score = 0.0  # ran out of time before anything could be graded: the agent's failure
    if score is None:
        notes.add("trial-ungraded", f"no reward ({reason or 'nothing recorded'}): not counted", where)
    task_path = str(_table(tree.get("task_id")).get("path") or "")
    return TrialRecord(
        task=str(tree["task_name"]),
        agent=str(agent.get("name") or "unknown"),
        model=str(_table(agent.get("model_info")).get("name") or ""),
        score=score,
        reason=reason,
        folder=task_path.rstrip("/").rsplit("/", 1)[-1],
    )


def _score(tree: Mapping[str, Any], notes: Notes, where: str) -> float | None:
    """The total reward, else the mean of the metrics; None when there is none that counts."""
    rewards = _table(_table(tree.get("verifier_result")).get("rewards"))
    numbers = {
        str(name): float(value)
        for name, value in rewards.items()
        if isinstance(value, int | float) and math.isfinite(value)
    }
    if not numbers:
        return None
    score = total(numbers)
    if not 0 <= score <= 1:
        notes.add("reward-out-of-range", f"a reward of {score:g} is cut to [0,1]", where)
    return min(1.0, max(0.0, score))
