"""The heavy parts of a batch are made when they are needed, and no sooner."""

from pathlib import Path

import pytest

from skill2env.config import RunConfig
from skill2env.parts import Parts
from skill2env.sandbox import catalog, rootfs
from skill2env.sandbox.base_store import BaseImage, recipe_digest

DIGEST = "sha256:" + "a" * 64


def test_only_the_default_base_is_built_until_a_dockerfile_names_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []

    def ensure_base(name: str, **_: object) -> BaseImage:
        built.append(name)
        return BaseImage(name, DIGEST, tmp_path, "amd64")

    monkeypatch.setattr(rootfs, "ensure_base", ensure_base)
    parts = Parts(RunConfig(), tmp_path, lambda _: None)
    offered = parts.bases
    assert list(offered) == list(catalog.CATALOG), "all are offered, in one order"
    assert built == [catalog.DEFAULT_BASE]
    reference = f"{catalog.registry()}/{catalog.DEFAULT_BASE}@{DIGEST}"
    for name, known in offered.items():
        assert known == (reference if name == catalog.DEFAULT_BASE else recipe_digest(name))
    assert parts.base_image("python-bookworm") == f"{catalog.registry()}/python-bookworm@{DIGEST}"
    assert parts.base_image("python:3.12") is None
    assert built == [catalog.DEFAULT_BASE, "python-bookworm"]
