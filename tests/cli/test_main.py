import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from skill2env.cli import main as cli
from skill2env.cli.output import ExitCode, dollars, error_record, print_table, size
from skill2env.errors import Boundary, BudgetReached, InfraError, UserError

PROGRAM = [sys.executable, "-m", "skill2env.cli.main"]


def call(*arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, check=False, **options)


def test_help_names_every_verb() -> None:
    done = call("--help")
    assert done.returncode == 0
    for verb, text in cli.VERBS.items():
        assert verb in done.stdout
        assert text.split()[0] in done.stdout


def test_help_imports_neither_pydantic_nor_harbor() -> None:
    code = (
        "import sys; from skill2env.cli.main import run; run(['--help']);"
        "sys.exit([m for m in ('pydantic', 'harbor', 'rich', 'jinja2') if m in sys.modules] or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage: skill2env" in done.stdout


def test_help_is_fast(tmp_path: Path) -> None:
    """Processor time with byte code, which does not depend on who else uses the machine."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    best = 9.0
    for _ in range(5):
        before = os.times()
        assert call("--help", env=environment).returncode == 0
        after = os.times()
        best = min(
            best, after.children_user + after.children_system - before.children_user - before.children_system
        )
    assert best < 0.2, f"--help took {best:.2f} s at best"


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_has_a_help_and_a_module(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(import_module(f"skill2env.cli.{verb}").app, typer.Typer)
    assert cli.run([verb, "--help"]) == 0
    assert f"Usage: skill2env {verb}" in capsys.readouterr().out


def test_version_and_unknown_verb() -> None:
    assert call("--version").stdout.startswith("skill2env ")
    done = call("compil")
    assert done.returncode == 2
    assert "Did you mean 'compile'?" in done.stderr


def test_usage_mistakes_are_json_when_asked() -> None:
    done = call("run", "show", "--json")
    assert done.returncode == 2
    assert json.loads(done.stderr)["error"]["kind"] == "usage"
    assert not done.stdout


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (UserError("m", hint="h"), ExitCode.USAGE, "usage"),
        (InfraError(Boundary.STORAGE, "m", hint="h"), ExitCode.INFRA, "infra"),
        (BudgetReached("m", hint="h"), ExitCode.BUDGET, "budget"),
    ],
)
def test_errors_become_messages_and_codes(
    error: Any, code: int, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer(add_completion=False)

    @app.command()
    def fail(as_json: bool = typer.Option(False, "--json")) -> None:
        raise error

    monkeypatch.setattr(cli, "import_module", lambda _: type("Module", (), {"app": app}))
    assert cli.run(["doctor"]) == code
    assert capsys.readouterr().err == "error: m\nhint: h\n"
    assert cli.run(["doctor", "--json"]) == code
    printed = json.loads(capsys.readouterr().err)
    assert printed == error_record(error)
    assert printed["error"]["kind"] == kind


def test_interrupts_and_bugs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    app = typer.Typer(add_completion=False)
    raised: list[BaseException] = [KeyboardInterrupt(), ZeroDivisionError("oops")]

    @app.command()
    def fail() -> None:
        raise raised.pop(0)

    monkeypatch.setattr(cli, "import_module", lambda _: type("Module", (), {"app": app}))
    assert cli.run(["doctor"]) == ExitCode.INTERRUPTED
    assert "run the same command again" in capsys.readouterr().err
    assert cli.run(["doctor"]) == 1
    said = capsys.readouterr().err
    assert "ZeroDivisionError: oops" in said
    assert "report" in said


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m skill2env.cli.main run list {tmp_path} --json | true; echo ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_completion_knows_verbs_without_loading_them() -> None:
    environment = {
        **os.environ,
        "_SKILL2ENV_COMPLETE": "complete_bash",
        "COMP_WORDS": "skill2env do",
        "COMP_CWORD": "1",
    }
    done = call(env=environment)
    assert done.stdout.split() == ["doctor"]


def test_tables_money_and_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("a", "b"), [("long value", 1), ("x", 22)])
    assert capsys.readouterr().out == "a           b\nlong value  1\nx           22\n"
    assert [dollars(n) for n in (0, 1_234, 2_500_000)] == ["$0.00", "$0.0012", "$2.50"]
    assert [size(n) for n in (5, 2048, 3 * 2**20, 5 * 2**30)] == ["5 B", "2.0 KiB", "3.0 MiB", "5.0 GiB"]


def test_output_survives_any_name_and_any_encoding(tmp_path: Path) -> None:
    skill = tmp_path / "skill\udcff"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: füchse\ndescription: Use it.\n---\nText\n", encoding="utf-8")
    for encoding in ("ascii:strict", "utf-8:strict", "utf-8:surrogateescape"):
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        assert call("skill", "list", str(tmp_path), env=environment).returncode == 0
        done = call(
            "skill", "list", str(tmp_path), "--json", env=environment, encoding="utf-8", errors="strict"
        )
        [listed] = json.loads(done.stdout)["skills"]
        assert (listed["name"], listed["path"]) == ("füchse", str(skill))


def test_a_full_or_closed_output_is_no_bug() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [*PROGRAM, "explain"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == ExitCode.INFRA
    assert done.stderr == "error: the output cannot be written: No space left on device\n"
    for closed in (">&-", "2>&-", "<&-"):
        script = f"{sys.executable} -m skill2env.cli.main explain {closed}"
        done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_nobody_reading_the_errors_changes_no_exit_code(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*PROGRAM, "run", "show", str(tmp_path)], stderr=writer, check=False)
    os.close(writer)
    assert done.returncode == ExitCode.USAGE


def test_run_list_names_what_it_cannot_read(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ledger.sqlite").write_bytes(
            b"no database, whatever its name says" if name == "a" else b""
        )
    done = call("run", "list", str(tmp_path), "--json")
    assert done.returncode == 0
    assert [row["status"] for row in json.loads(done.stdout)] == ["unreadable", "empty"]
    assert call("run", "list", str(tmp_path / "absent")).returncode == ExitCode.USAGE
