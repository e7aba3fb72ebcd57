"""Small tasks with labels, judged as one set: the twin falls, and what only shares a world and a harness stays."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from skill2env.harbor.likeness import portrait_of, quick_twins
from skill2env.sandbox.images import BaseImage
from skill2env.verify.gate import GateContext
from skill2env.verify.many import verify_many
from skill2env.verify.rules import Profile

TASKS = Path(__file__).resolve().parent.parent / "data" / "tasks"
LABELS: list[dict[str, Any]] = json.loads((TASKS / "labels.twins.json").read_text(encoding="utf-8"))


def test_only_the_twin_is_like_another() -> None:
    portraits = {label["id"]: portrait_of(TASKS / label["id"]) for label in LABELS}
    for label in LABELS:
        mine = portraits.pop(label["id"])
        found = [name for name, other in portraits.items() if quick_twins(mine, other)]
        assert found == [other["id"] for other in LABELS if other.get("twin") == label["id"]]


@pytest.mark.slow
@pytest.mark.sandbox
def test_the_set_is_judged_as_labelled(base: BaseImage, tmp_path: Path, context: GateContext) -> None:
    for label in LABELS:
        shutil.copytree(TASKS / label["id"], tmp_path / "set" / label["id"])
    for dockerfile in (tmp_path / "set").rglob("Dockerfile"):
        dockerfile.write_text(
            dockerfile.read_text(encoding="utf-8").replace("@BASE@", base.reference), encoding="utf-8"
        )
    verified = verify_many(
        sorted((tmp_path / "set").iterdir()), profile=Profile.FOREIGN, context=context, workers=1
    )
    for item in verified:
        (label,) = [label for label in LABELS if label["id"] == item.path.name]
        assert item.verdict.reason == label["reason"], item.verdict.message
        codes = {finding.code for finding in item.verdict.findings}
        assert label["finding"] is None or label["finding"] in codes
