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

CODE_SKILL: dict[str, str] = {
    "SKILL.md": """\
---
name: booking-slots
description: Merge, cut and price booking slots of a meeting room. Use when a calendar export has overlapping bookings.
license: Apache-2.0
---
# Booking slots

A slot is a half-open range of minutes: it includes its start and excludes its end.

- Sort the slots by start before merging anything.
- Two slots that only touch are one slot after merging.
- Never charge a minute twice, even when two bookings cover it.
- Round a price up to the next full cent at the very end.
""",
    "scripts/slots.py": '''\
"""Slots of a meeting room, as (start, end) pairs of minutes."""


def merge(slots):
    """Merge overlapping and touching slots, sorted by start."""
    merged = []
    for start, end in sorted(slots):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def minutes(slots):
    """Minutes that are covered at least once."""
    return sum(end - start for start, end in merge(slots))


def cut(slots, low, high):
    """Keep what lies between low and high."""
    kept = []
    for start, end in merge(slots):
        start, end = max(start, low), min(end, high)
        if start < end:
            kept.append((start, end))
    return kept


def price(slots, cents_per_hour, free=0):
    """Price in cents, rounded up; the first `free` minutes cost nothing."""
    charged = max(0, minutes(slots) - free)
    return -(-charged * cents_per_hour // 60)


def label(minute):
    """Clock time of a minute of the day."""
    if not 0 <= minute < 1440:
        raise ValueError(f"no minute of the day: {minute}")
    return f"{minute // 60:02d}:{minute % 60:02d}"
''',
    "tests/test_slots.py": """\
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import slots


def test_merge():
    assert slots.merge([(60, 90), (0, 30), (30, 45), (80, 100), (5, 5)]) == [(0, 45), (60, 100)]
    assert slots.merge([]) == []


def test_minutes():
    assert slots.minutes([(0, 60), (30, 90)]) == 90
    assert slots.minutes([(0, 10), (20, 25)]) == 15


def test_cut():
    assert slots.cut([(0, 100), (200, 300)], 50, 250) == [(50, 100), (200, 250)]
    assert slots.cut([(0, 50)], 50, 80) == []


def test_price():
    assert slots.price([(0, 61)], 100) == 102
    assert slots.price([(0, 30)], 100, free=45) == 0
    assert slots.price([(0, 600), (660, 720)], 1250, free=15) == 13438


def test_label():
    assert slots.label(75) == "01:15"
    assert slots.label(1439) == "23:59"
""",
}
"""A skill of our own whose code has tests; as files in this folder, pytest would collect them."""


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
        assert plan.skipped is None, "the suite's own skills suit their authors"
        assert plan.workflows
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


def drills(repository: Path, _: Path) -> Bench:
    """An author of somebody's own, named by its file."""
    name, folder = (
        f"{repository}/examples/training/drills.py:make_author",
        repository / "examples/training/shell-files",
    )
    return Bench(lambda: make_author(name, AuthorSettings()), load_skill(folder), folder)


def code(_: Path, tmp_path: Path) -> Bench:
    if importlib.util.find_spec("skill2env.authors.code.author") is None:
        pytest.skip("the code author is not part of this checkout")
    folder = tmp_path / "booking-slots"
    for path, text in CODE_SKILL.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    settings = AuthorSettings(
        cache=tmp_path.parent / "code-cache"
    )  # shared by the tests of this file: studies are slow
    return Bench(lambda: make_author("code", settings), load_skill(folder), folder)


BENCHES = [
    scripted,
    replayed,
    recorded_examples,
    drills,
    pytest.param(code, marks=[pytest.mark.sandbox, pytest.mark.slow, pytest.mark.vast]),
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
