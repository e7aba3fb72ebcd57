import json

import pytest

from skill2env.cli import main as cli
from skill2env.cli.doctor import is_ready
from skill2env.sandbox.doctor import Check, Status


@pytest.mark.parametrize(
    ("failed", "engine", "ready"),
    [
        ("", Status.ABSENT, True),
        ("sandbox", Status.ABSENT, False),
        ("sandbox", Status.WARN, False),
        ("sandbox", Status.OK, True),
        ("cache", Status.OK, False),
    ],
)
def test_an_engine_stands_in_for_the_sandbox_only(failed: str, engine: Status, ready: bool) -> None:
    checks = [
        Check(name, Status.FAIL if name == failed else Status.OK, "told")
        for name in ("platform", "python", "cache", "sandbox")
    ]
    assert is_ready([*checks, Check("docker", engine, "told")]) is ready


def test_doctor_prints_checks_and_fixes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = [Check("cache", Status.FAIL, "full", "rm -r something"), Check("python", Status.OK, "fine")]
    monkeypatch.setattr("skill2env.sandbox.doctor.examine", lambda: checks)
    assert cli.run(["doctor"]) == 3
    told = capsys.readouterr().out
    assert "rm -r something" in told
    assert "not ready" in told
    assert cli.run(["doctor", "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["ready"] is False
    assert document["checks"][0] == {
        "name": "cache",
        "status": "fail",
        "told": "full",
        "fix": "rm -r something",
    }
