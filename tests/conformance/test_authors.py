"""What every author must do, whoever wrote it. A new author joins by one line in `BENCHES`.

The suite knows only the protocol: it plans, samples, and makes candidates with a host whose checks accept everything.
"""

import importlib.util
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from skill2env.authors.protocol import (
    Author,
    CreateReply,
    CreateRequest,
    PlanReply,
    PlanRequest,
    identity_for,
    pinned_axes,
)
from skill2env.authors.record import RecordingAuthor
from skill2env.authors.registry import AuthorSettings, make_author
from skill2env.authors.scripted import ScriptedAuthor
from skill2env.authors.workspace import collect
from skill2env.config import SolutionMode
from skill2env.create import create
from skill2env.create.fakes import FakeHost
from skill2env.create.freeze import scan
from skill2env.diversify import SpecRequest, sample_batch
from skill2env.ingest import load_skill
from skill2env.plan import Plan, plan_workflows
from skill2env.records import Candidate, Phase, Skill, TaskSpec


@dataclass(frozen=True)
class Bench:
    """An author and a skill it can work on."""

    make: Callable[[], Author]
    skill: Skill
    skill_dir: Path

    def plan(self) -> Plan:
        return plan_workflows(self.skill, self.skill_dir, self.make(), count=2, seed=7)

    def specs(self) -> list[TaskSpec]:
        plan, author = self.plan(), self.make()
        if plan.skipped is not None:
            pytest.skip(f"the author declines this skill: {plan.skipped.reason.value}: {plan.skipped.detail}")
        requests = [
            SpecRequest(self.skill, workflow, 0, pinned_axes(author, self.skill, workflow, 0))
            for workflow in plan.workflows
        ]
        return sample_batch(requests, run_seed=7)

    def create(self, spec: TaskSpec, work: Path, solution: SolutionMode = SolutionMode.INFORMED) -> Candidate:
        host = FakeHost().host()
        made = create(spec, self.skill, self.skill_dir, self.make(), host, work_dir=work, solution=solution)
        assert isinstance(made, Candidate), made
        return made


def _example(repository: Path) -> tuple[Skill, Path]:
    folder = repository / "examples/skills/expense-claim-audit"
    return load_skill(folder), folder


def scripted(repository: Path, _: Path) -> Bench:
    return Bench(lambda: make_author("scripted", AuthorSettings()), *_example(repository))


def replayed(repository: Path, tmp_path: Path) -> Bench:
    """What the scripted author did, recorded and replayed."""
    skill, folder = _example(repository)
    live = Bench(lambda: RecordingAuthor(ScriptedAuthor(), tmp_path / "rec"), skill, folder)
    for spec in live.specs():
        live.create(spec, tmp_path / "live")
    settings = AuthorSettings(recordings=tmp_path / "rec")
    return Bench(lambda: make_author("recorded", settings), skill, folder)


def recorded_examples(repository: Path, _: Path) -> Bench:
    """The recordings that are shipped."""
    settings = AuthorSettings(recordings=repository / "examples/recordings")
    return Bench(lambda: make_author("recorded", settings), *_example(repository))


def code(repository: Path, tmp_path: Path) -> Bench:
    if importlib.util.find_spec("skill2env.authors.code.author") is None:
        pytest.skip("the code author is not part of this checkout")
    settings = AuthorSettings(cache=tmp_path / "cache")
    return Bench(lambda: make_author("code", settings), *_example(repository))


BENCHES = [
    scripted,
    replayed,
    recorded_examples,
    pytest.param(code, marks=[pytest.mark.sandbox, pytest.mark.slow]),
]


@pytest.fixture(params=BENCHES)
def bench(request: pytest.FixtureRequest, repository: Path, tmp_path: Path) -> Bench:
    return request.param(repository, tmp_path)


def test_it_is_an_author_and_knows_who_it_is(bench: Bench) -> None:
    one, two = bench.make(), bench.make()
    assert isinstance(one, Author)
    assert one.identity == two.identity
    assert one.identity.name
    assert identity_for(one, bench.skill) == identity_for(two, bench.skill)


def test_plan_holds_and_repeats(bench: Bench) -> None:
    request = PlanRequest(bench.skill, bench.skill_dir, count=2, prompt="", seed=7)
    reply = bench.make().plan(request)
    assert PlanReply.model_validate_json(reply.model_dump_json()) == reply
    plan = bench.plan()
    assert plan == bench.plan()
    assert bool(plan.workflows) != bool(plan.skipped)
    assert not [loss for loss in plan.dropped if not loss.reason.partial]


def test_candidates_repeat_byte_for_byte(bench: Bench, tmp_path: Path) -> None:
    for spec in bench.specs():
        first, second = (bench.create(spec, tmp_path / name) for name in ("one", "two"))
        assert scan(first.path) == scan(second.path)
        assert first.freeze_digest == second.freeze_digest
        assert first.spec.axes == spec.axes


def test_blind_gives_the_same_contract(bench: Bench, tmp_path: Path) -> None:
    spec = bench.specs()[0]
    seen = bench.create(spec, tmp_path / "one")
    blind = bench.create(spec, tmp_path / "two", SolutionMode.BLIND)
    assert seen.freeze_digest == blind.freeze_digest


def test_sessions_stay_in_their_workspace(bench: Bench, tmp_path: Path) -> None:
    spec, author = bench.specs()[0], bench.make()
    around, skill_before = tmp_path / "around", scan(bench.skill_dir)
    for phase in (Phase.CONTRACT, Phase.SOLUTION):
        workspace = around / phase.value
        (workspace / "task").mkdir(parents=True)
        (workspace / "source").mkdir()
        beside = scan(around)
        reply = author.create(
            CreateRequest(spec, bench.skill, bench.skill_dir, phase=phase, workspace=workspace, prompt="")
        )
        assert CreateReply.model_validate_json(reply.model_dump_json()) == reply
        written = set(scan(around)) - set(beside)
        assert written
        assert all(path.startswith(f"{phase.value}/task/") for path in written)
        taken = collect(workspace / "task", tmp_path / f"taken-{phase.value}")
        assert taken.refusals == ()
        if phase is Phase.SOLUTION:
            assert all(path.startswith("solution/") for path in taken.files)
            assert "solution/solve.sh" in taken.files
    assert scan(bench.skill_dir) == skill_before


def test_contract_names_the_catalog_base_and_no_digest(bench: Bench, tmp_path: Path) -> None:
    made = bench.create(bench.specs()[0], tmp_path / "one")
    collected = tmp_path / "one/contract-0/files"
    assert "FROM debian-bookworm" in (collected / "environment/Dockerfile").read_text()
    assert not (collected / "task.toml").exists()
    assert made.base_image.startswith("debian-bookworm@sha256:")


def test_a_round_that_it_cannot_do_is_a_reply_and_no_error(bench: Bench, tmp_path: Path) -> None:
    spec = bench.specs()[0]
    workspace = tmp_path / "space"
    (workspace / "task/solution").mkdir(parents=True)
    request = CreateRequest(
        spec,
        bench.skill,
        bench.skill_dir,
        phase=Phase.REPAIR,
        workspace=workspace,
        prompt="",
        round=9,
        feedback="the sum is 0",
    )
    assert isinstance(bench.make().create(request), CreateReply)


def test_many_at_once(bench: Bench, tmp_path: Path) -> None:
    specs = bench.specs() * 3
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(bench.create, specs, [tmp_path / f"w{number}" for number in range(len(specs))]))
    for spec in specs:
        digests = {one.freeze_digest for one in made if one.spec == spec}
        assert len(digests) == 1
