"""Rollouts as JSON lines for any trainer: groups, tokens, masks, metrics and the final reward, one rollout a line.

The form is neutral and documented in docs/training.md. Rewards are made for whole groups, so a line says with
``usable`` whether its group can be trained on, and with ``diagnostics`` why not.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from skill2env.errors import UserError
from skill2env.judge.records import Judgement
from skill2env.records import Diagnostic, Severity, canonical_json
from skill2env.rollout.folder import read_json
from skill2env.rollout.records import TOKENS_FILE, Rollout
from skill2env.store.files import write_text
from skill2env.train.advantages import Advantage, advantages
from skill2env.train.parquet import write_parquet
from skill2env.train.reward import Graded, GroupReward, RewardConfig, RubricPolicy, group_rewards
from skill2env.train.stitching import SampledTurn, Stitched, stitch


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    rollouts: int
    groups: int
    usable: int
    """Groups that can be trained on."""
    dropped_terms: int
    """Groups in which the judge's term was dropped for want of a score."""
    with_tokens: int
    """Rollouts with token ids."""


def export(
    folder: Path,
    rollouts: Sequence[Rollout],
    to: Path,
    *,
    judgements: Sequence[Judgement] = (),
    config: RewardConfig | None = None,
    advantage: Advantage = Advantage.CENTERED,
    size: int | None = None,
) -> Exported:
    """Write one line a rollout, sorted by group and attempt; the same input gives the same bytes.

    Args:
        folder: the folder of the rollouts.
        rollouts: what it holds, or a part of it.
        to: the file; Parquet with a card beside it when it ends so.
        judgements: scores by rollout id.
        config: how rewards are made.
        advantage: the estimator.
        size: rollouts that a group should have; None for as many as it has.

    Raises:
        UserError: the policy asks for scores and there are none.
        InfraError: boundary ``storage``.
    """
    config = config or RewardConfig()
    if config.policy is not RubricPolicy.NONE and not judgements:
        raise UserError(
            f"the policy {config.policy.value!r} needs scores",
            hint="run `skill2env judge run` and give its file",
        )
    scores = {item.id: item.score for item in judgements}
    lines: list[dict[str, Any]] = []
    groups = usable = dropped = with_tokens = 0
    for group in exported_groups(
        folder, rollouts, scores=scores, config=config, advantage=advantage, size=size
    ):
        groups += 1
        usable += any(line["usable"] for line in group)
        dropped += any(told["code"] == "rubric-dropped" for told in group[0]["diagnostics"])
        with_tokens += sum(bool(line["segments"]) for line in group)
        lines += group
    if to.suffix == ".parquet":
        write_parquet(lines, to, config)
    else:
        write_text(to, "".join(canonical_json(line) + "\n" for line in lines))
    return Exported(len(lines), groups, usable, dropped, with_tokens)


def exported_groups(
    folder: Path,
    rollouts: Sequence[Rollout],
    *,
    scores: Mapping[str, float | None],
    config: RewardConfig,
    advantage: Advantage = Advantage.CENTERED,
    size: int | None = None,
) -> Iterator[list[dict[str, Any]]]:
    """The lines of `export`, a group at a time, sorted by group and attempt; arguments as there."""
    groups: Mapping[str, list[Rollout]] = defaultdict(list)
    for item in rollouts:
        groups[item.group].append(item)
    for _, members in sorted(groups.items()):
        members.sort(key=lambda item: item.attempt)
        graded = [Graded(item.metrics, scores.get(item.id)) for item in members]
        yield list(_lines(folder, members, group_rewards(graded, config, size=size), advantage, scores))


def _lines(
    folder: Path,
    members: Sequence[Rollout],
    reward: GroupReward,
    advantage: Advantage,
    scores: Mapping[str, float | None],
) -> Iterator[dict[str, Any]]:
    gains = advantages(reward.rewards, advantage)
    for at, item in enumerate(members):
        stitched = _stitched(folder / item.place / TOKENS_FILE)
        broken = any(problem.severity is Severity.ERROR for problem in stitched.diagnostics)
        yield {
            "id": item.id,
            "group": item.group,
            "attempt": item.attempt,
            "task": item.task,
            "task_digest": item.task_digest,
            "step": item.step,
            "status": item.status.value,
            "metrics": item.metrics,
            "r_v": reward.outcomes[at],
            "passed": reward.passed[at],
            "score": scores.get(item.id),
            "r": reward.rewards[at],
            "advantage": gains[at],
            "rubric": reward.rubric,
            "usable": reward.usable and reward.rewards[at] is not None,
            "segments": [] if broken else [_segment(segment) for segment in stitched.segments],
            "diagnostics": [_told(problem) for problem in (*reward.diagnostics, *stitched.diagnostics)],
        }


def _segment(segment: Any) -> dict[str, Any]:
    return {
        "tokens": segment.tokens,
        "mask": [int(sampled) for sampled in segment.mask],
        "log_probs": segment.log_probs,
    }


def _told(problem: Diagnostic) -> dict[str, str]:
    return {
        "code": problem.code,
        "severity": problem.severity.value,
        "message": problem.message,
        "where": problem.where,
    }


def _stitched(file: Path) -> Stitched:
    """The sequences of a rollout: those of the main history first, then of others."""
    histories = read_json(file)
    segments: list[Any] = []
    found: list[Diagnostic] = []
    for history in cast("list[dict[str, Any]]", histories if isinstance(histories, list) else []):
        turns, problem = _turns(history)
        if problem is not None:
            found.append(problem)
            continue
        done = stitch(turns)
        segments += done.segments
        found += done.diagnostics
    return Stitched(tuple(segments), tuple(found))


def _turns(history: dict[str, Any]) -> tuple[list[SampledTurn], Diagnostic | None]:
    try:
        columns = [history[name] for name in ("prompts", "completions", "log_probs")]
        turns = [
            SampledTurn(tuple(map(int, prompt)), tuple(map(int, completion)), tuple(map(float, log_probs)))
            for prompt, completion, log_probs in zip(*columns, strict=True)
        ]
    except (KeyError, TypeError, ValueError) as error:
        text = f"prompts, completions and log-probabilities do not fit together: {error}"
        return [], Diagnostic(code="tokens-malformed", severity=Severity.ERROR, message=text)
    return turns, None
