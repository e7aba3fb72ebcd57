"""The stages as a list, and what each does with one skill, one item or the whole batch.

Every stage asks the ledger first: a finished result with equal inputs is taken as it is; when an input changed, the
event names it. A stage ends an element by setting its `row` (skill) or `attempt` (item); later stages pass it by.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from skill2env import __version__
from skill2env.authors.protocol import (
    AllowanceSpent,
    AuthorFailed,
    Limit,
    identity_for,
    pinned_axes,
)
from skill2env.create import SessionNote
from skill2env.create.freeze import freeze_digest
from skill2env.create.outcome import CreateRejected
from skill2env.diversify import SpecRequest, sample_batch
from skill2env.errors import InfraError, UserError
from skill2env.ingest import blocking, load_skill
from skill2env.plan import Plan, plan_workflows
from skill2env.prompts import prompt_digest
from skill2env.publishing import publish_stage
from skill2env.records import (
    Attempt,
    AttemptStatus,
    Candidate,
    Phase,
    Reason,
    Skipped,
    SkipReason,
    TaskSpec,
    Usage,
    Verdict,
    VerdictStatus,
    digest_of,
)
from skill2env.store.ledger import Item, SkillRow
from skill2env.wiring import Batch
from skill2env.work import ItemWork, SkillWork

_BLOCKED = {"empty-file": SkipReason.TOO_THIN, "not-text": SkipReason.UNREADABLE}
"""Diagnostics that stop a skill and are not about its safety."""
_AT_PUBLISHING = (Reason.DUPLICATE.value, Reason.TAKEN_DOWN.value)
"""Rejections that depend on the dataset, so they are decided anew each time."""


class Scope(StrEnum):
    """What a stage works on."""

    SKILL = "skill"
    """One skill; many at once."""
    ITEM = "item"
    """One TaskSpec; many at once."""
    BATCH = "batch"
    """Everything, alone."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the pipeline."""

    name: str
    title: str
    """What a person reads while it runs."""
    scope: Scope
    run: Callable[[Batch, Any], None]


def ingest_stage(_: Batch, work: SkillWork) -> None:
    """Folder -> Skill."""
    try:
        work.skill = load_skill(work.path)
    except UserError as error:
        # find_skills saw an entry file, so it is there and cannot be used: a fact about the skill, not about the call.
        work.row = SkillRow(
            work.label, "", "skipped", SkipReason.UNREADABLE.value, f"{error.message}. {error.hint}"
        )
        return
    for problem in blocking(work.skill):
        reason = _BLOCKED.get(problem.code, SkipReason.UNSAFE)
        work.row = SkillRow(
            work.skill.slug, work.skill.digest, "skipped", reason.value, f"{problem.code}: {problem.message}"
        )
        return


def plan_stage(batch: Batch, work: SkillWork) -> None:
    """Skill -> workflows, or the reason why there are none."""
    skill = work.known
    inputs = {
        "skill": skill.digest,
        "author": identity_for(batch.author, skill).model_dump(mode="json"),
        "workflows": batch.config.plan.workflows,
        "seed": batch.config.seed,
        "prompt": prompt_digest("plan"),
        "version": __version__,
    }
    kept = batch.recall("plan", work.label, inputs)
    if kept is not None:
        work.reused = True
        _take_plan(work, Plan.model_validate(kept))
        return
    try:
        plan = batch.tried(lambda: _planned(batch, work, digest_of(inputs)))
    except InfraError as error:
        if batch.is_fatal(error):
            raise
        work.row = SkillRow(skill.slug, skill.digest, "infra", error.boundary.value, error.message)
        return
    if plan.skipped is None or plan.skipped.reason is not SkipReason.TOO_EXPENSIVE:
        # One that was too dear may be held with another limit.
        batch.ledger.store("plan", work.label, inputs, plan.model_dump(mode="json"))
    _take_plan(work, plan)


def _planned(batch: Batch, work: SkillWork, key: str) -> Plan:
    """Hold the planning session."""
    skill = work.known
    author = identity_for(batch.author, skill)
    note = SessionNote(key, skill.slug, Phase.PLAN, 0, Usage(), cached=False)
    allowance = batch.before_session(note, author)
    try:
        plan = plan_workflows(
            skill,
            work.path,
            batch.author,
            count=batch.config.plan.workflows,
            seed=batch.config.seed,
            allowance=allowance,
        )
    except AllowanceSpent as spent:
        batch.note_session(replace(note, usage=spent.usage, outcome="budget"), author)
        if allowance is None or allowance.limit is Limit.RUN:
            raise
        return Plan(skipped=allowance.exceeded("in its plan session"), usage=spent.usage)
    except InfraError as error:
        used = error.usage if isinstance(error, AuthorFailed) else note.usage
        batch.note_session(replace(note, usage=used, outcome=error.boundary.value), author)
        raise
    except Exception:
        batch.release(note.key)
        raise
    batch.note_session(replace(note, usage=plan.usage), author)
    return plan


def _take_plan(work: SkillWork, plan: Plan) -> None:
    skill = work.known
    dropped = tuple(f"{loss.reason.value}: {loss.detail}" for loss in plan.dropped)
    work.workflows = plan.workflows
    if plan.skipped is None:
        work.row = SkillRow(
            skill.slug, skill.digest, "planned", workflows=len(plan.workflows), dropped=dropped
        )
    else:
        reason, detail = plan.skipped.reason.value, plan.skipped.detail
        work.row = SkillRow(skill.slug, skill.digest, "skipped", reason, detail, dropped=dropped)


def diversify_stage(batch: Batch, _: None) -> None:
    """Workflows of all skills -> specs, drawn at once, before any author sees one; earlier draws stand."""
    batch.drop_doubles()
    _advise_authors(batch)
    batch.ledger.set_skills(batch.run, [work.row for work in batch.skills if work.row])
    planned = {work.known.digest: work for work in batch.skills if not work.ended}
    requests = [
        SpecRequest(work.known, workflow, variant, pinned_axes(batch.author, work.known, workflow, variant))
        for work in planned.values()
        for workflow in work.workflows
        for variant in range(batch.config.plan.variants)
    ]
    draw = {"seed": batch.config.seed, "organisation": batch.config.create.organisation}
    known = [
        TaskSpec.model_validate(spec)
        for inputs, spec in batch.ledger.results("diversify")
        if inputs["draw"] == draw
    ]
    specs = sample_batch(
        requests, run_seed=batch.config.seed, known=known, organisation=batch.config.create.organisation
    )
    rows = [(spec.task_name, spec.model_dump(mode="json")) for spec in specs]
    batch.ledger.store_all(
        "diversify", [(name, {"draw": draw, "spec": digest_of(spec)}, spec) for name, spec in rows]
    )
    batch.items = sorted(
        (
            ItemWork(work, spec, batch.attempt_key(work, spec))
            for spec in specs
            if (work := planned[spec.skill_digest])
        ),
        key=lambda item: item.spec.task_name,
    )
    batch.ledger.set_items(batch.run, [Item(i.key, i.spec.task_name, i.subject) for i in batch.items])


def _advise_authors(batch: Batch) -> None:
    """Say plainly which author would serve the skills that this one cannot."""
    without = {
        SkipReason.NO_CODE,
        SkipReason.CODE_NOT_ALIVE,
        SkipReason.NO_STABLE_BEHAVIOUR,
        SkipReason.NO_FAULT_FOUND,
    }
    unable = _skipped_for(batch, without)
    if unable:
        batch.advise(
            f"{len(unable)} skill(s) hold no code that a task can be built on ({_some(unable)}): they need recorded"
            " sessions (--recordings DIR) or an author with a model"
        )
    if unrecorded := _skipped_for(batch, {SkipReason.NO_RECORDING}):
        batch.advise(
            f"{len(unrecorded)} skill(s) have no recorded sessions ({_some(unrecorded)}): --author code serves skills"
            " that carry code, an author with a model serves all"
        )


def _skipped_for(batch: Batch, reasons: set[SkipReason]) -> list[str]:
    values = {reason.value for reason in reasons}
    return [work.label for work in batch.skills if work.row is not None and work.row.reason in values]


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def create_stage(batch: Batch, item: ItemWork) -> None:
    """TaskSpec -> candidate, or the reason why there is none."""
    earlier = batch.ledger.attempt(item.key)
    if earlier is not None and (_is_final(earlier) or batch.stands(item)):
        item.attempt, item.verdict, item.reused = earlier, earlier.verdict, True
        return
    inputs = batch.attempt_inputs(item.of, item.spec)
    kept = batch.recall("create", item.subject, inputs)
    if kept is not None:
        candidate = Candidate.model_validate(kept)
        candidate = candidate.model_copy(update={"path": batch.folder.path / candidate.path})
        if candidate.path.is_dir():
            item.candidate = candidate
            return
    from skill2env.authoring import create_candidate  # loads Harbor, which a finished item does not need

    try:
        outcome = create_candidate(batch, item)
    except InfraError as error:
        _infra(batch, item, error)
        return
    match outcome:
        case Candidate():
            item.candidate = outcome
            relative = outcome.model_copy(update={"path": batch.relative(outcome.path)})
            batch.ledger.store("create", item.subject, inputs, relative.model_dump(mode="json"))
        case Skipped():
            batch.close(item, AttemptStatus.SKIPPED, reason=outcome.reason.value, detail=outcome.detail)
        case CreateRejected():
            _reject_early(batch, item, outcome)


def _reject_early(batch: Batch, item: ItemWork, outcome: CreateRejected) -> None:
    item.verdict = Verdict(
        status=VerdictStatus.REJECTED, reason=outcome.reason, message=outcome.message, gates=outcome.gates
    )
    kept = batch.relative(outcome.path) if outcome.path else ""
    detail = "; ".join(dict.fromkeys((outcome.message, *outcome.details[:3])))
    attempt = batch.close(
        item, AttemptStatus.REJECTED, reason=outcome.reason.value, detail=detail, candidate=kept
    )
    item.attempt = attempt.model_copy(update={"repairs": outcome.repairs})


def verify_stage(batch: Batch, item: ItemWork) -> None:
    """Candidate -> verdict."""
    from skill2env.authoring import judge

    candidate = item.candidate
    assert candidate is not None
    kept = batch.relative(candidate.path)
    if freeze_digest(candidate.path) != candidate.freeze_digest:
        message = "the kept candidate differs from its seal"
        item.verdict = Verdict(status=VerdictStatus.REJECTED, reason=Reason.FREEZE_BROKEN, message=message)
        batch.close(
            item, AttemptStatus.REJECTED, reason=Reason.FREEZE_BROKEN.value, detail=message, candidate=kept
        )
        return
    try:
        item.verdict = judge(batch, item)
    except InfraError as error:
        _infra(batch, item, error)
        return
    match item.verdict.status:
        case VerdictStatus.ACCEPTED:
            return
        case VerdictStatus.REJECTED:
            reason = item.verdict.reason or Reason.MALFORMED
            status, why = AttemptStatus.REJECTED, reason.value
        case VerdictStatus.INFRA:
            status, why = AttemptStatus.INFRA, item.verdict.boundary
    batch.close(item, status, reason=why, detail=item.verdict.message, candidate=kept)


def _is_final(attempt: Attempt) -> bool:
    """Whether nothing about an attempt is left to do; what the dataset decides is decided anew each time."""
    if attempt.status is AttemptStatus.SKIPPED:
        return attempt.reason != SkipReason.TOO_EXPENSIVE.value  # another limit may be given now
    return attempt.status is AttemptStatus.REJECTED and attempt.reason not in _AT_PUBLISHING


def _infra(batch: Batch, item: ItemWork, error: InfraError) -> None:
    if batch.is_fatal(error):
        raise error
    detail = f"{error.message}. {error.hint}" if error.hint else error.message
    batch.close(item, AttemptStatus.INFRA, reason=error.boundary.value, detail=detail)


STAGES: tuple[Stage, ...] = (
    Stage("ingest", "reading and planning", Scope.SKILL, ingest_stage),
    Stage("plan", "reading and planning", Scope.SKILL, plan_stage),
    Stage("diversify", "drawing axes", Scope.BATCH, diversify_stage),
    Stage("create", "creating and verifying", Scope.ITEM, create_stage),
    Stage("verify", "creating and verifying", Scope.ITEM, verify_stage),
    Stage("publish", "publishing", Scope.BATCH, publish_stage),
)
"""The program."""
