"""`skill2env record`, then `compile --recordings`: the same tasks, with every check for real."""

import json
from pathlib import Path

import pytest

from skill2env.cli import main as cli

TEXT = """---
name: closing
description: Close a month of bookkeeping. Use when a ledger must be added up.
---
# Closing a month
Resolve every cancellation before anything is added up.
"""


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    folder = tmp_path / "closing"
    folder.mkdir()
    (folder / "SKILL.md").write_text(TEXT)
    return folder


def differing_lines(one: Path, two: Path) -> set[str]:
    first, second = (path.read_text().splitlines() for path in (one, two))
    return {line.partition(" ")[0] for line in set(first) ^ set(second)}


@pytest.mark.sandbox
def test_record_and_replay(skill: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = tmp_path / "rec"
    assert (
        cli.run(["record", str(skill), "--to", str(to), "--author", "scripted", "--allow-degraded", "--json"])
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    assert document["recordings"] == [{"folder": str(to / "closing"), "tasks": 1}]
    assert document["dataset"]["tasks"] == 1

    dataset, replayed = tmp_path / "rec-dataset", tmp_path / "replayed"
    command = [
        "compile",
        str(skill),
        "--recordings",
        str(to),
        "--out",
        str(replayed),
        "--seed",
        "5",
        "--allow-degraded",
        "--json",
    ]
    assert cli.run([*command, "--solution", "blind"]) == 0
    assert json.loads(capsys.readouterr().out)["dataset"]["tasks"] == 1
    (original,), (copy,) = (
        [path.parent for path in folder.glob("*/task.toml")] for folder in (dataset, replayed)
    )
    for path in sorted(original.rglob("*")):
        twin = copy / path.relative_to(original)
        if path.name != "task.toml":
            assert path.is_dir() or twin.read_bytes() == path.read_bytes()
    # Another seed gives another task; its axes are still those that the sessions were written for.
    assert differing_lines(original / "task.toml", copy / "task.toml") <= {
        "name",
        "seed",
        "digest",
        "freeze_digest",
        "evidence",
    }


def test_a_run_whose_sessions_would_not_be_stored(
    skill: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old-run").mkdir()
    (tmp_path / "old-run/ledger.sqlite").write_bytes(b"")
    arguments = ["record", str(skill), "--to", str(tmp_path / "rec"), "--run", str(tmp_path / "old-run")]
    assert cli.run([*arguments, "--author", "scripted"]) == 2
    error = capsys.readouterr().err
    assert "would not be held again" in error
    assert "--run" in error


def test_unknown_author(skill: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["record", str(skill), "--to", str(tmp_path / "rec"), "--author", "nobody"]) == 2
    assert "no author is called 'nobody'" in capsys.readouterr().err
