import json
from pathlib import Path

import pytest

from skill2env.cli.main import run
from skill2env.records import Skill

TEXT = """---
name: sums
description: Adds: numbers. Use when a column has to be summed.
license: MIT
---
See [a](references/a.md)
"""


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    folder = tmp_path / "all" / "sums"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(TEXT)
    (folder / "scripts/sum.py").write_text("print(1)\n")
    return folder


def test_show_says_what_was_understood(skill: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["skill", "show", str(skill)]) == 0
    shown = capsys.readouterr().out
    for words in (
        "sums\n",
        "MIT (front matter, SKILL.md: MIT)",
        "- Use when a column has to be summed.",
        "scripts/\n    sum.py",
        "references/a.md",
        "Warnings (",
        "unquoted-colon: ",
        "[SKILL.md:3]",
        "Notes (",
        "upstream-validator: ",
    ):
        assert words in shown


def test_show_json_is_the_record(skill: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["skill", "show", str(skill / "SKILL.md"), "--json"]) == 0
    assert Skill.model_validate_json(capsys.readouterr().out).missing_references == ("references/a.md",)


def test_list_counts_and_explains(skill: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (skill.parent / "linked").symlink_to("sums")
    assert run(["skill", "list", str(skill.parent)]) == 0
    shown = capsys.readouterr().out
    assert "1 skills" in shown
    assert "symlinked-folder" in shown
    assert run(["skill", "list", str(skill.parent), "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["skills"]
    assert (listed["name"], listed["files"], listed["licence"]) == ("sums", 2, "MIT")


def test_mistakes_are_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "AGENTS.md").touch()
    for verb in ("show", "list"):
        assert run(["skill", verb, str(tmp_path)]) == 2
        said = capsys.readouterr().err
        assert "no SKILL.md" in said
        assert "AGENTS.md" in said
    assert run(["skill", "show", str(tmp_path / "gone")]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_untrusted_text_cannot_steer_the_terminal(skill: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (skill / "SKILL.md").write_text(
        '---\nname: "a\\e]0;x\\a"\ndescription: "b\\e[2J \u202e [bold]"\n---\nbody\n'
    )
    (skill / "x\u200by.txt").touch()
    assert run(["skill", "show", str(skill)]) == 0
    shown = capsys.readouterr().out
    assert all(char == "\n" or char.isprintable() for char in shown)
    assert "[bold]" in shown
