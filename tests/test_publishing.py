"""What is held back from the dataset: tasks that were accepted where agent and root are one user."""

from pathlib import Path
from typing import Any

import pytest

from skill2env import parts
from skill2env.batch import BatchStatus, compile_batch
from skill2env.config import load_config

SKILL = """---
name: cafe
description: Use this when the ledger of a cafe has to be added up by hand.
---
# Cafe
Add up every account of the ledger and leave out the lines that were voided.
"""


@pytest.mark.sandbox
def test_accepted_in_a_single_uid_sandbox(
    tmp_path: Path, base_image: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    del base_image
    monkeypatch.setattr(parts.Parts, "degraded", "degraded: single-uid")
    (tmp_path / "skill").mkdir()
    (tmp_path / "skill/SKILL.md").write_text(SKILL)
    flags: dict[str, Any] = {"author.name": "scripted", "plan.workflows": 1}

    def compile_(**more: Any) -> Any:
        config = load_config(None, flags | {key.replace("__", "."): value for key, value in more.items()})
        return compile_batch([tmp_path / "skill"], out=tmp_path / "data", run=tmp_path / "run", config=config)

    held = compile_()
    assert held.status is BatchStatus.PENDING
    assert [(row.status, row.reason, row.count) for row in held.reasons] == [("infra", "sandbox", 1)]
    assert any("--allow-degraded" in sentence for sentence in held.advice), "it says what to do"
    assert not list((tmp_path / "data").glob("*/task.toml"))

    agreed = compile_(sandbox__allow_degraded=True)
    assert agreed.status is BatchStatus.FINISHED
    (published,) = (tmp_path / "data").glob("*/task.toml")
    assert "degraded: single-uid" in published.read_text(), "the task says so itself"
