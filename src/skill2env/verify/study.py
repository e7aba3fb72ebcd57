"""What the reference solution reads and leaves, learned from one trial, for every probe that imitates or spoils it."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from skill2env.harbor.studying import STUDY_AGENT, StudiedFile, read_studied
from skill2env.sandbox.conditions import NotApplicable
from skill2env.verify.config import facts_of
from skill2env.verify.gate import GateContext, Hit, Subject
from skill2env.verify.reading import read_text
from skill2env.verify.trials import judged_trial

FOLDER = "study"
"""Below the evidence folder; no gate has this name."""
_SCRATCH = ("/tmp/", "/var/tmp/", "/root/", "/var/log/", "/var/cache/", "/var/lib/dpkg/", "/var/lib/apt/")
_BYPRODUCTS = frozenset(
    {"__pycache__", ".cache", ".git", ".pytest_cache", ".bash_history", ".python_history"}
)
_SLOWER = 5
_LEAST_SEC = 10.0
_LEAST_SOLVE_SEC = 4.0


@dataclass(frozen=True, slots=True)
class Study:
    """One run of the reference solution, seen from outside."""

    outputs: Mapping[str, StudiedFile]
    """Files that it made or changed, by path; no scratch files, caches or logs."""
    fixtures: Mapping[str, StudiedFile]
    """Files that were there before and that it left alone, outside of system folders."""
    originals: Mapping[str, StudiedFile]
    """What the changed ones of `outputs` and the removed files were before."""
    writable: frozenset[str]
    """Paths of `fixtures` and `originals` that the agent's user may write."""
    folders: tuple[str, ...]
    """Folders that it may write before the work begins."""
    metrics: tuple[str, ...]
    uid: int
    """Of the agent."""
    search_path: tuple[str, ...]
    """Folders of the agent's ``PATH``."""
    home: str
    workdir: str
    one_user: bool
    """Agent and verifier could not be told apart by the sandbox."""
    instruction: str
    solve_sec: float
    grade_sec: float

    @property
    def is_root(self) -> bool:
        """Whether the agent may do everything in its container."""
        return self.uid == 0

    def limited(self, context: GateContext) -> GateContext:
        """The same place with limits that fit this task, for runs that may hang."""
        limits = dataclasses.replace(
            context.timeouts,
            agent_cap_sec=_cap(context.timeouts.agent_cap_sec, 2 * self.solve_limit_sec),
            verifier_cap_sec=_cap(context.timeouts.verifier_cap_sec, _LEAST_SEC + _SLOWER * self.grade_sec),
        )
        return dataclasses.replace(context, timeouts=limits)

    @property
    def solve_limit_sec(self) -> int:
        """Seconds after which a changed solution counts as one that never ends."""
        return int(_LEAST_SOLVE_SEC + _SLOWER * self.solve_sec)


def study_of(subject: Subject, context: GateContext) -> Study:
    """Run the reference solution once, whoever asks first, and remember what it did.

    Raises:
        NotApplicable: there is nothing to learn: several steps, no Linux, no solution that passes, no file left.
        InfraError: the machine failed.
    """
    with subject.studying:
        if subject.study is None:
            try:
                subject.study = _study(subject, context)
            except NotApplicable as reason:
                subject.study = reason
        if isinstance(subject.study, NotApplicable):
            raise NotApplicable(subject.study.why)
        return subject.study


def _cap(given: float | None, ours: float) -> float:
    return ours if given is None else min(given, ours)


def _study(subject: Subject, context: GateContext) -> Study:
    facts = facts_of(subject)
    if isinstance(facts, Hit):
        raise NotApplicable("task.toml cannot be loaded")
    if facts.steps:
        raise NotApplicable("the task has several steps")
    if facts.os != "linux":
        raise NotApplicable(f"the task is for {facts.os}")
    if not (subject.task_dir / "solution" / "solve.sh").is_file():
        raise NotApplicable("there is no solution/solve.sh to learn from")
    kwargs = {"source": str(subject.task_dir / "solution"), "env": dict(facts.solution_env)}
    outcome = judged_trial(
        subject, context, STUDY_AGENT, folder=FOLDER, label="solution", agent_kwargs=kwargs
    )
    metrics = outcome.reward().metrics
    if outcome.solve_exit_code or not metrics or any(value != 1 for value in metrics.values()):
        raise NotApplicable("the reference solution does not earn 1 when it is watched")
    try:
        found = read_studied(outcome.folder)
    except ValueError as error:
        raise NotApplicable(str(error)) from error
    outputs = {
        path: file for path, file in sorted(found.after.items()) if not is_scratch(path, facts.artifacts)
    }
    touched = {*found.after, *found.removed}
    return Study(
        outputs=outputs,
        fixtures={path: file for path, file in sorted(found.before.items()) if path not in touched},
        originals={path: file for path, file in sorted(found.before.items()) if path in touched},
        writable=found.writable_files,
        folders=found.writable_folders,
        metrics=tuple(sorted(metrics)),
        uid=found.uid,
        search_path=found.search_path,
        home=found.home,
        workdir=found.workdir,
        one_user=bool(outcome.degraded),
        instruction=read_text(subject.task_dir / "instruction.md") or "",
        solve_sec=outcome.seconds.get("agent", 0.0),
        grade_sec=outcome.seconds.get("verifier", 0.0),
    )


def is_scratch(path: str, artifacts: tuple[str, ...] = ()) -> bool:
    """Whether a file that a solution left is nothing it delivers."""
    if any(path == place or path.startswith(place.rstrip("/") + "/") for place in artifacts):
        return False
    parts = PurePosixPath(path).parts
    return path.startswith(_SCRATCH) or path.endswith(".pyc") or bool(_BYPRODUCTS & set(parts))
