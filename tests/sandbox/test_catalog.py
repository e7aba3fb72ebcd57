"""Names of bases, and what a reference means."""

import pytest

from skill2env.errors import UserError
from skill2env.sandbox import catalog

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    "reference",
    [
        "debian-bookworm",
        f"localhost:5000/skill2env/debian-bookworm@{DIGEST}",
        f"registry.example.org/team/skill2env/debian-bookworm@{DIGEST}",
        "debian:bookworm",
        "debian:bookworm-slim",
        f"docker.io/library/debian:12@{DIGEST}",
    ],
)
def test_references_to_our_base(reference: str) -> None:
    assert catalog.catalog_name(reference) == "debian-bookworm"


@pytest.mark.parametrize(
    "reference",
    [
        "ubuntu:24.04",
        "debian:trixie",
        "debian",
        "python:3.12",
        "other/debian-bookworm",
        "Not A Reference",
        "scratch",
        "",
    ],
)
def test_other_references_mean_nothing(reference: str) -> None:
    assert catalog.catalog_name(reference) is None


def test_a_map_gives_strangers_a_meaning() -> None:
    images = {"python:3.12": "debian-bookworm", "quay.io/x/y": "debian-bookworm"}
    assert catalog.catalog_name(f"python:3.12@{DIGEST}", images) == "debian-bookworm"
    assert catalog.catalog_name("quay.io/x/y:v1", images) == "debian-bookworm"
    assert catalog.catalog_name("python:3.13", images) is None
    with pytest.raises(UserError, match="no base image 'nope'"):
        catalog.catalog_name("a:b", {"a:b": "nope"})


def test_registry_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(catalog.REGISTRY_VARIABLE, "registry.example.org/bases/")
    assert catalog.registry() == "registry.example.org/bases"
    assert catalog.catalog_name(f"registry.example.org/bases/debian-bookworm@{DIGEST}") == "debian-bookworm"


def test_parts_of_a_reference() -> None:
    assert catalog.split_reference(f"host:5000/a/b:tag@{DIGEST}") == ("host:5000/a/b", "tag", DIGEST)
    assert catalog.split_reference("host:5000/a") == ("host:5000/a", "", "")
    with pytest.raises(ValueError, match="no image reference"):
        catalog.split_reference("a@sha256:short")


@pytest.mark.parametrize("entry", catalog.CATALOG.values(), ids=list(catalog.CATALOG))
def test_every_base_has_what_the_design_promises(entry: catalog.Base) -> None:
    assert {"python3", "ca-certificates", "procps", "tmux", "bash"} <= set(entry.packages)
    assert catalog.catalog_name(entry.public) == catalog.DEFAULT_BASE
