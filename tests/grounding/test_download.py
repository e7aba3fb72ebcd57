import io
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from skill2env.errors import Boundary, InfraError
from skill2env.grounding.download import Downloader, DownloadLimits
from skill2env.grounding.faults import AssetFault, NotHad
from skill2env.records import digest_bytes
from skill2env.sandbox.egress import Egress

TABLE = b"month,total\n2024-01,10\n"
LIMITS = DownloadLimits(max_bytes=2000, timeout_sec=5, idle_sec=3, pause_sec=0.01)


def fetch(
    web: Any, url: str, *, rules: Egress | None = None, stop: threading.Event | None = None, **limits: Any
) -> tuple[bytes, Any]:
    loader = Downloader(rules or Egress.public([web.host]), replace(LIMITS, **limits), stop)
    target = io.BytesIO(b"left over")
    got = loader.fetch(url, target)
    return target.getvalue(), got


def test_a_file_byte_for_byte(web: Any) -> None:
    data, got = fetch(web, web.url("/data/table.csv"))
    assert data == TABLE
    assert (got.sha256, got.size, got.address) == (
        digest_bytes(TABLE),
        len(TABLE),
        web.url("/data/table.csv"),
    )


def test_redirects_are_followed_to_what_is_allowed(web: Any) -> None:
    data, got = fetch(web, web.url("/to//data/table.csv"))
    assert data == TABLE
    assert got.address == web.url("/data/table.csv")


@pytest.mark.parametrize(
    ("path", "fault", "words"),
    [
        ("/none", AssetFault.MISSING, "answers 404"),
        ("/cut", AssetFault.TRUNCATED, "ended too early"),
        ("/broken", AssetFault.SERVER, "answers 503"),
        ("/data/big.bin", AssetFault.TOO_LARGE, "more than 2,000 bytes"),
        ("/long", AssetFault.TOO_LARGE, "more than 2,000 bytes"),
        ("/page", AssetFault.WEB_PAGE, "shows a web page"),
        ("/circle", AssetFault.REDIRECTS, "more than 5 times"),
        ("/lost", AssetFault.REDIRECTS, "without saying where to"),
        ("/to/http://10.1.2.3/x", AssetFault.ADDRESS, "no https address"),
        ("/to/https://10.1.2.3/x", AssetFault.ADDRESS, "private network"),
        ("/to/https://169.254.169.254/latest/meta-data", AssetFault.ADDRESS, "private network"),
        ("/to/https://[::1]:8443/x", AssetFault.ADDRESS, "private network"),
        ("/to/https://2130706433/x", AssetFault.ADDRESS, "private network"),
        ("/to/file:///etc/passwd", AssetFault.ADDRESS, "no https address"),
        ("/to/https://a:b@example.org/x", AssetFault.ADDRESS, "a login"),
    ],
)
def test_each_fault_has_its_name(web: Any, path: str, fault: AssetFault, words: str) -> None:
    with pytest.raises(NotHad, match=words) as caught:
        fetch(web, web.url(path))
    assert caught.value.fault is fault


def test_slow_and_silent_servers(web: Any) -> None:
    with pytest.raises(NotHad, match="longer than its time limit") as caught:
        fetch(web, web.url("/slow"), timeout_sec=0.3)
    assert caught.value.fault is AssetFault.SLOW
    with pytest.raises(NotHad, match="was silent") as caught:
        fetch(web, web.url("/silent"), idle_sec=0.2)
    assert caught.value.fault is AssetFault.SLOW
    assert web.asked == ["/slow", "/silent"], "what is slow is not tried again"


def test_broken_downloads_are_tried_again_and_no_more_than_said(web: Any) -> None:
    web.failures_left = 2
    data, _ = fetch(web, web.url("/flaky"))
    assert data == TABLE, "nothing of the broken tries is left"
    with pytest.raises(NotHad):
        fetch(web, web.url("/cut"))
    assert web.asked.count("/flaky") == 3
    assert web.asked.count("/cut") == 3


def test_without_an_allowance_this_machine_is_never_asked(web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for rules in (Egress.public(), Egress.allowlist(["127.0.0.1"])):
        with pytest.raises(NotHad, match="no https address"):
            fetch(web, web.url("/data/table.csv"), rules=rules)
    with pytest.raises(NotHad, match="private network"):
        fetch(web, f"https://localhost:{web.port}/x", rules=Egress.public())
    # A public-looking name that leads here, with TLS: refused before anything is sent.
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", web.port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(NotHad, match="leads to a private address"):
        fetch(web, f"https://files.example.org:{web.port}/x", rules=Egress.public())
    assert web.asked == []


def test_hosts_that_the_settings_do_not_allow(web: Any) -> None:
    with pytest.raises(NotHad, match="not among the hosts") as caught:
        fetch(web, "https://files.example.net/x", rules=Egress.allowlist(["*.example.org"]))
    assert caught.value.fault is AssetFault.ADDRESS


def test_a_name_that_does_not_exist_is_the_authors_fault_and_a_dead_name_service_is_not(
    web: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(code: int) -> Any:
        def look(*_: Any, **__: Any) -> Any:
            raise socket.gaierror(code, "no")

        return look

    monkeypatch.setattr(socket, "getaddrinfo", fail(socket.EAI_NONAME))
    with pytest.raises(NotHad, match=r"there is no host files\.example\.org"):
        fetch(web, "https://files.example.org/x", rules=Egress.public())
    monkeypatch.setattr(socket, "getaddrinfo", fail(socket.EAI_AGAIN))
    with pytest.raises(InfraError) as caught:
        fetch(web, "https://files.example.org/x", rules=Egress.public())
    assert caught.value.boundary is Boundary.NETWORK


def test_a_port_where_nobody_listens(web: Any) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(NotHad, match="does not answer") as caught:
        fetch(web, f"http://127.0.0.1:{port}/x", rules=Egress.public([f"127.0.0.1:{port}"]))
    assert caught.value.fault is AssetFault.UNREACHABLE


@pytest.mark.parametrize(
    "url",
    [
        "", "table.csv", "https://", "https:///x", "https://[::1/x", "https://example.org:99999/x",
        "https://exa mple.org/x", "https://example.org\\@127.0.0.1/x", "ftp://example.org/x", "https://" + "a" * 300,
        "https://\x00.org/x", "https://example.org/\x00", "https://\u2066.org/", "https://127.1/x", "https://0/x",
        "https://foo.localhost/x", "https://metadata.google.internal/x",
    ],
)  # fmt: skip
def test_odd_addresses_are_refused(web: Any, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    def nothing(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "no")

    monkeypatch.setattr(socket, "getaddrinfo", nothing)
    with pytest.raises(NotHad):
        fetch(web, url)
    assert web.asked == []


@pytest.mark.parametrize("host", ["127。0。0。1", "169｡254｡169｡254", "LOCALHOST"])
def test_what_is_sent_is_what_is_checked(web: Any, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """Behind a proxy nobody else looks at the address."""
    monkeypatch.setenv("https_proxy", web.url("/proxy"))
    with pytest.raises(NotHad, match="private network"):
        fetch(web, f"https://{host}:8443/x", rules=Egress.public())
    assert web.asked == []


@contextmanager
def within(seconds: float) -> Generator[None]:
    begin = time.monotonic()
    yield
    assert time.monotonic() - begin < seconds


@pytest.fixture
def deaf() -> Generator[str]:
    """``HOST:PORT`` where connections are taken and nothing is said."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("path", ["/drip-head", "/drip"])
def test_bytes_that_come_one_by_one_do_not_stretch_the_time(web: Any, path: str) -> None:
    with within(2), pytest.raises(NotHad, match="longer than its time limit") as caught:
        fetch(web, web.url(path), timeout_sec=0.5)
    assert caught.value.fault is AssetFault.SLOW
    assert web.asked == [path]


def test_all_tries_have_one_time_limit(web: Any) -> None:
    with within(3), pytest.raises(NotHad, match="longer than its time limit") as caught:
        fetch(web, web.url("/drip-cut"), timeout_sec=0.7, attempts=50)
    assert caught.value.fault is AssetFault.SLOW
    assert 1 < len(web.asked) < 4


def test_handshakes_and_lookups_that_never_end(web: Any, deaf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with within(2), pytest.raises(NotHad, match="longer than its time limit"):
        fetch(web, f"https://{deaf}/x", rules=Egress.public([deaf]), timeout_sec=0.4, idle_sec=60)
    over = threading.Event()

    def look(*_: Any, **__: Any) -> Any:
        over.wait(20)
        raise socket.gaierror(socket.EAI_AGAIN, "no")

    monkeypatch.setattr(socket, "getaddrinfo", look)
    with within(2), pytest.raises(NotHad, match="longer than its time limit"):
        fetch(web, "https://files.example.org/x", rules=Egress.public(), timeout_sec=0.4)
    over.set()


@pytest.mark.parametrize("path", ["/drip-head", "/drip", "/silent", "/broken"])
def test_a_wish_to_stop_ends_a_download_at_once(web: Any, path: str) -> None:
    stop = threading.Event()
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    with within(1.3), pytest.raises(InfraError, match="was stopped") as caught:
        fetch(web, web.url(path), stop=stop, pause_sec=60, timeout_sec=600)
    assert caught.value.boundary is Boundary.NETWORK
    timer.join()
    asked = len(web.asked)
    with pytest.raises(InfraError, match="was stopped"):
        fetch(web, web.url(path), stop=stop)
    assert len(web.asked) == asked, "nothing is begun any more"


def test_a_wish_to_stop_ends_a_handshake(web: Any, deaf: str) -> None:
    stop = threading.Event()
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    with within(1.3), pytest.raises(InfraError, match="was stopped"):
        fetch(web, f"https://{deaf}/x", rules=Egress.public([deaf]), stop=stop, idle_sec=60, timeout_sec=600)
    timer.join()
