"""Workflow + seed -> TaskSpec, steered to what the corpus has too little of.

All specs of a batch are drawn before any author is asked, in one canonical order (skill digest, workflow, variant), so
neither the number of workers nor the order of the requests changes a result. A spec that is already known, because an
earlier run made it, keeps its axes and counts as history: adding a skill to a corpus changes nothing that exists.
"""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from skill2env.axes import AXIS_NAMES, axis_values
from skill2env.diversify.balance import PAIRS, AxisCounts
from skill2env.records import Axes, Skill, TaskSpec, Workflow, canonical_json, digest_bytes

MAX_SLUG_CHARS = 64
"""Longest second half of a task name, which is also its folder's name."""

_SUFFIX_CHARS = 8
_SKILL_WEIGHT = 3.0
"""Repeating a value within one skill costs this much: two tasks of a skill should not look alike."""
_SWEEPS = 2


@dataclass(frozen=True, slots=True)
class SpecRequest:
    """Ask for the TaskSpec of one variant of one workflow."""

    skill: Skill
    workflow: Workflow
    variant: int = 0
    pinned: Axes | None = None
    """Axes that the author insists on (see `authors.protocol.pinned_axes`); they are counted, never changed."""

    @property
    def key(self) -> tuple[str, str, int]:
        """What a spec is of; requests with equal keys give equal specs."""
        return (self.skill.digest, self.workflow.name, self.variant)


def derive_seed(run_seed: int, skill_digest: str, workflow: str, variant: int) -> int:
    """63-bit seed of one spec."""
    digest = digest_bytes(canonical_json([run_seed, skill_digest, workflow, variant]).encode())
    return int(digest.removeprefix("sha256:")[:16], 16) >> 1


def task_name(organisation: str, skill_slug: str, workflow: str, seed: int) -> str:
    """``organisation/slug``: readable, at most `MAX_SLUG_CHARS` after the slash, and unique through the seed."""
    suffix = f"{seed:016x}"[-_SUFFIX_CHARS:]
    stem = f"{skill_slug}-{workflow}"[: MAX_SLUG_CHARS - _SUFFIX_CHARS - 1]
    stem = re.sub(r"[^a-z0-9]+", "-", stem).strip("-") or "task"
    return f"{organisation}/{stem}-{suffix}"


def diversify(
    skill: Skill,
    workflow: Workflow,
    *,
    run_seed: int,
    variant: int,
    history: AxisCounts,
    pinned: Axes | None = None,
    organisation: str = "skill2env",
) -> TaskSpec:
    """Draw one spec and count it in `history`.

    Args:
        skill: whose workflow it is.
        workflow: its `suitable` values limit the draw; an axis that it does not name is free.
        run_seed: root of all seeds.
        variant: 0-based.
        history: counts of every spec drawn before, in canonical order; `sample_batch` takes care of that.
        pinned: axes to use as they are.
        organisation: first half of the task name.
    """
    seed = derive_seed(run_seed, skill.digest, workflow.name, variant)
    axes = pinned or _draw(random.Random(seed), skill.digest, _choices(workflow), history)
    history.add(skill.digest, axes)
    return TaskSpec(
        skill_digest=skill.digest,
        skill_slug=skill.slug,
        workflow=workflow,
        axes=axes,
        seed=seed,
        variant=variant,
        task_name=task_name(organisation, skill.slug, workflow.name, seed),
    )


def sample_batch(
    requests: Sequence[SpecRequest],
    *,
    run_seed: int,
    known: Iterable[TaskSpec] = (),
    organisation: str = "skill2env",
) -> list[TaskSpec]:
    """Draw the specs of a whole batch; the answer has the order of `requests`.

    Args:
        requests: in any order; equal keys (the same skill twice) give one and the same spec.
        run_seed: root of all seeds.
        known: specs of earlier runs. Those that a request asks for again, with the same workflow, seed and, where
            pinned, axes, are returned as they are; all of them count as history.
        organisation: first half of every task name.
    """
    kept = {(spec.skill_digest, spec.workflow.name, spec.variant): spec for spec in known}
    history = AxisCounts.of(kept.values())
    drawn: dict[tuple[str, str, int], TaskSpec] = {}
    for request in sorted(requests, key=lambda item: item.key):
        if request.key in drawn:
            continue
        earlier = kept.get(request.key)
        if earlier is not None and _still_valid(earlier, request, run_seed, organisation):
            drawn[request.key] = earlier
            continue
        drawn[request.key] = diversify(
            request.skill,
            request.workflow,
            run_seed=run_seed,
            variant=request.variant,
            history=history,
            pinned=request.pinned,
            organisation=organisation,
        )
    return [drawn[request.key] for request in requests]


def _still_valid(spec: TaskSpec, request: SpecRequest, run_seed: int, organisation: str) -> bool:
    return (
        spec.workflow == request.workflow
        and spec.seed == derive_seed(run_seed, *request.key)
        and spec.task_name.partition("/")[0] == organisation
        and (request.pinned is None or request.pinned == spec.axes)
    )


def _choices(workflow: Workflow) -> dict[str, tuple[str, ...]]:
    return {axis: workflow.suitable.get(axis) or axis_values(axis) for axis in AXIS_NAMES}


def _draw(
    rng: random.Random, skill_digest: str, choices: Mapping[str, tuple[str, ...]], history: AxisCounts
) -> Axes:
    """A random start, then each axis in random order moves to the value that makes the rarest combination.

    The start decides between equally rare values, so a seed matters even in an empty corpus.
    """
    values = {axis: rng.choice(choices[axis]) for axis in AXIS_NAMES}
    for _ in range(_SWEEPS):
        for axis in rng.sample(AXIS_NAMES, len(AXIS_NAMES)):
            options = rng.sample(choices[axis], len(choices[axis]))
            options.sort(key=lambda value: value != values[axis])  # stable: the present value wins ties
            values[axis] = min(
                options, key=lambda value: _cost(values | {axis: value}, axis, skill_digest, history)
            )
    return Axes(**values)


COVERED = ("archetype", "verifier_pattern")
"""The pair of axes of which every combination that workflows allow is used before any is used again and again."""


def _cost(values: Mapping[str, str], axis: str, skill_digest: str, history: AxisCounts) -> float:
    """How over-used the cells are in which `axis` takes part: counts relative to an even corpus."""
    size = len(axis_values(axis))
    value = values[axis]
    cost = (
        history.single[axis, value] * size + _SKILL_WEIGHT * history.skill[skill_digest, axis, value] * size
    )
    for left, right in PAIRS:
        if axis in {left, right}:
            cells = len(axis_values(left)) * len(axis_values(right))
            cost += history.pair[left, values[left], right, values[right]] * cells / len(AXIS_NAMES)
    if axis in COVERED:
        left, right = COVERED
        # However often a value was used: a kind of work that was never graded in some way comes first.
        cost -= (not history.pair[left, values[left], right, values[right]]) * history.total * size
    return cost
