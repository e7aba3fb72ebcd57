"""Every kind of damage to a run folder or its dataset is found and named; an untouched pair is consistent."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skill2env.audit import audit
from skill2env.batch import compile_batch
from skill2env.config import load_config
from skill2env.errors import UserError

pytestmark = pytest.mark.sandbox

SKILL = """---
name: cafe
description: Use this when the ledger of a cafe has to be added up by hand.
---
# Cafe
Add up every account of the ledger and leave out the lines that were voided.
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, base_image: Any) -> Path:
    """A run with one published task, made once."""
    del base_image
    folder = tmp_path_factory.mktemp("whole")
    (folder / "skill").mkdir()
    (folder / "skill/SKILL.md").write_text(SKILL)
    config = load_config(
        None, {"author.name": "scripted", "plan.workflows": 1, "sandbox.allow_degraded": True}
    )
    compile_batch([folder / "skill"], out=folder / "data", run=folder / "run", config=config)
    return folder


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    """A copy of it that may be damaged."""
    shutil.copytree(whole, tmp_path / "copy")
    return tmp_path / "copy"


def test_untouched(copy: Path) -> None:
    report = audit(copy / "run", copy / "data")
    assert report.problems == []
    assert dict(report.checked) == {"attempts": 1, "candidates": 1, "sessions": 3, "tasks in the dataset": 1}


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        audit(tmp_path)


def sql(*statements: str) -> Callable[[Path], None]:
    """Damage the ledger."""

    def damage(copy: Path) -> None:
        db = sqlite3.connect(copy / "run/ledger.sqlite")
        for statement in statements:
            db.execute(statement)
        db.commit()
        db.close()

    return damage


def candidate(copy: Path) -> Path:
    return next((copy / "run/candidates").iterdir())


def task(copy: Path) -> Path:
    return next((copy / "data").glob("*/task.toml")).parent


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "kept candidate candidates/": lambda c: shutil.rmtree(candidate(c)),
    "the kept candidate differs from its seal": lambda c: (candidate(c) / "tests/test.sh").chmod(0o644),
    "its seal is not in the ledger": sql("DELETE FROM freezes"),
    "the gates in the ledger and in its record differ": sql("UPDATE gate_runs SET evidence_digest = 'x'"),
    "planned 2 times in one run": sql(
        "INSERT INTO items SELECT run, position + 9, attempt_key, task_name, subject FROM items"
    ),
    "ended without having been planned": sql("DELETE FROM items"),
    "session it was made by is missing": lambda c: shutil.rmtree(next((c / "run/sessions").iterdir())),
    "a session that the ledger does not know": sql("DELETE FROM sessions WHERE phase = 'contract'"),
    "stray: a candidate that the ledger does not know": lambda c: (c / "run/candidates/stray").mkdir(),
    "the ledger does not say where": sql("DELETE FROM publications"),
    "holds another digest": sql("UPDATE publications SET digest = 'x'"),
    "but not in the dataset": sql(
        "UPDATE attempts SET task_name = 'a/b', record = replace(record, 'skill2env/cafe', 'skill2env/other')"
    ),
    "holds no dataset": lambda c: shutil.rmtree(c / "data"),
    "changed or missing since it was published": lambda c: (task(c) / "instruction.md").write_text("x"),
    "task.toml names other evidence": lambda c: replace(
        task(c) / "task.toml", 'evidence = "sha256:', 'evidence = "sha256:0'
    ),
    "the published task differs from its seal": lambda c: (task(c) / "tests/new.sh").write_text("x"),
    "a row of publications points to nothing": sql("PRAGMA foreign_keys = OFF", "DELETE FROM attempts"),
}  # fmt: skip


@pytest.mark.parametrize("said", DAMAGES)
def test_every_damage_is_named(copy: Path, said: str) -> None:
    DAMAGES[said](copy)
    problems = audit(copy / "run", copy / "data").problems
    assert [problem for problem in problems if said in problem], problems
