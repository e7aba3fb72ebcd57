"""Many tasks at once: find them, judge them beside each other, report each as it ends."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.harbor.task import read_task
from skill2env.harbor.trial import cancel_running
from skill2env.records import Verdict
from skill2env.verify.gate import GateContext, Level
from skill2env.verify.rules import Profile
from skill2env.verify.verify import verify

_MARKS = ("task.toml", "instruction.md", "tests/test.sh", "environment/Dockerfile")
_NESTING = 4


@dataclass(frozen=True, slots=True)
class Verified:
    """One task and its verdict."""

    path: Path
    verdict: Verdict


def find_tasks(paths: Sequence[Path]) -> list[Path]:
    """Task directories among and below `paths`, sorted, each once.

    A folder that holds any main file of a task counts as one, so that a task without task.toml is rejected and not
    overlooked. Hidden folders are left out.

    Raises:
        UserError: a path does not exist, a folder cannot be read, or there is no task at all.
    """
    found: set[Path] = set()
    for path in paths:
        if not path.is_dir():
            what = "is no folder" if path.exists() else "does not exist"
            raise UserError(f"{path} {what}", hint="give a task directory or a folder of them")
        try:
            below = list(_below(path, _NESTING))
        except OSError as error:
            raise UserError(
                f"cannot read {error.filename}: {error.strerror}", hint="give folders that you may read"
            ) from None
        if not below:
            raise UserError(f"no task in {path}", hint="a task directory holds task.toml and instruction.md")
        found.update(item.resolve() for item in below)
    return sorted(found)


def _below(folder: Path, depth: int) -> Iterator[Path]:
    if any((folder / mark).exists() for mark in _MARKS):
        yield folder
    elif depth:
        for entry in sorted(os.scandir(folder), key=lambda item: item.name):
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                yield from _below(Path(entry.path), depth - 1)


def profile_of(task_dir: Path) -> Profile:
    """`ours` for a task whose task.toml carries our provenance, else `foreign`."""
    try:
        return Profile.OURS if read_task(task_dir).metadata else Profile.FOREIGN
    except ValueError:
        return Profile.FOREIGN


def verify_many(
    tasks: Sequence[Path],
    *,
    profile: Profile | None,
    context: GateContext,
    workers: int = 2,
    level: Level = Level.STANDARD,
    all_gates: bool = False,
    on_done: Callable[[Verified], None] | None = None,
) -> list[Verified]:
    """Judge tasks side by side.

    Args:
        tasks: task directories, see `find_tasks`.
        profile: how strictly findings are read; None asks each task who made it, see `profile_of`.
        context: its evidence folder gets one folder a task, named after it.
        workers: tasks at once; the verdicts do not depend on it.
        level: see `verify`.
        all_gates: see `verify`.
        on_done: called from the calling thread as each task ends, in that order.

    Returns:
        One entry a task, in the order given. A bug in a gate is raised after the other tasks were stopped.
    """
    names = _evidence_names(tasks)

    def one(task: Path) -> Verified:
        own = replace(context, evidence=context.evidence / names[task])
        return Verified(
            task,
            verify(task, profile=profile or profile_of(task), context=own, level=level, all_gates=all_gates),
        )

    results: dict[Path, Verified] = {}
    pool = ThreadPoolExecutor(max_workers=max(1, workers), thread_name_prefix="verify")
    try:
        futures: list[Future[Verified]] = [pool.submit(one, task) for task in tasks]
        for future in as_completed(futures):
            verified = future.result()
            results[verified.path] = verified
            if on_done is not None:
                on_done(verified)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        cancel_running()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return [results[task] for task in tasks]


def _evidence_names(tasks: Sequence[Path]) -> dict[Path, str]:
    """Folder names, made unique by a number where two tasks have the same name."""
    names: dict[Path, str] = {}
    taken: set[str] = set()
    for task in tasks:
        name, number = task.name, 1
        while name in taken:
            number += 1
            name = f"{task.name}-{number}"
        taken.add(name)
        names[task] = name
    return names


def require_evidence_folder(folder: Path, tasks: Sequence[Path] = ()) -> Path:
    """Make the evidence folder.

    Args:
        folder: where logs go, one folder a task.
        tasks: resolved paths of the tasks, which the logs must not be mixed with.

    Raises:
        UserError: it is, holds or lies in a task.
        InfraError: it cannot be made or written; boundary ``storage``.
    """
    place = folder.resolve()
    for task in tasks:
        if place in (task, task.parent) or task in place.parents:
            raise UserError(
                f"the evidence would be written into the task {task}",
                hint="give a folder of its own with --evidence",
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfraError(
            Boundary.STORAGE,
            f"the evidence folder cannot be made: {folder}: {error.strerror}",
            hint="choose another one with --evidence",
            transient=False,
        ) from error
    return folder.resolve()
