"""The action for the public forge: its inputs reach the program, and nothing in them becomes a command."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "verify_action.sh"


@pytest.fixture
def action() -> dict[str, Any]:
    return YAML(typ="safe").load((ROOT / "action.yml").read_text(encoding="utf-8"))


def test_every_input_is_used_and_every_variable_is_read(action: dict[str, Any]) -> None:
    steps = action["runs"]["steps"]
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert all(f"inputs.{name}" in text for name in action["inputs"])
    (verify,) = [step for step in steps if step.get("id") == "verify"]
    script = SCRIPT.read_text(encoding="utf-8")
    assert all(f"${{{name}" in script for name in verify["env"])


def test_no_input_becomes_part_of_a_command(action: dict[str, Any]) -> None:
    assert not [step for step in action["runs"]["steps"] if "${{" in step.get("run", "")]


def test_other_peoples_actions_are_pinned(action: dict[str, Any]) -> None:
    for step in action["runs"]["steps"]:
        name, _, version = step.get("uses", "").partition("@")
        # Code scanning refuses uploads of old versions, so that one follows its major version.
        assert not name or len(version) == 40 or name == "github/codeql-action/upload-sarif"


@pytest.mark.parametrize(("broken", "code"), [(False, 0), (True, 1)])
def test_the_script_writes_every_report(broken: bool, code: int, builder: ModuleType, tmp_path: Path) -> None:
    program = tmp_path / "skill2env"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nfrom skill2env.cli.main import main\nmain()\n", encoding="utf-8"
    )
    program.chmod(0o755)
    task = tmp_path / "a; touch pwned" / "$(touch pwned)"
    # Level paper would start trials; a script that cannot be parsed ends every level before that.
    changes = {"tests/test.sh": "#!/bin/bash\nif"} if broken else {}
    builder.build_task(task, reference="x", changes=changes)
    environment = {
        **os.environ,
        "SKILL2ENV": str(program) if broken else "/bin/true",
        "SKILL2ENV_CACHE": str(tmp_path / "cache"),
        "S2E_PATH": f"{task}\n\n",
        "S2E_SANDBOX": "namespace",
        "S2E_REPORT": str(tmp_path / "report"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }
    done = subprocess.run(
        ["sh", str(SCRIPT)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "output").read_text() == f"exit-code={code}\n"
    assert not list(tmp_path.rglob("pwned"))
    if broken:
        assert {path.name for path in (tmp_path / "report").iterdir()} == {
            "html", "junit.xml", "verify.jsonl", "verify.sarif",
        }  # fmt: skip
        assert json.loads((tmp_path / "report/verify.jsonl").read_text())["reason"] == "shell_syntax"
        assert "shell_syntax" in (tmp_path / "summary.md").read_text()


@pytest.mark.parametrize(
    ("settings", "day"),
    [
        ({}, ""),
        ({"S2E_TODAY": "2026-06-01"}, "2026-06-01"),
        ({"S2E_HISTORY": "health.jsonl"}, f"{datetime.now(UTC):%Y-}"),
        ({"S2E_HISTORY": "health.jsonl", "S2E_TODAY": "never"}, ""),
    ],
)
def test_a_run_with_a_history_compares_dates_with_the_runners_day(
    settings: dict[str, str], day: str, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{tmp_path}/arguments"\n', encoding="utf-8")
    program.chmod(0o755)
    environment = {
        **os.environ,
        "SKILL2ENV": str(program),
        "S2E_REPORT": str(tmp_path / "report"),
        **settings,
    }
    subprocess.run(["sh", str(SCRIPT)], cwd=tmp_path, env=environment, check=True, timeout=60)
    arguments = (tmp_path / "arguments").read_text(encoding="utf-8").splitlines()
    given = arguments[arguments.index("--today") + 1] if "--today" in arguments else ""
    assert given.startswith(day)
    assert bool(given) is bool(day)
