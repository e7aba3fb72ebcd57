"""The task builder of tests/verify, and where the trials of these tests run."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from skill2env.harbor.outcome import TrialOutcome
from skill2env.harbor.sandboxes import namespace_sandbox, namespace_works
from skill2env.harbor.trial import run_trial
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.images import BaseImage, ensure_base

BUILDER = Path(__file__).parent.parent / "verify" / "task_builder.py"


@pytest.fixture(scope="session")
def builder() -> ModuleType:
    specification = importlib.util.spec_from_file_location("task_builder", BUILDER)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def base() -> BaseImage:
    if not namespace_works():
        pytest.skip("this machine forbids the namespace sandbox")
    return ensure_base()


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
            pytest.skip("an agent and a shared verifier need several user ids")
        if settings.get("mode") == "shared" and not current_identity().several_users:
            pytest.skip("a shared verifier needs several user ids, and the single-uid tier has one")
        return run_trial(
            task_dir, agent, environment=namespace_sandbox(), trials_dir=tmp_path / "trials", **settings
        )

    return run
