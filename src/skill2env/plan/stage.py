"""The stage: ask the author, read the answer, keep what holds."""

from pathlib import Path

from skill2env.authors.protocol import Allowance, Author, PlanRequest
from skill2env.plan.answer import read_answer
from skill2env.plan.drops import Dropped
from skill2env.plan.parse import parse_workflows
from skill2env.plan.sentences import SentenceIndex
from skill2env.prompts import prompt_digest, render
from skill2env.records import Record, Skill, Skipped, SkipReason, Usage, Workflow

MAX_PROMPT_PATHS = 200
"""File names listed in the prompt; a skill may hold more."""


class Plan(Record):
    """What became of one planning session."""

    workflows: tuple[Workflow, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    """Everything of the answer that was left out, in order."""
    skipped: Skipped | None = None
    """Set exactly when there are no workflows."""
    usage: Usage = Usage()
    prompt_digest: str = ""


def plan_workflows(
    skill: Skill,
    skill_dir: Path,
    author: Author,
    *,
    count: int = 3,
    seed: int,
    allowance: Allowance | None = None,
) -> Plan:
    """Ask `author` for the workflows of one skill.

    Args:
        skill: as ingested.
        skill_dir: its folder.
        author: who plans.
        count: how many are wanted; never more are returned.
        seed: of the run, handed on to the author.
        allowance: what the session may cost.

    Raises:
        InfraError: the author failed for a reason that is not the skill's.
        AllowanceSpent: the session cost more than it may.
    """
    reply = author.plan(
        PlanRequest(
            skill=skill,
            skill_dir=skill_dir,
            count=count,
            prompt=plan_prompt(skill, count),
            seed=seed,
            allowance=allowance,
        )
    )
    digest = prompt_digest("plan")
    if reply.skipped is not None:
        return Plan(skipped=reply.skipped, usage=reply.usage, prompt_digest=digest)
    answer = read_answer(reply.text)
    sentences = SentenceIndex(skill, skill_dir)
    workflows, losses = parse_workflows(answer.entries, count=count, occurs=sentences.__contains__)
    losses = (*answer.dropped, *losses)
    return Plan(
        workflows=workflows,
        dropped=losses,
        skipped=None if workflows else answer.skipped or _nothing_left(losses),
        usage=reply.usage,
        prompt_digest=digest,
    )


def plan_prompt(skill: Skill, count: int) -> str:
    """The rendered planning prompt."""
    paths = [item.path for item in skill.files]
    if len(paths) > MAX_PROMPT_PATHS:
        paths = [*paths[:MAX_PROMPT_PATHS], f"... and {len(paths) - MAX_PROMPT_PATHS} more"]
    return render("plan", skill=skill, count=count, paths=paths)


def _nothing_left(losses: tuple[Dropped, ...]) -> Skipped:
    detail = "; ".join(f"{loss.reason}: {loss.detail}" for loss in losses if not loss.reason.partial)
    return Skipped(
        reason=SkipReason.AUTHOR_GAVE_UP,
        detail=f"the plan holds no usable workflow ({detail or 'the list is empty'})"[:500],
    )
