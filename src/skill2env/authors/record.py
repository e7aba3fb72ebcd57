"""`RecordingAuthor`: any author, with every session it finishes stored in the format of `authors.recording`."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from skill2env.authors.protocol import (
    Author,
    CreateReply,
    CreateRequest,
    PlanReply,
    PlanRequest,
    identity_for,
    keys_of,
    mends_contract,
)
from skill2env.authors.protocol import pinned_axes as pinned_axes_of
from skill2env.authors.recording import (
    FILES_FOLDER,
    INDEX_FILE,
    PLAN_FILE,
    SESSION_FILE,
    RecordedPlan,
    RecordedSession,
    RecordedSkill,
    RecordedTask,
    Recording,
    RecordingIndex,
    find_recordings,
    phase_folder,
)
from skill2env.authors.staging import lay_out
from skill2env.authors.withheld import Withholding
from skill2env.authors.workspace import CollectLimits, TakenFile, collect
from skill2env.errors import UserError
from skill2env.records import AuthorIdentity, Axes, Skill, TaskSpec, Workflow
from skill2env.store.files import move_into_place, staged_folder, write_json

_LIMITS = CollectLimits(max_files=4000, max_total_bytes=128 * 2**20)
"""As for a solution session, whose workspace holds the contract too."""


@dataclass
class RecordingAuthor:
    """Passes every call to `inner` and stores the result below `root`. Thread-safe.

    Its output is `inner`'s, so its identity is too. A session that ends in an infra failure is not stored, and nothing
    that holds a key of `inner` is (`authors.withheld`).
    """

    inner: Author
    root: Path
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def identity(self) -> AuthorIdentity:
        """The inner author's."""
        return self.inner.identity

    def identity_for(self, skill: Skill) -> AuthorIdentity:
        """The inner author's."""
        return identity_for(self.inner, skill)

    def pinned_axes(self, skill: Skill, workflow: Workflow, variant: int) -> Axes | None:
        """The inner author's."""
        return pinned_axes_of(self.inner, skill, workflow, variant)

    def mends_contract(self, skill: Skill, spec: TaskSpec, number: int) -> bool:
        """The inner author's."""
        return mends_contract(self.inner, skill, spec, number)

    def keys(self) -> Mapping[str, str]:
        """The inner author's."""
        return keys_of(self.inner)

    def plan(self, request: PlanRequest) -> PlanReply:
        """Plan, and store the answer as it came."""
        reply = self.inner.plan(request)
        plan = Withholding(self.keys()).plan(
            RecordedPlan(
                text=reply.text,
                skipped=reply.skipped,
                usage=reply.usage,
                messages=reply.messages,
                hosts=reply.hosts,
            )
        )
        with self._lock:
            folder = self._folder(request.skill)
            self._write_index(folder, request.skill, None)
            write_json(folder / PLAN_FILE, plan.model_dump(mode="json", exclude_none=True))
        return reply

    def create(self, request: CreateRequest) -> CreateReply:
        """Hold the session, and store what it changed in its workspace."""
        with TemporaryDirectory(prefix="record-") as scratch:
            before = collect(request.workspace / "task", Path(scratch) / "before", _LIMITS).files
            reply = self.inner.create(request)
            after = collect(request.workspace / "task", Path(scratch) / "after", _LIMITS)
            changed = {path: taken for path, taken in after.files.items() if before.get(path) != taken}
            session = RecordedSession(
                skipped=reply.skipped,
                refused=reply.refused or (after.refusals[0] if after.refusals else None),
                deleted=tuple(sorted(before.keys() - after.files.keys())),
                usage=reply.usage,
                messages=reply.messages,
                hosts=reply.hosts,
            )
            withholding = Withholding(self.keys())
            if withholding.in_text("its workflow", request.spec.workflow.name):
                return reply  # not even a folder can be named; plan.json says what was left out
            held = withholding.in_files(Path(scratch) / "after", changed)
            self._store(request, withholding.session(session, held), changed, Path(scratch) / "after")
        return reply

    def _store(
        self, request: CreateRequest, session: RecordedSession, files: Mapping[str, TakenFile], origin: Path
    ) -> None:
        spec = request.spec
        task = RecordedTask(workflow=spec.workflow.name, variant=spec.variant, axes=spec.axes)
        with self._lock:
            folder = self._folder(request.skill)
            self._write_index(folder, request.skill, task)
        place = folder / spec.workflow.name / str(spec.variant) / phase_folder(request.phase, request.round)
        with staged_folder(folder) as staged:
            entry = staged / "entry"
            entry.mkdir()
            write_json(entry / SESSION_FILE, session.model_dump(mode="json", exclude_none=True))
            if session.refused is None and session.skipped is None and files:
                lay_out(files, origin, entry / FILES_FOLDER)
            move_into_place(entry, place)

    def _folder(self, skill: Skill) -> Path:
        """The skill's folder: its slug, with a piece of the digest when another skill of that name holds it."""
        plain = self.root / skill.slug
        if (plain / INDEX_FILE).is_file() and _load(plain).index.skill.digest != skill.digest:
            return self.root / f"{skill.slug}-{skill.digest.removeprefix('sha256:')[:8]}"
        return plain

    def _write_index(self, folder: Path, skill: Skill, task: RecordedTask | None) -> None:
        """Add a task to the index, or make the index; the tasks stay sorted whatever order they finish in."""
        author = identity_for(self.inner, skill)
        folder.mkdir(parents=True, exist_ok=True)
        tasks: dict[tuple[str, int], RecordedTask] = {}
        if (folder / INDEX_FILE).is_file():
            index = _load(folder).index
            if index.author != author:
                raise UserError(
                    f"{folder} holds sessions of another author ({index.author.name} {index.author.model})",
                    hint="record into another folder, or delete that one",
                )
            tasks = {(item.workflow, item.variant): item for item in index.tasks}
        if task is not None:
            tasks[task.workflow, task.variant] = task
        index = RecordingIndex(
            skill=RecordedSkill(name=skill.name, slug=skill.slug, digest=skill.digest),
            author=author,
            tasks=tuple(tasks[key] for key in sorted(tasks)),
        )
        write_json(folder / INDEX_FILE, index.model_dump(mode="json"))


def _load(folder: Path) -> Recording:
    return find_recordings(folder)[0]
