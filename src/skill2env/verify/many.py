"""Many tasks at once: find them, judge them beside each other, report each as it ends."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from skill2env.errors import UserError
from skill2env.harbor.running import trial_workers
from skill2env.harbor.task import read_task
from skill2env.records import Verdict
from skill2env.store.files import check_writable, storage, write_json
from skill2env.verify.cache import Kept, VerdictCache, content_of
from skill2env.verify.exhibits import Exhibits, collect
from skill2env.verify.gate import GateContext, Level
from skill2env.verify.reading import read_file
from skill2env.verify.rules import Profile
from skill2env.verify.twins import Company
from skill2env.verify.verify import verify

_MARKS = ("task.toml", "instruction.md", "tests/test.sh", "environment/Dockerfile")
_NESTING = 4
_VERDICT_FILE = "verdict.json"


@dataclass(frozen=True, slots=True)
class Verified:
    """One task and its verdict."""

    path: Path
    verdict: Verdict
    name: str = ""
    """``org/name`` of its task.toml, else the folder's name; unique in a run."""
    profile: Profile = Profile.FOREIGN
    content: str = ""
    """Digest of the task folder; empty when it cannot be had."""
    exhibits: Exhibits = field(default_factory=Exhibits)
    """What a reader is shown of the evidence."""
    cached: bool = False
    """The verdict was given in an earlier run."""


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
    return _identity(task_dir)[1]


@dataclass(frozen=True, slots=True)
class _Judging:
    """How one task is judged by itself; see `verify_many`."""

    context: GateContext
    level: Level
    every: bool
    cache: VerdictCache | None
    keep_evidence: bool

    def judge(self, task: Path, name: str, profile: Profile, evidence: Path) -> Verified:
        """The verdict of one task by itself, from the cache where that is allowed."""
        content = content_of(task)
        key = self.cache.key(content, profile) if self.cache is not None else ""
        found = partial(Verified, task, name=name, profile=profile, content=content)
        kept = self.cache.recall(key) if self.cache is not None else None
        if kept is not None and (not self.keep_evidence or _has_evidence(evidence, key)):
            return found(kept.verdict, exhibits=kept.exhibits, cached=True)
        own = replace(self.context, evidence=evidence)
        verdict = verify(task, profile=profile, context=own, level=self.level, all_gates=self.every)
        exhibits = collect(evidence, verdict) if evidence.is_dir() else Exhibits()
        if self.cache is not None and content_of(task) == content:
            self.cache.store(key, Kept(verdict=verdict, exhibits=exhibits))
        if self.keep_evidence:
            evidence.mkdir(parents=True, exist_ok=True)
            write_json(evidence / _VERDICT_FILE, {"key": key, "verdict": verdict.model_dump(mode="json")})
        return found(verdict, exhibits=exhibits)


def verify_many(
    tasks: Sequence[Path],
    *,
    profile: Profile | None,
    context: GateContext,
    workers: int = 2,
    level: Level = Level.STANDARD,
    all_gates: bool = False,
    twins: bool = True,
    cache: VerdictCache | None = None,
    keep_evidence: bool = False,
    on_done: Callable[[Verified], None] | None = None,
) -> list[Verified]:
    """Judge tasks side by side.

    Args:
        tasks: task directories, see `find_tasks`; of twins the first one stays.
        profile: how strictly findings are read; None asks each task who made it, see `profile_of`.
        context: its evidence folder gets one folder a task, named after it.
        workers: tasks at once; the verdicts do not depend on it.
        level: see `verify`.
        all_gates: see `verify`.
        twins: look for near-duplicates among the tasks, except at level `paper`.
        cache: verdicts of earlier runs, made for the same context, level and `all_gates`.
        keep_evidence: the evidence is wanted, so that no verdict is taken from the cache without it.
        on_done: called from the calling thread as each task ends, in that order. A task that may be another's twin
            ends after that one.

    Returns:
        One entry a task, in the order given. A bug in a gate is raised after the other tasks were stopped.
    """
    names = _evidence_names(tasks)
    judging = _Judging(context, level, all_gates, cache, keep_evidence)
    known = _identities(tasks, names)
    settled = _Settled(tasks, alone=not twins or level is Level.PAPER, every=all_gates)
    with trial_workers(workers, "verify") as pool:
        futures: list[Future[Verified]] = [
            pool.submit(
                judging.judge, task, known[task][0], profile or known[task][1], context.evidence / names[task]
            )
            for task in tasks
        ]
        for future in as_completed(futures):
            for verified in settled.add(future.result()):
                if on_done is not None:
                    on_done(verified)
    return [settled.results[task] for task in tasks]


class _Settled:
    """Verdicts with what the company of a task adds to them, each as soon as it can be known."""

    def __init__(self, tasks: Sequence[Path], *, alone: bool, every: bool) -> None:
        self._company = Company([] if alone else tasks)
        self._alone = alone
        self._every = every
        self._waiting: dict[Path, Verified] = {}
        self.results: dict[Path, Verified] = {}

    def add(self, verified: Verified) -> list[Verified]:
        """Take the verdict of one task; returns those that are final now."""
        if self._alone:
            self.results[verified.path] = verified
            return [verified]
        self._waiting[verified.path] = verified
        done: list[Verified] = []
        while ready := next((t for t in self._waiting if not self._company.waits_for(t)), None):
            item = self._waiting.pop(ready)
            verdict = self._company.settle(ready, item.verdict, item.profile, every=self._every)
            done.append(replace(item, verdict=verdict))
            self.results[ready] = done[-1]
        return done


def _identities(tasks: Sequence[Path], folders: Mapping[Path, str]) -> dict[Path, tuple[str, Profile]]:
    """What to call each task, and who made it; where several have one name, the folder tells them apart."""
    known = {task: _identity(task) for task in tasks}
    counts = Counter(name for name, _ in known.values())
    return {
        task: (name if counts[name] == 1 else f"{name} ({folders[task]})", profile)
        for task, (name, profile) in known.items()
    }


def _identity(task: Path) -> tuple[str, Profile]:
    try:
        facts = read_task(task)
    except ValueError:
        return task.name, Profile.FOREIGN
    return facts.name or task.name, Profile.OURS if facts.metadata else Profile.FOREIGN


def _has_evidence(evidence: Path, key: str) -> bool:
    data = read_file(evidence / _VERDICT_FILE)
    try:
        return bool(data) and json.loads(data)["key"] == key
    except (ValueError, KeyError, TypeError):
        return False


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
    """Make the evidence folder, and find out before the run whether logs can be written and read there.

    Args:
        folder: where logs go, one folder a task.
        tasks: resolved paths of the tasks, which the logs must not be mixed with.

    Raises:
        UserError: it is, holds or lies in a task, or a file stands where a task's logs go.
        InfraError: it, or what an earlier run left in it, cannot be made, listed or written; boundary ``storage``.
    """
    place = folder.resolve()
    for task in tasks:
        if place in (task, task.parent) or task in place.parents:
            raise UserError(
                f"the evidence would be written into the task {task}",
                hint="give a folder of its own with --evidence",
            )
    check_writable(folder)
    with storage("reading the evidence folder", folder):
        there = {entry.name: entry.is_dir() for entry in os.scandir(folder)}
    for name in sorted(set(_evidence_names(tasks).values()) & set(there)):
        own = folder / name
        if not there[name]:
            raise UserError(
                f"a file stands where the logs of a task go: {own}",
                hint="give another folder with --evidence",
            )
        check_writable(own)
        with storage("reading the evidence of an earlier run", own):
            os.scandir(own).close()
    return folder.resolve()
