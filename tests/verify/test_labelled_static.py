"""Small tasks with labels, for the faults that can be seen in files, names and images: verdict, reason and finding."""

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
LABELS: list[dict[str, Any]] = json.loads((TASKS / "labels.static.json").read_text(encoding="utf-8"))

Copy = Callable[[str], Path]


def _ids(wanted: str) -> list[dict[str, Any]]:
    return [label for label in LABELS if (label["severity"] or "sound") == wanted]


@pytest.mark.parametrize("label", _ids("reject"), ids=lambda label: label["id"])
def test_fault_is_rejected_for_its_reason(label: dict[str, Any], copied: Copy, context: GateContext) -> None:
    verdict = verify(copied(label["id"]), profile=Profile.FOREIGN, context=context)
    assert verdict.status is VerdictStatus.REJECTED
    assert verdict.reason == label["reason"], verdict.message
    assert label["finding"] in {finding.code for finding in verdict.findings}


@pytest.mark.slow
@pytest.mark.parametrize("label", _ids("warn"), ids=lambda label: label["id"])
def test_weakness_is_a_finding(label: dict[str, Any], copied: Copy, context: GateContext) -> None:
    verdict = verify(copied(label["id"]), profile=Profile.FOREIGN, context=context)
    assert verdict.status is VerdictStatus.ACCEPTED, verdict.message
    assert label["finding"] in {finding.code for finding in verdict.findings}


@pytest.mark.slow
@pytest.mark.parametrize("label", _ids("sound"), ids=lambda label: label["id"])
def test_sound_neighbour_is_accepted(label: dict[str, Any], copied: Copy, context: GateContext) -> None:
    verdict = verify(copied(label["id"]), profile=Profile.FOREIGN, context=context)
    assert verdict.status is VerdictStatus.ACCEPTED, verdict.message
