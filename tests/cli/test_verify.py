"""`skill2env verify` and `skill2env explain` as a user calls them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from skill2env.cli.main import run
from skill2env.sandbox.images import BaseImage
from skill2env.store import folders


@pytest.fixture(autouse=True)
def verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Verdicts of these tests are kept for themselves."""
    monkeypatch.setattr(folders, "verdicts_home", lambda: tmp_path / "verdicts")
    return tmp_path / "verdicts"


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
    assert all(set(records[0]) == set(record) for record in records)
    assert {"path", "task", "verdict", "reason", "boundary", "message", "mend", "trials", "gates"} <= set(
        records[0]
    )
    assert {gate["gate"] for gate in records[1]["gates"]} >= {"files", "build", "nop", "oracle", "agreement"}


@pytest.mark.sandbox
def test_every_report_of_one_run_and_an_instant_second_one(
    tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], verdicts: Path
) -> None:
    files = {
        name: tmp_path / "reports" / name for name in ("junit.xml", "out.sarif", "html", "history.jsonl")
    }
    call = ["verify", str(tasks), "--level", "paper"]
    for option, path in zip(("--junit", "--sarif", "--html", "--history"), files.values(), strict=True):
        call += [option, str(path)]
    assert run([*call, "--json"]) == 1
    before = tmp_path / "before.jsonl"
    before.write_text(capsys.readouterr().out)
    assert ElementTree.parse(files["junit.xml"]).getroot().get("failures") == "1"
    (error,) = json.loads(files["out.sarif"].read_text())["runs"][0]["results"]
    assert error["ruleId"] == "oracle-error"
    assert (files["html"] / "tasks" / "bad.html").is_file()
    assert len(list(verdicts.rglob("*.json"))) == 2

    begun = time.monotonic()
    assert run([*call, "--baseline", str(before)]) == 0
    assert time.monotonic() - begun < 3
    shown = capsys.readouterr().out
    assert "known" in shown
    assert "2 verdicts from the cache" in shown
    assert run(["health", str(files["history.jsonl"]), "--json"]) == 0
    assert [task["runs"] for task in json.loads(capsys.readouterr().out)] == [1, 1]
    assert run([*call, "--no-cache"]) == 1
    assert run(["health", str(files["history.jsonl"])]) == 0
    assert "oracle_error" in capsys.readouterr().out
    assert run(["health", str(files["history.jsonl"]), "--drift"]) == 0


@pytest.mark.sandbox
def test_twins_are_rejected_unless_asked_not_to(builder: ModuleType, base: BaseImage, tmp_path: Path) -> None:
    for name in ("one", "two"):
        builder.build_task(tmp_path / "set" / name, reference=base.reference)
    assert run(["verify", str(tmp_path / "set")]) == 1
    assert run(["verify", str(tmp_path / "set"), "--no-twins"]) == 0


@pytest.mark.slow
@pytest.mark.vast
def test_a_thousand_tasks(builder: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Broken ones, which no sandbox is needed for: what is left is finding, judging, comparing and telling."""
    for number in range(1000):
        builder.build_task(
            tmp_path / f"set/{number:04}", reference="x", changes={"tests/test.sh": "#!/bin/bash\nif"}
        )
    begun = time.monotonic()
    assert (
        run(["verify", str(tmp_path / "set"), "--sandbox", "namespace", "--html", str(tmp_path / "html")])
        == 1
    )
    assert time.monotonic() - begun < 120
    shown = capsys.readouterr()
    assert "rejected  shell_syntax  1000" in shown.out
    assert len(list((tmp_path / "html/tasks").iterdir())) == 1000


@pytest.mark.slow
@pytest.mark.sandbox
def test_one_broken_task_among_good_ones(
    builder: ModuleType, base: BaseImage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "set"
    builder.build_task(folder / "good", reference=base.reference)
    builder.build_task(folder / "no-settings", reference="x", changes={"task.toml": "="})
    builder.build_task(folder / "old", reference=base.reference, metadata=False, config=_schema("1.0"))
    builder.build_task(folder / "new", reference=base.reference, metadata=False, config=_schema("9.9"))
    builder.build_task(
        folder / "compose", reference=base.reference, metadata=False,
        changes={"environment/docker-compose.yaml": "services: {main: {build: .}}\n"},
    )  # fmt: skip
    builder.build_task(
        folder / "windows", reference=base.reference, metadata=False,
        config=lambda text: text.replace('os = "linux"', 'os = "windows"'),
    )  # fmt: skip
    (folder / "empty").mkdir()
    (folder / "empty" / "task.toml").mkdir()
    assert run(["verify", str(folder), "--level", "standard", "--no-twins", "--json"]) in (1, 3)
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = {Path(record["path"]).name: record for record in records}
    assert (found["good"]["verdict"], found["no-settings"]["reason"]) == ("accepted", "malformed")
    assert found["empty"]["reason"] == "malformed"
    assert [found[name]["verdict"] for name in ("old", "new")] == ["accepted", "accepted"]
    for name, words in (("compose", "compose services"), ("windows", "tasks for windows are not supported")):
        assert (found[name]["verdict"], found[name]["boundary"]) == ("infra", "sandbox")
        assert words in found[name]["message"]


def _schema(version: str) -> Callable[[str], str]:
    return lambda text: text.replace('schema_version = "1.4"', f'schema_version = "{version}"')


@pytest.mark.parametrize("option", ["--junit", "--sarif", "--history", "--html"])
def test_reports_that_cannot_be_written_are_refused_before_the_run(
    option: str, builder: ModuleType, tmp_path: Path
) -> None:
    builder.build_task(tmp_path / "task", reference="x")
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" if option == "--html" else tmp_path
    assert run(["verify", str(tmp_path / "task"), option, str(place)]) == 2


@pytest.mark.sandbox
def test_paper_level_and_profile(tasks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(tasks / "good"), "--json", "--level", "paper", "--profile", "foreign"]) == 0
    (record,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [gate["gate"] for gate in record["gates"]] == ["files", "nop", "oracle"]


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
def test_dates_are_compared_with_the_day_that_is_given(
    builder: ModuleType, base: BaseImage, tmp_path: Path, capsys: pytest.CaptureFixture[str], verdicts: Path
) -> None:
    reads = "import datetime\nprint('due 2026-06-20, graded', datetime.date.today())\n"
    task = builder.build_task(
        tmp_path / "task", reference=base.reference, changes={"tests/grade.py": reads + builder.GRADE}
    )
    calm = tmp_path / "calm"  # the same date, and nothing asks for the time
    builder.build_task(
        calm, reference=base.reference, changes={"tests/grade.py": f"# due 2026-06-20\n{builder.GRADE}"}
    )

    def codes(place: Path, *options: str) -> set[str]:
        assert run(["verify", str(place), "--json", "--sandbox", "namespace", *options]) == 0
        (record,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return {finding["code"] for gate in record["gates"] for finding in gate["findings"]}

    near = ("--today", "2026-06-01")
    assert "date-near-today" in codes(task, *near)
    assert "date-near-today" not in codes(task)
    assert "date-near-today" not in codes(task, "--today", "2031-01-01")
    assert "date-near-today" not in codes(calm, *near)
    assert len(list(verdicts.rglob("*.json"))) == 4
    assert run(["verify", str(task), "--fail-on", "warn", *near]) == 1
    assert run(["verify", str(task), "--today", "yesterday"]) == 2
    assert "yesterday" in capsys.readouterr().err


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
