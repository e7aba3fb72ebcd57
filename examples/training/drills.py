"""An author for the skill `shell-files`: drills of one command, in three rungs, for policies that have to begin small.

    skill2env compile examples/training/shell-files --config configs/ladder.toml --out out/ladder

It needs no model: workflows are a table (`drills_writing.py` and its neighbours), and the seed of a spec
draws words, names, numbers and lines. Equal seeds give equal bytes.
"""

from dataclasses import dataclass
from pathlib import Path

from drills_changing import KINDS as CHANGING
from drills_counting import KINDS as COUNTING
from drills_finding import KINDS as FINDING
from drills_parts import Draw
from drills_writing import KINDS as WRITING

from skill2env.authors.protocol import CreateReply, CreateRequest, Message, PlanReply, PlanRequest
from skill2env.authors.registry import AuthorSettings
from skill2env.authors.scripted import write_files
from skill2env.axes import Archetype, Expertise, Tone, VerifierPattern
from skill2env.errors import UserError
from skill2env.records import (
    AuthorIdentity,
    Axes,
    Phase,
    Skill,
    Skipped,
    SkipReason,
    Workflow,
    canonical_json,
    digest_of,
)

SKILL = "shell-files"
KINDS = {kind.name: kind for kind in (*WRITING, *CHANGING, *COUNTING, *FINDING)}
"""By name, easiest rung first, so that fewer workflows are an easier ladder."""
TEXTS = {
    file.name: file.read_text(encoding="utf-8") for file in sorted(Path(__file__).parent.glob("drills*.py"))
}
"""These files as they are imported: whoever changes a drill is another author and gets new tasks."""


@dataclass(frozen=True)
class DrillAuthor:
    """Plans the table of drills and writes each of them."""

    chosen: tuple[str, ...] = ("r",)
    """Beginnings of names: ``r1`` is the first rung, ``r3-count`` everything that counts."""

    @property
    def identity(self) -> AuthorIdentity:
        """Covers the text of these files and the choice of drills."""
        digest = digest_of({"texts": TEXTS, "chosen": self.chosen})
        return AuthorIdentity(name="shell-drills", version="1", digest=digest)

    def plan(self, request: PlanRequest) -> PlanReply:
        """The first `request.count` workflows of the table, of those that were chosen."""
        if request.skill.slug != SKILL:
            detail = f"these drills belong to the skill {SKILL}"
            return PlanReply(skipped=Skipped(reason=SkipReason.AUTHOR_GAVE_UP, detail=detail))
        found = [
            kind.workflow().model_dump(mode="json")
            for kind in KINDS.values()
            if kind.name.startswith(self.chosen)
        ]
        return PlanReply(text=canonical_json(found[: request.count]))

    def pinned_axes(self, skill: Skill, workflow: Workflow, variant: int) -> Axes | None:
        """A drill has one voice and one size; sampling others would say something untrue about it."""
        del skill, variant
        kind = KINDS.get(workflow.name)
        if kind is None:
            return None
        return Axes(
            archetype=Archetype.BUILD if kind.rung == 1 else Archetype.TRANSFORM,
            verifier_pattern=VerifierPattern.STATE if kind.rung == 1 else VerifierPattern.RECOMPUTE,
            complexity="turns-01",
            persona="learner",
            tone=Tone.TERSE,
            expertise=Expertise.OUTSIDER,
        )

    def create(self, request: CreateRequest) -> CreateReply:
        """Write one drill with the words of its seed."""
        kind = KINDS.get(request.spec.workflow.name)
        if kind is None:
            detail = f"there is no drill {request.spec.workflow.name}"
            return CreateReply(skipped=Skipped(reason=SkipReason.AUTHOR_GAVE_UP, detail=detail))
        drill = kind.make(Draw(request.spec.seed))
        contract = request.phase is Phase.CONTRACT
        files = kind.contract_files(drill) if contract else kind.solution_files(drill)
        write_files(request.workspace / "task", files)
        said = Message(role="assistant", text=f"{request.phase.value}: wrote {', '.join(sorted(files))}")
        return CreateReply(messages=(said,))


def make_author(settings: AuthorSettings) -> DrillAuthor:
    """As `skill2env compile --author examples/training/drills.py:make_author` asks for it.

    Args:
        settings: of its options, ``drills`` is a list of beginnings of names; all drills without it.

    Raises:
        UserError: another option, or a beginning that no drill has.
    """
    unknown = sorted(settings.options.keys() - {"drills"})
    if unknown:
        raise UserError(
            f"the drills have no option {unknown[0]!r}", hint="There is one: drills, a list of names."
        )
    chosen = tuple(map(str, settings.options.get("drills", ("r",))))
    for start in chosen:
        if not any(name.startswith(start) for name in KINDS):
            raise UserError(f"no drill is called {start!r}", hint=f"There are: {', '.join(KINDS)}.")
    return DrillAuthor(chosen)
