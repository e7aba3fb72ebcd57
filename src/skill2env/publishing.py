"""Publish, wired: which items join the dataset, with which task.toml, and what the ledger keeps of it."""

from collections import Counter

from skill2env.errors import Boundary
from skill2env.ingest import notices_around
from skill2env.progress import Event, EventKind
from skill2env.publish.publish import Accepted, Published, publish
from skill2env.records import SHA256_PREFIX, AttemptStatus
from skill2env.wiring import Batch
from skill2env.work import ItemWork


def publish_stage(batch: Batch, _: None) -> None:
    """Accepted candidates -> dataset, sorted by name; those that are there already are left alone."""
    accepted = [item for item in batch.items if not item.ended and item.candidate and item.verdict]
    standing = sum(
        item.attempt is not None and item.attempt.status is AttemptStatus.PUBLISHED for item in batch.items
    )
    if not accepted and not standing:
        return
    if accepted and batch.parts.degraded and not batch.config.sandbox.allow_degraded:
        _hold_back(batch, accepted)
        accepted = []
    batch.published, outcomes = publish(
        [_accepted(batch, item) for item in accepted],
        batch.dataset,
        name=batch.config.publish.name,
        description=batch.config.publish.description,
        task_toml=lambda item: _task_toml(batch, item),
        identity=batch.identity(),
        ended=_ended(batch, standing),
        near_duplicates=batch.config.publish.near_duplicates,
    )
    by_key = {item.key: item for item in accepted}
    for outcome in outcomes:
        _note_published(batch, by_key[outcome.attempt_key], outcome)


def _accepted(batch: Batch, item: ItemWork) -> Accepted:
    assert item.candidate is not None
    assert item.verdict is not None
    skill = item.of.known
    notices = notices_around(item.of.path, skill.entry)
    texts = {
        asset.notice: batch.folder.notices / asset.notice.removeprefix(SHA256_PREFIX)
        for asset in item.candidate.assets
        if asset.notice
    }
    return Accepted(item.key, item.candidate, item.verdict, skill, item.of.path, notices, texts)


def _note_published(batch: Batch, item: ItemWork, outcome: Published) -> None:
    assert item.candidate is not None
    kept = batch.relative(item.candidate.path)
    if outcome.refused is not None:
        reason = outcome.refused.value
        attempt = batch.close(
            item, AttemptStatus.REJECTED, reason=reason, detail=outcome.detail, candidate=kept
        )
        batch.ledger.put_attempt(batch.run, attempt)
    else:
        attempt = batch.close(item, AttemptStatus.PUBLISHED, candidate=kept)
        batch.ledger.put_attempt(
            batch.run, attempt, dataset=batch.dataset, folder=outcome.folder, digest=outcome.digest
        )
    batch.progress(Event(EventKind.NOTE, item.label, item.outcome))


def _hold_back(batch: Batch, accepted: list[ItemWork]) -> None:
    """Leave accepted items pending, because their sandbox could not tell the agent from root."""
    from skill2env.sandbox.identity import subuid_fix

    detail = f"accepted, but not published from a single-uid sandbox. {subuid_fix()}, or --allow-degraded"
    for item in accepted:
        assert item.candidate is not None
        kept = batch.relative(item.candidate.path)
        attempt = batch.close(
            item, AttemptStatus.INFRA, reason=Boundary.SANDBOX.value, detail=detail, candidate=kept
        )
        batch.ledger.put_attempt(batch.run, attempt)
    batch.advise(f"{len(accepted)} task(s) {detail}")


def _task_toml(batch: Batch, accepted: Accepted) -> str:
    from skill2env.harbor.task_toml import Provenance, render_task_toml

    candidate = accepted.candidate
    provenance = Provenance(
        author=candidate.author,
        freeze_digest=candidate.freeze_digest,
        prompt_digests=[candidate.prompt_digest] if candidate.prompt_digest else [],
        base_image=candidate.base_image,
        gates=accepted.verdict.gates,
        level=batch.config.verify.level.value,
        assets=candidate.assets,
        hosts=candidate.hosts,
        notes=[batch.parts.degraded] if batch.parts.degraded else [],
    )
    return render_task_toml(candidate.spec, candidate.contract, accepted.skill, provenance)


def _ended(batch: Batch, standing: int) -> dict[str, int]:
    """``status:reason`` -> skills and items of this batch that are final without being published now."""
    counts: Counter[str] = Counter()
    for work in batch.skills:
        if work.row is not None and work.row.status == "skipped":
            counts[f"skipped:{work.row.reason}"] += 1
    for item in batch.items:
        if item.attempt is not None and item.attempt.status in (
            AttemptStatus.REJECTED,
            AttemptStatus.SKIPPED,
        ):
            counts[f"{item.attempt.status.value}:{item.attempt.reason}"] += 1
    counts["published"] += standing
    return dict(counts)
