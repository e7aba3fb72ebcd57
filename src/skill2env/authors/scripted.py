"""An author that plays fixed steps: the fake of the Author protocol, shipped so that everybody's tests use the same.

Without steps it makes the small, sound task of `authors.demo` for any skill, so that the whole way from a skill to an
accepted task can be tried in seconds without a model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skill2env.authors import demo
from skill2env.authors.protocol import CreateReply, CreateRequest, Message, PlanReply, PlanRequest
from skill2env.authors.workspace import path_problem
from skill2env.errors import UserError
from skill2env.records import (
    AuthorIdentity,
    Phase,
    Skill,
    Skipped,
    SkipReason,
    TaskSpec,
    Usage,
    Workflow,
    canonical_json,
    digest_bytes,
    digest_of,
)

type Files = Mapping[str, str | bytes | None]
"""Path below ``task/`` -> content; None removes the file."""
type Step = Files | Skipped | Callable[[CreateRequest], CreateReply | Files]


@dataclass(frozen=True)
class ScriptedAuthor:
    """Plays steps; equal scripts give equal sessions."""

    workflows: Sequence[Workflow] | str | Skipped | None = None
    """The answer to `plan`: records, raw text, a skip, or None for the demo's workflow."""
    steps: Mapping[tuple[Phase, int], Step] | None = None
    """(phase, round) -> what that session does; a missing one gives up. None: the demo's sessions."""
    usage: Usage = Usage()  # noqa: RUF009  # frozen
    """Reported by every session."""
    label: str = ""
    """Tells scripts with functions apart, which cannot be digested by content."""

    @property
    def identity(self) -> AuthorIdentity:
        """Covers everything but the code of functions, for which `label` stands."""
        steps = {
            f"{phase.value}-{round_}": _describe(step) for (phase, round_), step in (self.steps or {}).items()
        }
        plan = self.workflows if isinstance(self.workflows, str | Skipped | None) else list(self.workflows)
        return AuthorIdentity(
            name="scripted",
            version=demo.VERSION,
            digest=digest_of({"label": self.label, "plan": plan, "steps": steps, "demo": self.steps is None}),
        )

    def plan(self, request: PlanRequest) -> PlanReply:
        """Answer with the script's workflows."""
        if isinstance(self.workflows, Skipped):
            return PlanReply(skipped=self.workflows, usage=self.usage)
        if isinstance(self.workflows, str):
            return PlanReply(text=self.workflows, usage=self.usage)
        wanted = self.workflows if self.workflows is not None else demo.workflows(request.skill)
        if not wanted:
            return PlanReply(
                skipped=Skipped(reason=SkipReason.TOO_THIN, detail="the skill has no sentence to rest on"),
                usage=self.usage,
            )
        return PlanReply(
            text=canonical_json([item.model_dump(mode="json") for item in wanted]), usage=self.usage
        )

    def create(self, request: CreateRequest) -> CreateReply:
        """Play the step of this phase and round."""
        if self.steps is None:
            return self._reply(request, demo.files(request))
        step = self.steps.get((request.phase, request.round))
        if step is None:
            gone = Skipped(reason=SkipReason.AUTHOR_GAVE_UP, detail="the script has no such session")
            return CreateReply(skipped=gone, usage=self.usage)
        if isinstance(step, Skipped):
            return CreateReply(skipped=step, usage=self.usage)
        done = step(request) if callable(step) else step
        return done if isinstance(done, CreateReply) else self._reply(request, done)

    def mends_contract(self, skill: Skill, spec: TaskSpec, number: int) -> bool:  # noqa: ARG002
        """Whether the script has such a step."""
        return (Phase.CONTRACT, number) in (self.steps or {})

    def _reply(self, request: CreateRequest, files: Files) -> CreateReply:
        write_files(request.workspace / "task", files)
        said = Message(
            role="assistant", text=f"{request.phase.value}: wrote {', '.join(sorted(files)) or 'nothing'}"
        )
        return CreateReply(usage=self.usage, messages=(said,))


def write_files(task: Path, files: Files) -> None:
    """Write and remove files below `task`; scripts become executable.

    Raises:
        UserError: a path leaves the folder.
    """
    for path, content in sorted(files.items()):
        problem = path_problem(path)
        if problem:
            raise UserError(f"scripted path {path!r}: {problem}")
        target = task / path
        if content is None:
            target.unlink(missing_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        target.chmod(0o755 if path.endswith(".sh") else 0o644)


def _describe(step: Step) -> object:
    if isinstance(step, Skipped):
        return step
    if callable(step):
        return step.__qualname__
    return {
        path: None
        if content is None
        else digest_bytes(content.encode() if isinstance(content, str) else content)
        for path, content in sorted(step.items())
    }
