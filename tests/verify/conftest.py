"""Tasks to judge, and where the trials of these tests run."""

import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from skill2env.harbor.sandboxes import namespace_sandbox
from skill2env.sandbox.images import BaseImage
from skill2env.verify.gate import GateContext


@pytest.fixture
def make_task(builder: ModuleType, tmp_path: Path) -> Callable[..., Path]:
    """Builds a task that no trial will run: its base is pinned to a digest that no image has."""

    def make(**settings: object) -> Path:
        reference = settings.pop("reference", f"registry.example/skill2env/debian-bookworm@sha256:{'a' * 64}")
        return builder.build_task(tmp_path / "task", reference=reference, **settings)

    return make


@pytest.fixture
def runnable_task(builder: ModuleType, base: BaseImage, tmp_path: Path) -> Callable[..., Path]:
    """Builds a task whose trials run here."""

    def make(**settings: object) -> Path:
        return builder.build_task(tmp_path / "task", **{"reference": base.reference, **settings})

    return make


@pytest.fixture
def context(tmp_path: Path) -> GateContext:
    return GateContext(namespace_sandbox(), tmp_path / "evidence", infra_retries=0)


@pytest.fixture
def copied(base: BaseImage, tmp_path: Path) -> Callable[[str], Path]:
    """Copies a labelled task of tests/data/tasks and names the base of this machine in it."""
    tasks = Path(__file__).resolve().parent.parent / "data" / "tasks"

    def copy(name: str) -> Path:
        target = tmp_path / name
        shutil.copytree(tasks / name, target, symlinks=True)
        dockerfile = target / "environment" / "Dockerfile"
        text = dockerfile.read_text(encoding="utf-8")
        dockerfile.write_text(text.replace("@BASE@", base.reference), encoding="utf-8")
        return target

    return copy
