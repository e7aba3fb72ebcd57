"""What an image reference points at."""

import pytest

from skill2env.errors import UserError
from skill2env.sandbox.references import HUB_LOGIN, is_local, locate

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("reference", "meant"),
    [
        ("debian", "docker.io/library/debian:latest"),
        ("debian:bookworm-slim", "docker.io/library/debian:bookworm-slim"),
        ("somebody/image:1", "docker.io/somebody/image:1"),
        (f"debian:12@{DIGEST}", f"docker.io/library/debian@{DIGEST}"),
        ("localhost/x", "localhost/x:latest"),
        ("localhost:5000/skill2env/debian-bookworm", "localhost:5000/skill2env/debian-bookworm:latest"),
        ("registry.example/a/b:c", "registry.example/a/b:c"),
    ],
)
def test_references_are_read_as_docker_reads_them(reference: str, meant: str) -> None:
    assert str(locate(reference)) == meant


@pytest.mark.parametrize("reference", ["", "Debian", "a b", "a@sha256:12", "https://x/y"])
def test_what_is_no_reference(reference: str) -> None:
    with pytest.raises(UserError, match="no image reference"):
        locate(reference)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("localhost:5000", True),
        ("127.0.0.9:1", True),
        ("[::1]:5000", True),
        ("10.0.0.1:5000", False),
        ("registry.example", False),
        ("localhost.example", False),
    ],
)
def test_plain_http_is_for_this_machine_only(host: str, local: bool) -> None:
    assert is_local(host) is local


def test_address_and_login_keys() -> None:
    assert locate("localhost:5000/x").api == "http://localhost:5000/v2/"
    assert locate("registry.example/x").api == "https://registry.example/v2/"
    assert locate("registry.example/x").login_keys[0] == "registry.example"
    hub = locate("debian")
    assert hub.api.startswith("https://registry-1.")
    assert hub.login_keys[0] == HUB_LOGIN
