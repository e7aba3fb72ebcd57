"""Small tasks with labels, for cheats and weak verifiers: verdict, reason and finding."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skill2env.records import VerdictStatus
from skill2env.verify.gate import GateContext
from skill2env.verify.rules import Profile
from skill2env.verify.verify import verify

pytestmark = pytest.mark.sandbox
TASKS = Path(__file__).resolve().parent.parent / "data" / "tasks"
LABELS: list[dict[str, Any]] = json.loads((TASKS / "labels.cheats.json").read_text(encoding="utf-8"))
QUICK = {"press-runs-loop", "press-runs-live", "press-runs-claim", "press-runs-cwd", "press-runs-form"}

Copy = Callable[[str], Path]


def _labels(wanted: str) -> list[Any]:
    return [
        pytest.param(label, id=label["id"], marks=[] if label["id"] in QUICK else [pytest.mark.slow])
        for label in LABELS
        if (label["severity"] or "sound") == wanted
    ]


@pytest.mark.parametrize("label", _labels("reject"))
def test_fault_is_rejected_for_its_reason(label: dict[str, Any], copied: Copy, context: GateContext) -> None:
    verdict = verify(copied(label["id"]), profile=Profile.FOREIGN, context=context)
    assert verdict.status is VerdictStatus.REJECTED
    assert verdict.reason == label["reason"], verdict.message
    assert label["finding"] in {finding.code for finding in verdict.findings}


@pytest.mark.parametrize("label", _labels("warn"))
def test_weakness_is_a_finding(label: dict[str, Any], copied: Copy, context: GateContext) -> None:
    verdict = verify(copied(label["id"]), profile=Profile.FOREIGN, context=context)
    assert verdict.status is VerdictStatus.ACCEPTED, verdict.message
    assert label["finding"] in {finding.code for finding in verdict.findings}


@pytest.mark.parametrize("label", _labels("sound"))
def test_sound_neighbour_is_accepted(label: dict[str, Any], copied: Copy, context: GateContext) -> None:
    verdict = verify(copied(label["id"]), profile=Profile.FOREIGN, context=context)
    assert verdict.status is VerdictStatus.ACCEPTED, verdict.message
