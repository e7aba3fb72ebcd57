"""Several tasks at once, the machine they share, retries, and the explanations."""

import dataclasses
import os
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from types import ModuleType

import pytest

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.records import GateOutcome, Reason, SkipReason, VerdictStatus
from skill2env.sandbox.images import BaseImage
from skill2env.verify import explain as explaining
from skill2env.verify import verify as verifying
from skill2env.verify.explain import explain, names
from skill2env.verify.gate import Gate, GateContext, Report, Subject
from skill2env.verify.machine import Machine
from skill2env.verify.many import (
    Verified,
    find_tasks,
    profile_of,
    require_evidence_folder,
    verify_many,
)
from skill2env.verify.rules import RULES, Profile

Make = Callable[..., Path]


def test_tasks_are_found_wherever_they_lie(builder: ModuleType, tmp_path: Path) -> None:
    for place in ("set/one", "set/org/two", "set/.hidden/three", "four"):
        builder.build_task(tmp_path / place, reference="x")
    (tmp_path / "set" / "no-settings" / "tests").mkdir(parents=True)
    (tmp_path / "set" / "no-settings" / "tests" / "test.sh").write_text("x")
    (tmp_path / "set" / "notes").mkdir()
    found = find_tasks([tmp_path / "four", tmp_path / "set", tmp_path / "set" / "one"])
    assert [path.relative_to(tmp_path).as_posix() for path in found] == [
        "four",
        "set/no-settings",
        "set/one",
        "set/org/two",
    ]


@pytest.mark.parametrize("name", ["absent", "empty"])
def test_nothing_to_judge_is_the_users_to_mend(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError) as caught:
        find_tasks([tmp_path / name])
    assert name in caught.value.message
    assert caught.value.hint


def test_provenance_decides_the_profile(builder: ModuleType, tmp_path: Path) -> None:
    ours = builder.build_task(tmp_path / "a", reference="x")
    foreign = builder.build_task(tmp_path / "b", reference="x", metadata=False)
    broken = builder.build_task(tmp_path / "c", reference="x", changes={"task.toml": "="})
    assert [profile_of(task) for task in (ours, foreign, broken)] == [
        Profile.OURS,
        Profile.FOREIGN,
        Profile.FOREIGN,
    ]


@pytest.mark.sandbox
def test_verdicts_do_not_depend_on_company(
    builder: ModuleType, base: BaseImage, tmp_path: Path, context: GateContext
) -> None:
    tasks = [
        builder.build_task(tmp_path / "x" / "task", reference=base.reference),
        builder.build_task(
            tmp_path / "y" / "task", reference=base.reference, changes={"solution/solve.sh": "#!/bin/bash\n"}
        ),
        builder.build_task(tmp_path / "z", reference=base.reference, changes={"task.toml": "="}),
    ]
    seen: list[Path] = []
    verified = verify_many(
        tasks, profile=None, context=context, workers=3, on_done=lambda item: seen.append(item.path)
    )
    assert [item.path for item in verified] == tasks
    assert sorted(seen) == sorted(tasks)
    assert [item.verdict.reason for item in verified] == [None, Reason.ORACLE_FAILED, Reason.MALFORMED]
    assert {path.name for path in context.evidence.iterdir()} == {"task", "task-2", "z"}
    alone = verify_many(tasks, profile=None, context=context, workers=1)
    digests = [
        [[gate.evidence_digest() for gate in item.verdict.gates] for item in batch]
        for batch in (verified, alone)
    ]
    assert digests[0] == digests[1]


@pytest.mark.sandbox
def test_bug_in_a_callback_stops_everything(
    builder: ModuleType, base: BaseImage, tmp_path: Path, context: GateContext
) -> None:
    good = builder.build_task(tmp_path / "good", reference=base.reference, changes={"task.toml": "="})
    slow = builder.build_task(
        tmp_path / "slow", reference=base.reference, changes={"solution/solve.sh": "#!/bin/bash\nsleep 200\n"}
    )

    def explode(verified: Verified) -> None:
        while not (context.evidence / "slow" / "oracle").is_dir():
            time.sleep(0.1)
        time.sleep(1)
        raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        verify_many([good, slow], profile=None, context=context, workers=2, on_done=explode)
    assert time.monotonic() - begun < 60


@pytest.fixture
def nobody() -> Generator[None]:
    """Lose root's rights to every file for a while."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    yield
    if root:
        os.seteuid(0)


def test_evidence_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file is no folder"):
        require_evidence_folder(tmp_path / "file" / "evidence")


@pytest.mark.parametrize("closed", ["evidence", "evidence/one"])
@pytest.mark.parametrize("mode", [0o000, 0o555, 0o333])
def test_evidence_that_cannot_be_read_or_written(
    closed: str, mode: int, builder: ModuleType, nobody: None
) -> None:
    del nobody
    with (
        tempfile.TemporaryDirectory() as name
    ):  # pytest's own folders are closed to everybody but their owner
        scratch = Path(name)
        task = builder.build_task(scratch / "set" / "one", reference="x")
        (scratch / "evidence" / "one").mkdir(parents=True)
        (scratch / closed).chmod(mode)
        with pytest.raises(InfraError, match="Permission denied") as caught:
            require_evidence_folder(scratch / "evidence", [task])
        (scratch / closed).chmod(0o755)
        assert (caught.value.boundary, caught.value.transient) == (Boundary.STORAGE, False)
        assert str(scratch / closed) in caught.value.message
        assert require_evidence_folder(scratch / "evidence", [task]) == (scratch / "evidence").resolve()


def test_a_file_where_the_logs_of_a_task_go(builder: ModuleType, tmp_path: Path) -> None:
    task = builder.build_task(tmp_path / "set" / "one", reference="x")
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "one").write_text("mine")
    with pytest.raises(UserError, match="where the logs of a task go"):
        require_evidence_folder(tmp_path / "evidence", [task])
    assert (tmp_path / "evidence" / "one").read_text() == "mine"


class Shaky:
    """A gate that fails as often as it is told."""

    def __init__(self, times: int, *, transient: bool = True) -> None:
        self.left = times
        self.calls = 0
        self.transient = transient

    def __call__(self, subject: Subject, context: GateContext) -> Report:
        self.calls += 1
        if self.left:
            self.left -= 1
            raise InfraError(Boundary.NETWORK, "the mirror is away", hint="wait", transient=self.transient)
        return Report()


@pytest.mark.parametrize(
    ("times", "transient", "outcome", "calls"),
    [
        (1, True, GateOutcome.PASSED, 2),
        (2, True, GateOutcome.PASSED, 3),
        (3, True, GateOutcome.INFRA, 3),
        (1, False, GateOutcome.INFRA, 1),
    ],
)
def test_failures_of_the_surroundings_are_retried_with_a_limit(
    times: int,
    transient: bool,
    outcome: GateOutcome,
    calls: int,
    make_task: Make,
    context: GateContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Shaky(times, transient=transient)
    monkeypatch.setattr(verifying, "GATES", (Gate("shaky", gate), Gate("after", lambda *_: Report())))
    monkeypatch.setattr(verifying, "_PAUSE_SEC", 0.0)
    patient = dataclasses.replace(context, infra_retries=2)
    verdict = verifying.verify(make_task(), profile=Profile.OURS, context=patient, all_gates=True)
    assert (verdict.gates[0].outcome, gate.calls) == (outcome, calls)
    if outcome is GateOutcome.INFRA:
        assert (verdict.status, verdict.boundary, verdict.reason) == (VerdictStatus.INFRA, "network", None)
        assert "wait" in verdict.message
        assert verdict.gates[1].outcome is GateOutcome.NOT_RUN


def test_a_loner_gets_its_turn_and_keeps_others_out() -> None:
    machine = Machine()
    events: list[str] = []
    inside = threading.Event()

    def alone() -> None:
        inside.set()
        with machine.alone():
            events.append("alone")
            time.sleep(0.05)
            events.append("alone ends")

    def late() -> None:
        with machine.shared():
            events.append("late")

    with machine.shared():
        loner = threading.Thread(target=alone)
        loner.start()
        inside.wait(5)
        time.sleep(0.05)
        newcomer = threading.Thread(target=late)
        newcomer.start()
        time.sleep(0.05)
        events.append("first ends")
    loner.join(5)
    newcomer.join(5)
    assert events == ["first ends", "alone", "alone ends", "late"]


@pytest.mark.parametrize("name", [*names(), *(rule.code for rule in RULES)])
def test_everything_is_explained(name: str) -> None:
    found = explain(name)
    assert found.meaning
    assert found.mend
    assert all(sentence.endswith(".") for sentence in found.mend)


def test_spelling_is_forgiven() -> None:
    assert explain(" Oracle-Failed ").name == Reason.ORACLE_FAILED.value
    assert explain("harbor-lint:root-agent").findings == ("harbor-lint:root-agent",)
    with pytest.raises(UserError) as caught:
        explain("orakel_failed")
    assert "oracle_failed" in caught.value.hint
    with pytest.raises(UserError) as caught:
        explain("zzzzzz")
    assert "explain" in caught.value.hint


def test_every_member_has_advice() -> None:
    assert set(explaining._SKIPS) == set(SkipReason)
    assert set(explaining._BOUNDARIES) == set(Boundary)
    covered = {rule.reason for rule in RULES} | set(explaining._REASONS)
    assert covered == set(Reason)


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = tmp_path / "set" / "closed"
    closed.mkdir(parents=True)

    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", refuse)
    with pytest.raises(UserError, match=r"cannot read .*: Permission denied"):
        find_tasks([tmp_path])


@pytest.mark.parametrize("place", ["set", "set/one", "set/one/logs"])
def test_evidence_stays_out_of_tasks(builder: ModuleType, tmp_path: Path, place: str) -> None:
    task = builder.build_task(tmp_path / "set" / "one", reference="x")
    with pytest.raises(UserError, match="into the task"):
        require_evidence_folder(tmp_path / place, [task])
    assert require_evidence_folder(tmp_path / "logs", [task]).is_dir()
