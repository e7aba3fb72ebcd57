"""The heavy parts of a batch are made when they are needed, and no sooner."""

import threading
from pathlib import Path

import pytest

from skill2env.config import RunConfig
from skill2env.parts import Parts
from skill2env.sandbox import catalog
from skill2env.sandbox.base_store import recipe_digest
from skill2env.sandbox.images import BaseImage


def test_only_the_default_base_is_built_until_a_dockerfile_names_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(Parts, "base_image", lambda _, name: asked.append(name) or f"reference of {name}")
    offered = Parts(RunConfig(), tmp_path, tmp_path, lambda _: None, threading.Event()).bases
    assert asked == [catalog.DEFAULT_BASE]
    assert list(offered) == list(catalog.CATALOG), "all are offered, in one order"
    for name, known in offered.items():
        default = name == catalog.DEFAULT_BASE
        assert known == (f"reference of {name}" if default else recipe_digest(name))


@pytest.mark.sandbox
def test_a_base_is_named_by_its_digest(base: BaseImage, tmp_path: Path) -> None:
    parts = Parts(RunConfig(), tmp_path, tmp_path, lambda _: None, threading.Event())
    assert parts.base_image("debian-bookworm") == base.reference
    assert parts.base_image("python:3.12") is None
