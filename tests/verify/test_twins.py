"""Which of twins stays, and who waits for whom."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from skill2env.records import GateOutcome, GateResult, Reason, Verdict, VerdictStatus
from skill2env.sandbox.images import BaseImage
from skill2env.verify.gate import GateContext
from skill2env.verify.many import verify_many
from skill2env.verify.rules import Profile
from skill2env.verify.twins import Company

ACCEPTED = Verdict(
    status=VerdictStatus.ACCEPTED, gates=(GateResult(gate="twins", outcome=GateOutcome.NOT_RUN),)
)
REJECTED = ACCEPTED.model_copy(update={"status": VerdictStatus.REJECTED, "reason": Reason.NOP_REWARDED})
INFRA = ACCEPTED.model_copy(update={"status": VerdictStatus.INFRA, "boundary": "network"})


@pytest.fixture
def three(builder: ModuleType, tmp_path: Path) -> list[Path]:
    return [builder.build_task(tmp_path / name, reference="x") for name in "abc"]


def test_the_first_stays(three: list[Path]) -> None:
    company = Company(three)
    assert company.waits_for(three[0]) == []
    assert set(company.waits_for(three[2])) == set(three[:2])
    settled = [company.settle(task, ACCEPTED, Profile.FOREIGN) for task in three]
    assert [verdict.reason for verdict in settled] == [None, Reason.DUPLICATE, Reason.DUPLICATE]
    assert "near-duplicate of a" in settled[2].message
    assert settled[2].gates[-1].values["twin"] == "a"
    assert settled[0].gates[-1].outcome is GateOutcome.PASSED


def test_a_rejected_task_makes_no_other_fall(three: list[Path]) -> None:
    company = Company(three)
    settled = [
        company.settle(task, verdict, Profile.OURS)
        for task, verdict in zip(three, (REJECTED, ACCEPTED, ACCEPTED), strict=True)
    ]
    assert [verdict.reason for verdict in settled] == [Reason.NOP_REWARDED, None, Reason.DUPLICATE]
    assert "near-duplicate of b" in settled[2].message


def test_undecided_tasks_leave_their_twins_undecided(three: list[Path]) -> None:
    company = Company(three[:2])
    assert company.settle(three[0], INFRA, Profile.OURS) == INFRA
    settled = company.settle(three[1], ACCEPTED, Profile.OURS)
    assert (settled.status, settled.boundary, settled.reason) == (VerdictStatus.INFRA, "network", None)


def test_a_rejection_is_not_replaced(three: list[Path]) -> None:
    company = Company(three[:2])
    company.settle(three[0], ACCEPTED, Profile.OURS)
    settled = company.settle(three[1], REJECTED, Profile.OURS, every=True)
    assert (settled.reason, settled.gates[-1].reason) == (Reason.NOP_REWARDED, Reason.DUPLICATE)


def test_alone_nothing_is_decided(three: list[Path]) -> None:
    assert Company(three[:1]).settle(three[0], ACCEPTED, Profile.OURS) == ACCEPTED


def test_a_thousand_copies_take_no_longer_than_a_look_each(builder: ModuleType, tmp_path: Path) -> None:
    tasks = [builder.build_task(tmp_path / f"{number:04}", reference="x") for number in range(300)]
    company = Company(tasks)
    settled = [company.settle(task, ACCEPTED, Profile.FOREIGN) for task in tasks]
    assert sum(verdict.status is VerdictStatus.ACCEPTED for verdict in settled) == 1


@pytest.mark.sandbox
@pytest.mark.parametrize("workers", [pytest.param(1, marks=[pytest.mark.slow, pytest.mark.vast]), 3])
def test_twins_fall_whatever_ends_first(
    builder: ModuleType, base: BaseImage, tmp_path: Path, context: GateContext, workers: int
) -> None:
    make: Callable[..., Path] = builder.build_task
    slow = builder.SOLVE_SH + "sleep 0.2\n"
    tasks = [
        make(tmp_path / "a", reference=base.reference, changes={"solution/solve.sh": slow}),
        make(tmp_path / "b", reference=base.reference),
    ]
    seen: list[str] = []
    verified = verify_many(
        tasks, profile=None, context=context, workers=workers, on_done=lambda one: seen.append(one.path.name)
    )
    assert [item.verdict.reason for item in verified] == [None, Reason.DUPLICATE]
    assert seen == ["a", "b"]
    alone = verify_many(tasks, profile=None, context=context, workers=workers, twins=False)
    assert [item.verdict.reason for item in alone] == [None, None]
