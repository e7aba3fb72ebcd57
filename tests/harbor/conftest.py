"""Where the trials of these tests run."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from skill2env.harbor.outcome import TrialOutcome
from skill2env.harbor.sandboxes import namespace_sandbox
from skill2env.harbor.trial import run_trial
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.images import BaseImage


@pytest.fixture
def task(builder: ModuleType, base: BaseImage, tmp_path: Path) -> Callable[..., Path]:
    """Builds a task whose trials run here."""

    def make(**settings: object) -> Path:
        return builder.build_task(tmp_path / "task", reference=base.reference, **settings)

    return make


@pytest.fixture
def trial(tmp_path: Path) -> Callable[..., TrialOutcome]:
    """Runs one trial in the namespace sandbox."""

    def run(task_dir: Path, agent: str, **settings: object) -> TrialOutcome:
        if settings.get("mode") == "shared" and not current_identity().several_users:
            pytest.skip("a shared verifier needs several user ids, and the single-uid tier has one")
        return run_trial(
            task_dir, agent, environment=namespace_sandbox(), trials_dir=tmp_path / "trials", **settings
        )

    return run
