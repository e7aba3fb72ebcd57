"""What a staged verifier is asked to do, and what it found: plain records, without Harbor."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skill2env.harbor.outcome import read_head, read_tail
from skill2env.harbor.rewards import Reward, read_reward

STAGED_VERIFIER = "skill2env.harbor.staged:StagedVerifier"
"""Import path of the verifier that plays stages."""
FOLDER = "stages"
"""Folder of a trial that holds what the stages left, one folder a stage."""
DONE_FILE = "done.json"
OUTPUT_FILE = "output.txt"


@dataclass(frozen=True, slots=True)
class Stage:
    """One step in the container where the verifier runs: files, then a script, then a grading."""

    name: str
    """Unique within a trial; lower case words joined by ``-``."""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Path inside -> file of the host whose content it gets; owner and mode of an existing file stay."""
    script: str = ""
    """Run with bash; the trial goes on whatever its exit code is."""
    user: str = "root"
    """Who runs the script."""
    grade: bool = True
    """Put the tests in place and run them as the verifier does."""
    workdir: str = ""
    """Where the tests are started; empty for the usual folder."""

    def to_json(self) -> dict[str, Any]:
        """As an option of the verifier."""
        return {
            "name": self.name,
            "files": dict(self.files),
            "script": self.script,
            "user": self.user,
            "grade": self.grade,
            "workdir": self.workdir,
        }


@dataclass(frozen=True, slots=True)
class StageOutcome:
    """What one stage left."""

    code: int = 0
    """Exit code of its script; 0 without one."""
    output: str = ""
    """What the script printed to standard output."""
    failure: str = ""
    """Why Harbor did not count the grading; empty when it did, or when there was none."""
    reward_json: bytes | None = None
    reward_txt: bytes | None = None
    verifier_output: str = ""
    """End of what the tests printed."""

    def reward(self) -> Reward:
        """The reward of the grading, read strictly."""
        return read_reward(self.reward_json, self.reward_txt)

    @property
    def told(self) -> Mapping[str, float | str]:
        """Everything by which two gradings can differ: metrics, and what is wrong with them."""
        reward = self.reward()
        problems = {f"problem:{problem.value}": "" for problem in reward.problems}
        return {**reward.metrics, **problems}

    @property
    def full(self) -> bool:
        """Whether it earned 1 on every metric, and nothing was wrong."""
        reward = self.reward()
        return not self.failure and bool(reward.metrics) and all(v == 1 for v in reward.metrics.values())


def read_stages(trial: Path) -> dict[str, StageOutcome]:
    """What the stages of a trial left, in their order; those that were not reached are missing."""
    found: dict[str, StageOutcome] = {}
    for folder in sorted((trial / FOLDER).glob("*-*")):
        try:
            done = json.loads((folder / DONE_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        found[folder.name.partition("-")[2]] = StageOutcome(
            code=int(done["code"]),
            output=(folder / OUTPUT_FILE).read_text(encoding="utf-8"),
            failure=str(done["failure"]),
            reward_json=read_head(folder / "reward.json"),
            reward_txt=read_head(folder / "reward.txt"),
            verifier_output=read_tail(folder / "test-stdout.txt"),
        )
    return found
