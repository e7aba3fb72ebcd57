"""The author ``recorded``: replays authoring sessions that were stored on disk. Costs nothing, needs no model."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from skill2env.authors.protocol import CreateReply, CreateRequest, PlanReply, PlanRequest, Refusal
from skill2env.authors.recording import (
    FORMAT,
    RecordedSession,
    Recording,
    find_recordings,
    is_plain_folder,
    phase_folder,
)
from skill2env.authors.workspace import TakenFile, collect, path_problem
from skill2env.errors import Boundary, boundary
from skill2env.records import (
    AuthorIdentity,
    Axes,
    Phase,
    Reason,
    Skill,
    Skipped,
    SkipReason,
    TaskSpec,
    Workflow,
    digest_of,
)

NAME = "recorded"


@dataclass(frozen=True)
class RecordedAuthor:
    """Replays recordings, matched to skills by digest."""

    recordings: Sequence[Recording]
    accept_stale: bool = False
    """Replay a recording of the same name when the skill has changed since."""

    @classmethod
    def load(cls, root: Path, *, accept_stale: bool = False) -> "RecordedAuthor":
        """Open a folder of recordings.

        Raises:
            UserError: there is no such folder, or one of its indexes is damaged.
        """
        return cls(find_recordings(root), accept_stale)

    @property
    def identity(self) -> AuthorIdentity:
        """Covers the content of every recording."""
        return self._identity

    @cached_property
    def _identity(self) -> AuthorIdentity:
        """Covers the content of every recording."""
        digest = digest_of([sorted(item.digest for item in self.recordings), self.accept_stale])
        return AuthorIdentity(name=NAME, version=str(FORMAT), digest=digest)

    def identity_for(self, skill: Skill) -> AuthorIdentity:
        """Covers the one recording that would be replayed, and names the model that held its sessions."""
        recording = self.find(skill)
        if recording is None:
            return AuthorIdentity(name=NAME, version=str(FORMAT))
        return AuthorIdentity(
            name=NAME, model=recording.index.author.model, version=str(FORMAT), digest=recording.digest
        )

    def find(self, skill: Skill) -> Recording | None:
        """The recording that would be replayed for a skill."""
        exact = next((item for item in self.recordings if item.index.skill.digest == skill.digest), None)
        return exact or (self.find_stale(skill) if self.accept_stale else None)

    def find_stale(self, skill: Skill) -> Recording | None:
        """A recording of a skill of the same name whatever its digest."""
        return next((item for item in self.recordings if item.index.skill.slug == skill.slug), None)

    def pinned_axes(self, skill: Skill, workflow: Workflow, variant: int) -> Axes | None:
        """The axes that the recorded sessions were written for."""
        recording = self.find(skill)
        task = recording.task(workflow.name, variant) if recording else None
        return task.axes if task else None

    def plan(self, request: PlanRequest) -> PlanReply:
        """Replay the planning session."""
        recording = self.find(request.skill)
        if recording is None:
            return PlanReply(skipped=self._missing(request.skill))
        try:
            plan = recording.plan()
        except ValueError as error:
            return PlanReply(skipped=_none(f"damaged recording {recording.folder.name}: {error}"))
        if plan is None:
            return PlanReply(skipped=_none(f"the recording {recording.folder.name} has no plan.json"))
        return PlanReply(
            text=plan.answer(),
            skipped=plan.skipped,
            usage=plan.usage,
            messages=plan.messages,
            hosts=plan.hosts,
        )

    def mends_contract(self, skill: Skill, spec: TaskSpec, number: int) -> bool:
        """Whether such a session was recorded."""
        recording = self.find(skill)
        folder = phase_folder(Phase.CONTRACT, number)
        return recording is not None and is_plain_folder(
            recording.folder, f"{spec.workflow.name}/{spec.variant}/{folder}"
        )

    def create(self, request: CreateRequest) -> CreateReply:
        """Replay one session into the workspace."""
        recording = self.find(request.skill)
        if recording is None:
            return CreateReply(skipped=self._missing(request.skill))
        spec, phase, round_ = request.spec, request.phase, request.round
        name, variant = spec.workflow.name, spec.variant
        what = f"{recording.folder.name}/{name}/{variant}, {phase.value} {round_}".replace(" 0", "")
        if recording.task(name, variant) is None:
            return CreateReply(skipped=_none(f"the recording does not list {name}/{variant}"))
        try:
            session = recording.session(name, variant, phase, round_)
        except ValueError as error:
            return CreateReply(skipped=_none(f"damaged session: {error}"))
        if session is None:
            return CreateReply(skipped=_none(f"no such session: {what}"))
        refused = session.refused
        if session.skipped is None and refused is None:
            refused = self._replay(session, recording.files(name, variant, phase, round_), request.workspace)
        return CreateReply(
            skipped=session.skipped,
            refused=refused,
            usage=session.usage,
            messages=session.messages,
            hosts=session.hosts,
        )

    def _replay(self, session: RecordedSession, files: Path | None, workspace: Path) -> Refusal | None:
        """Bring the workspace to the state that the session left; the refusal when its files must not be taken."""
        task = workspace / "task"
        for path in session.deleted:
            problem = path_problem(path)
            if problem:
                shown = path.encode("unicode_escape").decode()
                return Refusal(reason=Reason.UNSAFE_FILE, path=shown, message=f"deleted {shown}: {problem}")
            _remove(task / path)
        if files is None:
            return None
        with TemporaryDirectory(prefix="replay-", dir=workspace) as scratch:
            taken = collect(files, Path(scratch) / "files")
            if taken.refusals:
                return taken.refusals[0]
            for path, item in taken.files.items():
                _put(Path(scratch) / "files" / path, task, path, item)
        return None

    def _missing(self, skill: Skill) -> Skipped:
        stale = self.find_stale(skill)
        if stale is not None:
            return _none(
                f"the recording {stale.folder.name} was made of {skill.slug} with digest"
                f" {_short(stale.index.skill.digest)}, and the skill now has {_short(skill.digest)};"
                " record it anew, or replay it all the same with --accept-stale"
            )
        names = ", ".join(sorted(item.index.skill.slug for item in self.recordings)) or "none"
        return _none(f"no recording of {skill.slug} (there are: {names})"[:500])


def _none(detail: str) -> Skipped:
    return Skipped(reason=SkipReason.NO_RECORDING, detail=detail)


def _short(digest: str) -> str:
    return digest.removeprefix("sha256:")[:12]


def _remove(path: Path) -> None:
    with boundary(Boundary.STORAGE, f"replaying a removal of {path.name}"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.exists() and path.parent.is_dir():
            path.unlink()


def _put(source: Path, task: Path, path: str, item: TakenFile) -> None:
    """Place one file; what stands in its way, a file for a folder or the reverse, gives way as it did when recorded."""
    with boundary(Boundary.STORAGE, f"replaying {path}"):
        target = task / path
        for above in reversed(target.relative_to(task).parents[:-1]):
            if (task / above).exists() and not (task / above).is_dir():
                (task / above).unlink()
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            shutil.rmtree(target)
        target.write_bytes(source.read_bytes())
        target.chmod(0o755 if item.executable else 0o644)
