"""A registry is asked for digests and given images: Debian's docker-registry, and a small one that asks for tokens."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.sandbox.logins import CONFIG_VARIABLE, Login
from skill2env.sandbox.references import locate
from skill2env.sandbox.registry import Registry

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
DIGEST = "sha256:" + "d" * 64


@pytest.fixture(autouse=True)
def no_logins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "docker"))


def sha256(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def bring(registry: Registry, folder: Path, text: bytes, tag: str) -> str:
    """An image of one small layer."""
    blobs = {name: folder / name for name in ("config", "layer")}
    blobs["config"].write_bytes(b"{}")
    blobs["layer"].write_bytes(text)
    for path in blobs.values():
        registry.put_blob(path, sha256(path.read_bytes()))
    described = [
        {
            "digest": sha256(path.read_bytes()),
            "mediaType": f"application/vnd.oci.image.{kind}",
            "size": path.stat().st_size,
        }
        for path, kind in ((blobs["config"], "config.v1+json"), (blobs["layer"], "layer.v1.tar"))
    ]
    body = {"config": described[0], "layers": described[1:], "mediaType": MANIFEST_TYPE, "schemaVersion": 2}
    return registry.put_manifest(json.dumps(body).encode(), MANIFEST_TYPE, tag)


def test_an_image_is_brought_once_and_its_tag_resolved(
    registry_server: Callable[..., str], tmp_path: Path
) -> None:
    place = locate(f"{registry_server()}/team/image:one")
    with Registry(place) as registry:
        digest = bring(registry, tmp_path, b"x" * 3_000_000, "one")
        assert registry.digest() == digest
        assert not registry.put_blob(tmp_path / "layer", sha256(b"x" * 3_000_000)), "it is there already"
        assert bring(registry, tmp_path, b"y", "one") != digest, "a tag moves"
        assert registry.digest() != digest
    with Registry(locate(f"{place.host}/{place.repository}@{digest}")) as registry:
        assert registry.digest() == digest, "a digest stays"


def test_unknown_images_are_said(registry_server: Callable[..., str]) -> None:
    place = locate(f"{registry_server()}/team/image:gone")
    with (
        Registry(place) as registry,
        pytest.raises(UserError, match=r"no image .*/team/image:gone") as caught,
    ):
        registry.digest()
    assert "tag" in caught.value.hint


def test_a_login_is_asked_for_taken_from_the_file_or_refused(
    registry_server: Callable[..., str], tmp_path: Path
) -> None:
    place = locate(f"{registry_server(login=True)}/team/image:one")
    with Registry(place) as registry, pytest.raises(UserError, match="a login is needed") as caught:
        registry.digest()
    assert "--password-stdin" in caught.value.hint
    wrong = Login("ali", "wrong")
    with Registry(place, login=wrong) as registry, pytest.raises(UserError, match="this login may not use"):
        bring(registry, tmp_path, b"x", "one")
    with Registry(place, login=Login("ali", "open sesame")) as registry:
        digest = bring(registry, tmp_path, b"x" * 2_000_000, "one")
    (tmp_path / "docker").mkdir()
    auths = {place.host: {"auth": "YWxpOm9wZW4gc2VzYW1l"}}
    (tmp_path / "docker/config.json").write_text(json.dumps({"auths": auths}))
    with Registry(place) as registry:
        assert registry.digest() == digest


def test_bytes_that_are_not_what_they_are_called_are_refused(
    registry_server: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "blob").write_bytes(b"x")
    place = locate(f"{registry_server()}/team/image")
    with Registry(place) as registry, pytest.raises(InfraError, match="answered 400") as caught:
        registry.put_blob(tmp_path / "blob", DIGEST)
    assert not caught.value.transient


def test_a_registry_that_is_not_there() -> None:
    with Registry(locate("127.0.0.1:9/x")) as registry, pytest.raises(InfraError) as caught:
        registry.digest()
    assert caught.value.boundary is Boundary.NETWORK
    assert "127.0.0.1:9" in caught.value.message


# ---------------------------------------------------------------------------------------------- tokens, oddities


class Odd(BaseHTTPRequestHandler):
    """Wants a token; what it answers then depends on the tag."""

    asked: list[tuple[str, str, str]]

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        authorization = self.headers.get("Authorization", "")
        self.asked.append((self.command, self.path, authorization))
        if self.path.startswith("/token"):
            return self.reply(200, b'{"token": "t1"}' if "notoken" not in self.path else b"[]")
        if authorization != "Bearer t1":
            host = self.headers["Host"]
            tag = self.path.rpartition("/")[2]
            realm = f'Bearer realm="http://{host}/token/{tag}",service="s",scope="repository:a/b:pull"'
            return self.reply(401, b"", {"WWW-Authenticate": realm})
        if self.path.endswith("/headless"):
            return self.reply(405 if self.command == "HEAD" else 200, b"manifest")
        if self.path.endswith("/weird"):
            return self.reply(200, b"", {"Docker-Content-Digest": "md5:1"})
        if self.path.endswith("/broken"):
            return self.reply(503, b'{"errors": [{"code": "UNAVAILABLE", "message": "come\\n back later"}]}')
        return self.reply(200, b"", {"Docker-Content-Digest": DIGEST})

    def reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def odd() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    asked: list[tuple[str, str, str]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Odd,), {"asked": asked}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}", asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_token_is_fetched_once_with_the_login(odd: tuple[str, list[tuple[str, str, str]]]) -> None:
    host, asked = odd
    with Registry(locate(f"{host}/a/b:fine"), login=Login("ali", "x")) as registry:
        assert [registry.digest(), registry.digest()] == [DIGEST, DIGEST]
    tokens = [(path, authorization) for _, path, authorization in asked if path.startswith("/token")]
    assert len(tokens) == 1
    assert "service=s" in tokens[0][0]
    assert "pull" in tokens[0][0]
    assert tokens[0][1] == Login("ali", "x").basic()


def test_a_registry_that_answers_no_head(odd: tuple[str, list[tuple[str, str, str]]]) -> None:
    with Registry(locate(f"{odd[0]}/a/b:headless")) as registry:
        assert registry.digest() == sha256(b"manifest")


@pytest.mark.parametrize(
    ("tag", "message", "transient"),
    [
        ("weird", "digest of another kind", False),
        ("broken", r"answered 503 \(come back later\)", True),
        ("notoken", "gave no token", False),
    ],
)
def test_odd_registries_are_infrastructure(
    odd: tuple[str, list[tuple[str, str, str]]], tag: str, message: str, transient: bool
) -> None:
    place = locate(f"{odd[0]}/a/b:{tag}")
    with Registry(place) as registry, pytest.raises(InfraError, match=message) as caught:
        registry.digest()
    assert caught.value.transient is transient
