"""A task that is only read, and the codes that one gate finds in it."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from skill2env.harbor.sandboxes import namespace_sandbox
from skill2env.verify.gate import GateContext, Subject
from skill2env.verify.rules import Profile


@pytest.fixture
def found(builder: ModuleType, tmp_path: Path) -> Callable[..., list[str]]:
    """Builds the small task with changes, lets a gate read it, and returns the codes of its findings."""

    def check(gate: ModuleType, changes: dict[str, str | bytes | None], **settings: object) -> list[str]:
        reference = f"registry.example/skill2env/debian-bookworm@sha256:{'a' * 64}"
        task = builder.build_task(tmp_path / "task", reference=reference, changes=changes)
        context = GateContext(namespace_sandbox(), tmp_path / "evidence", **settings)
        return [hit.code for hit in gate.check(Subject(task, Profile.OURS), context).hits]

    return check
