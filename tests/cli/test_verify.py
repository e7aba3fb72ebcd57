"""`skill2env verify` and `skill2env explain` as a user calls them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from skill2env.cli.main import run
from skill2env.sandbox.images import BaseImage


@pytest.fixture
def tasks(builder: ModuleType, base: BaseImage, tmp_path: Path) -> Path:
    """A folder with one sound task and one whose solution fails."""
    folder = tmp_path / "tasks"
    builder.build_task(folder / "good", reference=base.reference)
    builder.build_task(
        folder / "bad", reference=base.reference, changes={"solution/solve.sh": "#!/bin/bash\nexit 4\n"}
    )
    return folder


@pytest.mark.sandbox
def test_accepted(tasks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(tasks / "good"), "--sandbox", "namespace"]) == 0
    shown = capsys.readouterr()
    assert "accepted" in shown.out
    assert "good: accepted" in shown.err


@pytest.mark.sandbox
def test_rejected_with_evidence(tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evidence = tmp_path / "evidence"
    assert run(["verify", str(tasks), "--evidence", str(evidence)]) == 1
    shown = capsys.readouterr()
    assert "oracle_error" in shown.out
    assert str(evidence) in shown.out
    assert "bad: rejected (oracle_error): oracle: " in shown.err
    assert (evidence / "bad" / "oracle" / "trial" / "agent" / "exit-code.txt").read_text() == "4"


@pytest.mark.sandbox
def test_json_is_one_record_a_task(tasks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(tasks), "--json", "--workers", "2"]) == 1
    shown = capsys.readouterr()
    records = [json.loads(line) for line in shown.out.splitlines()]
    assert shown.err == ""
    assert [(Path(record["path"]).name, record["verdict"], record["reason"]) for record in records] == [
        ("bad", "rejected", "oracle_error"),
        ("good", "accepted", None),
    ]
    assert all(
        {"path", "verdict", "reason", "boundary", "message", "gates"} == set(record) for record in records
    )
    assert {gate["gate"] for gate in records[1]["gates"]} >= {"files", "build", "nop", "oracle", "agreement"}


@pytest.mark.sandbox
def test_paper_level_and_profile(tasks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(tasks / "good"), "--json", "--level", "paper", "--profile", "foreign"]) == 0
    (record,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [gate["gate"] for gate in record["gates"]] == ["nop", "oracle"]


@pytest.mark.sandbox
def test_warnings_can_fail(builder: ModuleType, base: BaseImage, tmp_path: Path) -> None:
    task = builder.build_task(
        tmp_path / "task",
        reference=base.reference,
        changes={"tests/data/one.txt": "x"},
    )
    assert run(["verify", str(task)]) == 0
    assert run(["verify", str(task), "--fail-on", "warn"]) == 1


@pytest.mark.sandbox
def test_foreign_image_is_mapped(builder: ModuleType, tmp_path: Path) -> None:
    task = builder.build_task(tmp_path / "task", reference="somebody/image:1", metadata=False)
    call = ["verify", str(task), "--level", "paper", "--profile", "foreign"]
    assert run(call) == 3
    assert run([*call, "--base", "somebody/image:1=debian-bookworm"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["/nowhere/at/all"], "/nowhere/at/all does not exist"),
        (["/dev/null"], "/dev/null is no folder"),
        (["."], "no task in"),
        ([".", "--base", "x"], "REF=NAME"),
        ([".", "--base", "a=b", "--base", "a=c"], "two images"),
    ],
)
def test_wrong_usage(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["verify", *arguments]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "hint: " in shown
    assert "Traceback" not in shown


def test_wrong_usage_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(tmp_path), "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["error"]["kind"] == "usage"


@pytest.mark.sandbox
def test_interrupted(builder: ModuleType, base: BaseImage, tmp_path: Path) -> None:
    task = builder.build_task(
        tmp_path / "task", reference=base.reference, changes={"solution/solve.sh": "#!/bin/bash\nsleep 300\n"}
    )
    evidence = tmp_path / "evidence"
    process = subprocess.Popen(
        [sys.executable, "-m", "skill2env.cli.main", "verify", str(task), "--evidence", str(evidence)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HARBOR_TELEMETRY": "0"},
    )
    begun = time.monotonic()
    while not list(evidence.glob("task/oracle/*/agent")) and time.monotonic() - begun < 60:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors


def test_explain_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "nop_rewarded"]) == 0
    shown = capsys.readouterr().out
    assert "Doing nothing earns more than 0" in shown
    assert "What to do:" in shown


def test_explain_lists_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 0
    listed = capsys.readouterr().out
    assert run(["explain", "--json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert {"rejection", "skip", "infrastructure"} == {record["kind"] for record in records}
    assert all(record["name"] in listed for record in records)


def test_explain_as_json_and_a_typo(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "licence", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "skip"
    assert run(["explain", "licens"]) == 2
    assert "did you mean licence" in capsys.readouterr().err


def test_help_of_explain_needs_no_harbor() -> None:
    call = "run(['explain', 'sandbox'])"
    code = f"import sys; from skill2env.cli.main import run; {call}; sys.exit('harbor' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0
