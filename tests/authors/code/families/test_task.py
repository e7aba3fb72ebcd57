"""What all families share: background from a skill's own requests, bands, lists of functions, scripts of solutions."""

from dataclasses import replace

import pytest

from skill2env.authors.code.behaviour import Behaviour
from skill2env.authors.code.families.base import Ground
from skill2env.authors.code.families.operate_words import CRAFT, WORDS
from skill2env.authors.code.families.task import Telling, bands, listed, solve_script, stated
from skill2env.authors.code.seeds import Seeds
from skill2env.authors.code.study import Study
from skill2env.authors.code.understand import Project
from skill2env.axes import Complexity, Tone
from skill2env.records import Axes, Skill, TaskSpec, Workflow

REQUESTS = ("Price the parcels of this week.", "Which zone has the dearest parcel?")


@pytest.fixture
def spec(parcel_skill: Skill) -> TaskSpec:
    flow = Workflow(
        name="operate-1", summary="s", scenario="s", initial_world="s", planted_problem="s", difficulty_source="s",
        solution_sketch="s", verifier_strategy="s", grounding=("s",),
    )  # fmt: skip
    axes = Axes(
        archetype="x",
        verifier_pattern="x",
        complexity="short",
        persona="x",
        tone="plain",
        expertise="outsider",
    )
    return TaskSpec(
        skill_digest=parcel_skill.digest, skill_slug="p", workflow=flow, axes=axes, seed=3, variant=0, task_name="t/t"
    )  # fmt: skip


@pytest.mark.parametrize("tone", [*Tone, "plain"])
@pytest.mark.parametrize("background", [True, False])
def test_requests_of_the_skill_are_background_only(
    parcel_skill: Skill, parcel_project: Project, spec: TaskSpec, tone: str, background: bool
) -> None:
    project = replace(parcel_project, seeds=Seeds(REQUESTS))
    found = Study(project, Behaviour({}, {}, {}, frozenset(), 0), (), {})
    spec = spec.model_copy(update={"axes": spec.axes.model_copy(update={"tone": tone})})
    fields = {"orders": "4 orders", "parts": "9", "target": "`parcel_rates.py`"}
    telling = Telling(
        "Title", "operate", WORDS, CRAFT, (), fields, details="The form.", background=background
    )
    told = stated(Ground(spec, parcel_skill, found), telling, "outbox")
    assert (REQUESTS[1] in told.instruction) is background
    assert REQUESTS[0] not in told.instruction
    assert "The form." in told.instruction
    assert told.artifacts == ("/app/parcel-rates/outbox",)
    assert all(metric.sentence in told.instruction for metric in told.metrics)


def test_bands_follow_what_there_is() -> None:
    least = {Complexity.LONG: 2, Complexity.DEEP: 3}
    assert bands(least, 1) == (Complexity.SHORT.value, Complexity.MODERATE.value)
    assert bands(least, 3)[-1] == Complexity.DEEP.value


def test_functions_in_a_sentence(parcel_project: Project) -> None:
    module = parcel_project.modules["parcel_rates.py"]
    pairs = [(info, module) for info in module.functions[:3]]
    assert listed(pairs[:1]) == "`weight_class` in `parcel_rates.py`"
    assert listed(pairs).count(",") == 1
    assert listed(pairs).count(" and ") == 1


def test_the_script_stops_at_the_first_failure() -> None:
    assert solve_script("true", "false").splitlines()[1] == "set -euo pipefail"
    assert solve_script("true", "false").endswith("true\nfalse\n")
