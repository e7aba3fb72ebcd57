import math
import random
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.axes import AXIS_NAMES, axis_values
from skill2env.diversify import (
    AxisCounts,
    SpecRequest,
    balance,
    derive_seed,
    evenness,
    sample_batch,
    task_name,
)
from skill2env.records import Axes, Skill, TaskSpec, Workflow, digest_of


def skill(number: int, slug: str = "") -> Skill:
    return Skill(
        name=f"s{number}", slug=slug or f"s{number}", description="", body="", digest=digest_of(number)
    )


def workflow(name: str = "w", suitable: dict[str, tuple[str, ...]] | None = None) -> Workflow:
    return Workflow(
        name=name,
        summary="",
        scenario="",
        initial_world="",
        planted_problem="",
        difficulty_source="",
        solution_sketch="",
        verifier_strategy="",
        grounding=("x",),
        suitable=suitable or {},
    )


SUITABLE = st.dictionaries(
    st.sampled_from(AXIS_NAMES),
    st.lists(st.sampled_from(["repair", "terse", "of-my-own", "turns-05-10"]), min_size=1, unique=True).map(
        tuple
    ),
)
REQUESTS = st.lists(
    st.builds(
        SpecRequest,
        skill=st.integers(0, 5).map(skill),
        workflow=st.sampled_from(["a", "b"]).map(workflow),
        variant=st.integers(0, 3),
    ),
    max_size=25,
)


@given(requests=REQUESTS, seed=st.integers(0, 2**63 - 1), order=st.randoms())
def test_order_of_requests_never_matters(
    requests: list[SpecRequest], seed: int, order: random.Random
) -> None:
    straight = {spec.task_name: spec for spec in sample_batch(requests, run_seed=seed)}
    mixed = list(requests)
    order.shuffle(mixed)
    assert {spec.task_name: spec for spec in sample_batch(mixed, run_seed=seed)} == straight


@given(requests=REQUESTS, seed=st.integers(0, 2**63 - 1))
def test_one_name_a_key(requests: list[SpecRequest], seed: int) -> None:
    specs = sample_batch(requests, run_seed=seed)
    names = {request.key: spec.task_name for request, spec in zip(requests, specs, strict=True)}
    assert len(set(names.values())) == len(names)
    assert all(name.startswith("skill2env/") and len(name.partition("/")[2]) <= 64 for name in names.values())


@given(suitable=SUITABLE, seed=st.integers(0, 2**63 - 1), number=st.integers(0, 9))
def test_suitable_values_are_respected(suitable: dict[str, tuple[str, ...]], seed: int, number: int) -> None:
    spec = sample_batch([SpecRequest(skill(number), workflow("w", suitable))], run_seed=seed)[0]
    for axis, value in spec.axes.model_dump().items():
        assert value in suitable.get(axis, axis_values(axis))


@given(requests=REQUESTS, seed=st.integers(0, 2**31), cut=st.integers(0, 25))
def test_known_specs_stay_when_the_corpus_grows(requests: list[SpecRequest], seed: int, cut: int) -> None:
    known = sample_batch(requests[:cut], run_seed=seed)
    grown = {spec.task_name: spec for spec in sample_batch(requests, run_seed=seed, known=known)}
    assert all(grown[spec.task_name] == spec for spec in known)


def test_known_spec_of_a_changed_workflow_is_drawn_again() -> None:
    old = sample_batch([SpecRequest(skill(1), workflow("w"))], run_seed=1)
    narrowed = workflow("w", {"archetype": ("audit",)})
    new = sample_batch([SpecRequest(skill(1), narrowed)], run_seed=1, known=old)[0]
    assert new.workflow == narrowed
    assert new.axes.archetype == "audit"


def test_another_seed_gives_other_axes() -> None:
    request = [SpecRequest(skill(number), workflow()) for number in range(12)]
    first, second = (sample_batch(request, run_seed=seed) for seed in (1, 2))
    assert sum(a.axes == b.axes for a, b in zip(first, second, strict=True)) <= 1


def test_seed_is_pinned() -> None:
    """Written down once: a change here would silently give every existing run new tasks."""
    assert derive_seed(7, "sha256:ab", "flow", 2) == 650988578603379320
    assert task_name("org", "Über skill", "flow", 0xABCDEF) == "org/ber-skill-flow-00abcdef"
    assert task_name("org", "x" * 90, "flow", 1).endswith("-00000001")


def test_pinned_axes_are_kept_and_counted() -> None:
    pinned = Axes(
        archetype="mine", verifier_pattern="v", complexity="c", persona="p", tone="terse", expertise="e"
    )
    first = SpecRequest(skill(1), workflow("a"), pinned=pinned)
    specs = sample_batch([first, SpecRequest(skill(1), workflow("b"))], run_seed=3)
    assert specs[0].axes == pinned
    counts = AxisCounts.of(specs)
    assert counts.single["archetype", "mine"] == 1
    assert counts.total == 2


def plain(requests: list[SpecRequest], seed: int) -> list[TaskSpec]:
    rng = random.Random(seed)
    specs = sample_batch(requests, run_seed=seed)
    return [
        spec.model_copy(update={"axes": Axes(**{axis: rng.choice(axis_values(axis)) for axis in AXIS_NAMES})})
        for spec in specs
    ]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_steering_beats_plain_sampling(seed: int) -> None:
    requests = [SpecRequest(skill(number // 3), workflow(f"w{number % 3}")) for number in range(60)]
    steered, chance = balance(sample_batch(requests, run_seed=seed)), balance(plain(requests, seed))
    assert all(steered[axis] > 0.97 for axis in AXIS_NAMES)
    assert min(chance[axis] for axis in AXIS_NAMES) < 0.95
    pairs = [name for name in steered if " x " in name]
    mean = {
        name: sum(found[p] for p in pairs) / len(pairs) for name, found in (("s", steered), ("c", chance))
    }
    assert mean["s"] > mean["c"] + 0.15


@pytest.mark.parametrize("seed", [1, 2])
def test_a_corpus_uses_every_value_evenly_and_every_pair_of_work_and_grading(seed: int) -> None:
    """Two hundred skills, a quarter of whose workflows suit only some values."""
    narrow = {"archetype": ("repair", "audit"), "verifier_pattern": ("recompute", "behavioural", "state")}
    requests = [
        SpecRequest(skill(number // 3), workflow(f"w{number % 3}", narrow if number % 4 == 0 else None))
        for number in range(600)
    ]
    specs = sample_batch(requests, run_seed=seed)
    for axis in AXIS_NAMES:
        counts = Counter(spec.axes.model_dump()[axis] for spec in specs)
        entropy = -sum(n / len(specs) * math.log(n / len(specs)) for n in counts.values())
        assert entropy / math.log(len(axis_values(axis))) >= 0.95, axis
    pairs = {(spec.axes.archetype, spec.axes.verifier_pattern) for spec in specs}
    assert pairs == set(product(axis_values("archetype"), axis_values("verifier_pattern")))


def test_variants_of_one_skill_differ() -> None:
    specs = sample_batch([SpecRequest(skill(1), workflow("w"), variant) for variant in range(4)], run_seed=5)
    for axis in AXIS_NAMES:
        assert len({spec.axes.model_dump()[axis] for spec in specs}) == 4


def test_evenness() -> None:
    assert evenness({}, 4) == 0
    assert evenness({"a": 5}, 4) == pytest.approx(0.25)
    assert evenness(Counter("abcd"), 4) == pytest.approx(1)
    assert evenness({"a": 3, "b": 1}, 2) == pytest.approx(0.8774, abs=1e-4)
