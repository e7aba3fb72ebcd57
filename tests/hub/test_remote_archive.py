"""Archives at an address, from a server on this machine that can lie, die and redirect."""

import gzip
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.hub.conftest import make_skill
from tests.hub.test_packages import tarball

from skill2env.errors import InfraError, UserError
from skill2env.hub.explain import explain
from skill2env.hub.folder import Hub, register
from skill2env.hub.records import SourceKind, SourceStatus
from skill2env.hub.sources import download, spec_of
from skill2env.hub.update import Updated, sync_hub


class Server:
    """Answers by path with status, headers and bytes; what it announces and what it sends may differ."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.path)
                status, headers, data = server.answers.get(self.path, (404, {}, b""))
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(data))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)
                self.close_connection = True

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def put(self, path: str, data: bytes, status: int = 200, **headers: str) -> str:
        """Serve something; returns its sha256."""
        self.answers[path] = (
            status,
            {name.replace("_", "-"): value for name, value in headers.items()},
            data,
        )
        return hashlib.sha256(data).hexdigest()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    served = Server()
    yield served
    served.close()


@pytest.fixture
def packed(tmp_path: Path) -> bytes:
    return tarball("skills-1.0", tmp_path / "trap", LICENSE="MIT License\n\nPermission is hereby granted")


def sync(hub: Hub, text: str, **options: str) -> Updated:
    register(hub, [spec_of(hub, text, **options)])
    return sync_hub(hub, workers=1)


def failure(done: Updated) -> str:
    (outcome,) = done.sources
    assert outcome.status is SourceStatus.FAILED
    return outcome.error


def test_an_archive_is_downloaded_once_and_its_digest_recorded(
    hub: Hub, server: Server, packed: bytes
) -> None:
    sha256 = server.put("/a/skills-1.0.tar.gz?key=1", packed)
    done = sync(hub, f"{server.url}/a/skills-1.0.tar.gz?key=1")
    assert (done.new, done.failed) == (1, False)
    (source,) = hub.config().source
    assert (source.id, source.kind) == ("skills-1.0", SourceKind.ARCHIVE)
    assert sha256 in hub.manifest.read_text()
    assert source.location in str(explain(hub, "sums"))
    sync_hub(hub, workers=1)
    sync_hub(hub, again=True, offline=True, workers=1)
    assert len(server.asked) == 1


def test_a_manifest_brings_the_recorded_file_or_nothing(
    hub: Hub, server: Server, packed: bytes, tmp_path: Path
) -> None:
    server.put("/skills.tar.gz", packed)
    sync(hub, f"{server.url}/skills.tar.gz")
    other = Hub(tmp_path / "other")
    assert sync_hub(other, locked=hub.manifest, workers=1).differences == ()
    server.put("/skills.tar.gz", packed + b"more")
    third = Hub(tmp_path / "third")
    assert "not the pinned" in failure(sync_hub(third, locked=hub.manifest, workers=1))


def test_a_pinned_digest_must_be_met(hub: Hub, server: Server, packed: bytes) -> None:
    sha256 = server.put("/skills.tar.gz", packed)
    assert "not the pinned" in failure(
        sync(hub, f"{server.url}/skills.tar.gz", sha256="0" * 64, name="wrong")
    )
    assert not list(hub.downloads.glob("archive/*"))
    register(hub, [spec_of(hub, f"{server.url}/skills.tar.gz#sha256={sha256}", name="right")])
    assert [source.status for source in sync_hub(hub, only=["right"], workers=1).sources] == [
        SourceStatus.FRESH
    ]


def test_bytes_are_taken_as_they_are_whatever_the_server_calls_them(
    hub: Hub, server: Server, packed: bytes
) -> None:
    sha256 = server.put("/skills.tar.gz", packed, Content_Encoding="gzip")
    assert not sync(hub, f"{server.url}/skills.tar.gz", sha256=sha256).failed


def test_half_a_file_is_not_kept_and_the_next_sync_brings_it(hub: Hub, server: Server, packed: bytes) -> None:
    server.put("/skills.tar.gz", packed[: len(packed) // 2], Content_Length=str(len(packed)))
    assert "broke off in the middle" in failure(sync(hub, f"{server.url}/skills.tar.gz"))
    # A server that announces no size just ends; then the archive itself shows that half is missing.
    server.put("/skills.tar.gz", packed[: len(packed) // 2])
    assert "damaged" in failure(sync_hub(hub, workers=1))
    server.put("/skills.tar.gz", packed)
    assert sync_hub(hub, workers=1).new == 1


def test_what_was_kept_and_has_changed_is_brought_again(hub: Hub, server: Server, packed: bytes) -> None:
    server.put("/skills.tar.gz", packed)
    sync(hub, f"{server.url}/skills.tar.gz")
    (kept,) = hub.downloads.glob("archive/*/skills.tar.gz")
    kept.write_bytes(packed[:-9] + bytes([packed[-9] ^ 1]) + packed[-8:])
    assert not sync_hub(hub, again=True, workers=1).failed
    assert kept.read_bytes() == packed
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("status", "said"), [(404, "no such file"), (403, "to everybody"), (500, "says 500"), (429, "says 429")]
)
def test_refusals_are_told_by_what_they_mean(hub: Hub, server: Server, status: int, said: str) -> None:
    server.put("/skills.zip", b"", status)
    assert said in failure(sync(hub, f"{server.url}/skills.zip"))


def test_too_large_files_are_given_up(
    hub: Hub, server: Server, packed: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spec = spec_of(hub, f"{server.url}/skills.tar.gz")
    server.put("/skills.tar.gz", packed, Content_Length="9" * 12)
    with download.client(spec, "it") as http, pytest.raises(UserError, match="more than 1,073,741,824 bytes"):
        download.save(http, spec.location, tmp_path / "file", spec)
    server.put("/skills.tar.gz", packed)
    with download.client(spec, "it") as http, pytest.raises(UserError, match="more than 100 bytes"):
        download.save(http, spec.location, tmp_path / "file", spec, limit=100)
    monkeypatch.setattr(download, "_WHOLE_SEC", -1.0)
    with pytest.raises(InfraError, match="silent"), download.client(spec, "it") as http:
        download.save(http, spec.location, tmp_path / "file", spec)


def test_redirects_are_followed_a_few_times(hub: Hub, server: Server, packed: bytes) -> None:
    server.put("/real", packed)
    server.put("/skills.tar.gz", b"", 302, Location="/real")
    server.put("/round.tar.gz", b"", 302, Location="/round.tar.gz")
    assert not sync(hub, f"{server.url}/skills.tar.gz").failed
    register(hub, [spec_of(hub, f"{server.url}/round.tar.gz")])
    assert "redirects" in sync_hub(hub, workers=1).sources[1].error


def test_a_page_in_place_of_an_archive_is_refused(hub: Hub, server: Server) -> None:
    server.put("/skills.zip", gzip.compress(b"<html>please log in</html>"))
    assert "skills.zip is refused" in failure(sync(hub, f"{server.url}/skills.zip"))


def test_a_server_that_is_not_there_costs_its_source_only(hub: Hub, tmp_path: Path) -> None:
    register(
        hub, [spec_of(hub, "http://127.0.0.1:1/skills.zip"), spec_of(hub, str(make_skill(tmp_path / "own")))]
    )
    done = sync_hub(hub, workers=1)
    assert [source.status for source in done.sources] == [SourceStatus.FAILED, SourceStatus.FRESH]
    assert "no connection" in done.sources[0].error
    offline = sync_hub(hub, offline=True, workers=1)
    assert "--offline" in offline.sources[0].error


def test_an_address_without_https_needs_a_digest(hub: Hub) -> None:
    done = sync(hub, "http://example.org/skills.zip")
    assert "needs the sha256" in failure(done)


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("https://example.org/x/skills-2.1.tar.gz", SourceKind.ARCHIVE, "skills-2.1"),
        ("https://example.org/one.skill?raw=1", SourceKind.ARCHIVE, "one"),
        ("https://example.org/x/repo", SourceKind.GIT, "repo"),
        ("https://example.org/x/repo.git#" + "a" * 40, SourceKind.GIT, "repo"),
    ],
)
def test_addresses_are_told_apart_by_how_they_end(hub: Hub, text: str, kind: SourceKind, name: str) -> None:
    spec = spec_of(hub, text)
    assert (spec.kind, spec.id) == (kind, name)


@pytest.mark.parametrize("text", ["https://example.org/x.zip#main", "https://me:word@example.org/x.zip"])
def test_what_says_nothing_about_an_archive_is_refused(hub: Hub, text: str) -> None:
    with pytest.raises(UserError) as caught:
        spec_of(hub, text)
    assert "word" not in caught.value.message


@pytest.mark.parametrize("path", ["/download", "/SHA256", "/", "/..%2f..%2fx", "/%00%ff"])
def test_an_archive_without_an_ending_needs_its_kind(
    hub: Hub, server: Server, packed: bytes, path: str
) -> None:
    server.put(path, packed)
    assert not sync(hub, f"{server.url}{path}", kind="archive", name="it").failed
    assert not sync_hub(hub, again=True, workers=1).failed
    assert len(server.asked) == 1
    assert {found.parent.parent.name for found in hub.path.rglob("SHA256")} == {"archive"}
