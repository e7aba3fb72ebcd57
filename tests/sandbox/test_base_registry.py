"""Bases go to a registry with the digest that they have here, and public tags are resolved."""

import json
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from skill2env.errors import InfraError, UserError
from skill2env.sandbox import base_registry, catalog
from skill2env.sandbox.images import BaseImage
from skill2env.sandbox.logins import CONFIG_VARIABLE, Login


@pytest.fixture(autouse=True)
def no_logins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "docker"))


@pytest.mark.sandbox
def test_a_base_is_pushed_once_and_has_the_same_digest_there(
    base_image: BaseImage, registry_server: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = registry_server(login=True)
    login = Login("ali", "open sesame")
    told: list[str] = []
    with pytest.raises(UserError, match="a login is needed"):
        base_registry.push_base(base_image, f"{host}/bases")
    pushed = base_registry.push_base(base_image, f"{host}/bases/", login=login, progress=told.append)
    assert pushed.reference == f"{host}/bases/debian-bookworm@{base_image.digest}"
    assert pushed.bytes_sent > 50_000_000
    assert [line.split(": ")[1].split()[0] for line in told] == ["packing", "sending"]
    again = base_registry.push_base(base_image, f"{host}/bases", login=login, tag="stable")
    assert again.bytes_sent == 0
    for name in ("stable", pushed.tag):
        found = base_registry.resolve(f"{host}/bases/debian-bookworm:{name}", login=login)
        assert found.digest == base_image.digest
    # A catalog name means the public image that it is bound to; here that image is in a registry of our own.
    entry = replace(catalog.lookup("debian-bookworm"), public=f"{host}/bases/debian-bookworm:stable")
    monkeypatch.setitem(catalog.CATALOG, "debian-bookworm", entry)
    found = base_registry.resolve("debian-bookworm", login=login)
    assert str(found) == f"{host}/bases/debian-bookworm@{base_image.digest}"


@pytest.mark.sandbox
def test_what_the_registry_serves_is_the_image(
    base_image: BaseImage, registry_server: Callable[..., str]
) -> None:
    pushed = base_registry.push_base(base_image, f"{registry_server()}/x")
    host, _, repository = pushed.reference.partition("@")[0].partition("/")

    def fetch(tail: str) -> bytes:
        kind = "application/vnd.oci.image.manifest.v1+json"
        request = urllib.request.Request(f"http://{host}/v2/{repository}/{tail}", headers={"Accept": kind})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            return answer.read()

    manifest = json.loads(fetch(f"manifests/{base_image.digest}"))
    config = json.loads(fetch(f"blobs/{manifest['config']['digest']}"))
    assert config["architecture"] == base_image.architecture
    assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]
    assert len(fetch(f"blobs/{manifest['layers'][0]['digest']}")) == manifest["layers"][0]["size"]


def test_nobody_there_and_no_reference() -> None:
    with pytest.raises(InfraError, match=r"127\.0\.0\.1:9"):
        base_registry.resolve("127.0.0.1:9/x:y")
    with pytest.raises(UserError, match="no image reference"):
        base_registry.resolve("A B")
