"""Several gradings in one container, with changed files and scripts between them, in both modes of the verifier."""

from pathlib import Path
from types import ModuleType

import pytest

from skill2env.harbor.sandboxes import namespace_sandbox
from skill2env.harbor.stages import Stage, read_stages
from skill2env.harbor.trial import run_trial
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.images import BaseImage

pytestmark = pytest.mark.sandbox


@pytest.mark.parametrize("mode", ["separate", "shared"])
def test_stages(builder: ModuleType, base: BaseImage, tmp_path: Path, mode: str) -> None:
    if mode == "shared" and not current_identity().several_users:
        pytest.skip("a shared verifier needs several user ids, and the single-uid tier has one")
    task = builder.build_task(tmp_path / "task", reference=base.reference)
    wrong = tmp_path / "wrong"
    wrong.write_text("1\n")
    right = tmp_path / "right"
    right.write_text("193\n")
    stages = [
        Stage("good"),
        Stage("bad", files={"/app/out/sum.txt": str(wrong)}, script="stat -c %U /app/out/sum.txt; exit 3"),
        Stage("quiet", script="echo looked", grade=False),
        Stage("none", script="rm -r /app/out"),
        Stage("elsewhere", files={"/app/out/sum.txt": str(right)}, workdir="/var/tmp"),
    ]
    outcome = run_trial(
        task, "oracle", environment=namespace_sandbox(), trials_dir=tmp_path, mode=mode, stages=stages
    )
    assert outcome.failure is None
    found = read_stages(outcome.folder)
    assert list(found) == ["good", "bad", "quiet", "none", "elsewhere"]
    assert found["good"].full
    assert found["bad"].told == {"sum": 0, "largest": 1, "reward": 0.5}
    assert found["bad"].code == 3
    if mode == "shared":
        assert found["bad"].output == "agent\n", "a file with new content keeps its owner"
    assert (found["quiet"].output, found["quiet"].reward_json) == ("looked\n", None)
    assert found["none"].told == {"sum": 0, "largest": 0, "reward": 0}
    assert found["elsewhere"].told == {"sum": 1, "largest": 0, "reward": 0.5}


def test_a_refused_reward_is_noted(builder: ModuleType, base: BaseImage, tmp_path: Path) -> None:
    test_sh = "#!/bin/bash\n[ -e /tmp/second ] || echo '{\"sum\": 1}' > /logs/verifier/reward.json\ntouch /tmp/second\n"
    task = builder.build_task(tmp_path / "task", reference=base.reference, changes={"tests/test.sh": test_sh})
    stages = [Stage("first"), Stage("second")]
    outcome = run_trial(task, "nop", environment=namespace_sandbox(), trials_dir=tmp_path, stages=stages)
    found = read_stages(outcome.folder)
    assert found["first"].full
    assert found["second"].failure.startswith("RewardFileNotFoundError")
    assert "problem:reward-missing" in found["second"].told
    assert outcome.failure is None
