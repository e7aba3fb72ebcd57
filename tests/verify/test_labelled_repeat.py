"""Small tasks with labels, for the faults that only runs show: state, chance, surroundings, form, other solutions."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skill2env.records import Reason, VerdictStatus
from skill2env.verify.gate import GateContext, Level
from skill2env.verify.rules import Profile
from skill2env.verify.verify import verify

pytestmark = [pytest.mark.sandbox, pytest.mark.network, pytest.mark.slow]
TASKS = Path(__file__).resolve().parent.parent / "data" / "tasks"
LABELS: list[dict[str, Any]] = json.loads((TASKS / "labels.repeat.json").read_text(encoding="utf-8"))
STATUS = {"reject": VerdictStatus.REJECTED, "warn": VerdictStatus.ACCEPTED, None: VerdictStatus.ACCEPTED}

Copy = Callable[[str], Path]


@pytest.mark.parametrize("label", LABELS, ids=lambda label: label["id"])
def test_verdict_and_reason(label: dict[str, Any], copied: Copy, context: GateContext) -> None:
    verdict = verify(
        copied(label["id"]), profile=Profile.FOREIGN, context=context, level=Level(label["level"])
    )
    assert verdict.status is STATUS[label["severity"]], verdict.message
    if label.get("chance") and verdict.reason is Reason.ORACLE_FAILED:
        return  # chance fell on the first run already, and nothing else was run
    assert verdict.reason == label["reason"], verdict.message
    codes = {finding.code for finding in verdict.findings}
    assert label["finding"] is None or label["finding"] in codes
