"""A folder of rollouts: where everything lies, and reading it again.

    rollouts.json                             who acted last, and on what
    tasks/TASK/instruction.md, rubric.md      what a judge needs to know of each task
    trials/TASK/GROUP/ATTEMPT/rollout.json    one rollout; trajectory, difference and tokens beside it

Covers: kill -9 (a rollout is there whole or not at all). Does not cover: two runs that write one folder at once, which
a lock forbids.
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import ValidationError

from skill2env.errors import UserError
from skill2env.rollout.records import RECORD_FILE, Rollout

INDEX_FILE = "rollouts.json"
TASKS, TRIALS = "tasks", "trials"
READ_LIMIT = 256 * 2**20
_LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Hold the folder against other runs.

    Raises:
        UserError: another run works in it.
    """
    lock = FileLock(folder / _LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UserError(
            f"another run works in {folder}", hint="wait for it, or give another folder with --out"
        ) from None
    try:
        yield
    finally:
        lock.release()


def read_rollouts(folder: Path) -> list[Rollout]:
    """All rollouts of a folder, sorted by task, group and attempt.

    Raises:
        UserError: it holds none, or a record is damaged.
    """
    trials = folder / TRIALS
    found = trials.glob(f"*/*/*/{RECORD_FILE}") if trials.is_dir() else iter(())
    files = sorted(file for file in found if not file.parent.name.startswith("."))  # others are unfinished
    if not files:
        raise UserError(f"{folder} holds no rollouts", hint="skill2env rollout run DATASET --out DIR")
    return sorted(map(read_record, files), key=lambda item: (item.task, item.group, item.attempt))


def read_record(file: Path) -> Rollout:
    """One record.

    Raises:
        UserError: it cannot be read, or is none.
    """
    try:
        return Rollout.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise UserError(
            f"the record {file} cannot be read: {str(error)[:200]}",
            hint="remove its folder and run the rollouts again",
        ) from error


def read_json(file: Path) -> Any:
    """What a file beside a record holds; None when there is no such file, or it is damaged."""
    try:
        if file.is_symlink() or file.stat().st_size > READ_LIMIT:
            return None
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
