"""The build proxy against real servers on this machine: what it lets through, refuses, and blames."""

import http.server
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from skill2env.sandbox import dial, wire
from skill2env.sandbox import proxy as proxy_module
from skill2env.sandbox.egress import Egress
from skill2env.sandbox.proxy import EgressProxy
from skill2env.sandbox.wire import Body, parse_request


class _Mirror(http.server.BaseHTTPRequestHandler):
    """A mirror with good, bad and broken answers; it also acts as an upstream proxy for CONNECT."""

    protocol_version = "HTTP/1.1"
    seen: list[str]

    def do_GET(self) -> None:
        self.server.seen.append(f"{self.command} {self.path} {self.headers.get('Host')}")  # type: ignore[attr-defined]
        if self.path.endswith("/broken"):
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path.endswith("/cut"):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"x" * 10)
            self.close_connection = True
        elif self.path.endswith("/missing"):
            self.send_error(404)
        else:
            body = f"{self.headers.get('Connection')} {self.headers.get('Proxy-Authorization')}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 (the base class looks it up by this name)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[::-1])

    def do_CONNECT(self) -> None:
        self.server.seen.append(f"CONNECT {self.path} {self.headers.get('Proxy-Authorization')}")  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.rfile.readline().upper())
        self.close_connection = True

    def log_message(self, *args: object) -> None:
        pass


class Mirror:
    def __init__(self) -> None:
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Mirror)
        self.server.seen = []  # type: ignore[attr-defined]
        self.port = self.server.server_port
        self.name = f"127.0.0.1:{self.port}"
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()

    @property
    def seen(self) -> list[str]:
        return self.server.seen  # type: ignore[attr-defined]


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    made = Mirror()
    yield made
    made.server.shutdown()
    made.server.server_close()


pytestmark = pytest.mark.usefixtures("no_machine_proxy")


def build_proxy(hosts: list[str], trusted: list[str] = [], **more: Any) -> EgressProxy:  # noqa: B006 (never changed)
    return EgressProxy(Egress.package_sources(hosts, trusted), **more)


def talk(proxy: EgressProxy, request: str | bytes, *, more: bytes = b"") -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(str(proxy.socket_path))
        client.sendall((request.encode() if isinstance(request, str) else request) + more)
        answer = b""
        while piece := client.recv(65536):
            answer += piece
    return answer


def get(proxy: EgressProxy, url: str, method: str = "GET") -> bytes:
    return talk(proxy, f"{method} {url} HTTP/1.1\r\nHost: elsewhere\r\nProxy-Connection: keep-alive\r\n\r\n")


def verdicts(proxy: EgressProxy, count: int = 1) -> list[str]:
    end = time.monotonic() + 5
    while len(proxy.log) < count and time.monotonic() < end:
        time.sleep(0.01)
    return [access.verdict for access in proxy.log]


def test_a_listed_host_answers_and_is_logged(mirror: Mirror) -> None:
    with build_proxy([mirror.name], trusted=[mirror.name]) as proxy:
        answer = get(proxy, f"http://{mirror.name}/debian?a=b")
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b"close None"), "one request a connection, and no credentials of ours"
        assert get(proxy, f"http://{mirror.name}", "HEAD").startswith(b"HTTP/1.1 200")
        assert verdicts(proxy, 2) == ["allowed", "allowed"]
    assert mirror.seen == [f"GET /debian?a=b {mirror.name}", f"HEAD / {mirror.name}"]


def test_a_body_goes_along(mirror: Mirror) -> None:
    request = f"POST http://{mirror.name}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab"
    with build_proxy([mirror.name], trusted=[mirror.name]) as proxy:
        assert talk(proxy, request, more=b"cde").endswith(b"edcba")


@pytest.mark.parametrize(
    ("request_line", "detail"),
    [
        ("GET http://evil.example/ HTTP/1.1", "evil.example:80 is not on the list"),
        ("CONNECT evil.example:443 HTTP/1.1", "evil.example:443 is not on the list"),
        ("CONNECT good.example:22 HTTP/1.1", "good.example:22 is not on the list"),
        ("GET ftp://good.example/ HTTP/1.1", "no request for a proxy"),
        ("GET /etc/passwd HTTP/1.1", "no request for a proxy"),
        ("GET http://good.example@evil.example/ HTTP/1.1", "evil.example:80 is not on the list"),
        ("GET http:// HTTP/1.1", "no host"),
        ("CONNECT [::1]:443 HTTP/1.1", "::1:443 is not on the list"),
    ],
)
def test_everything_else_is_refused(request_line: str, detail: str) -> None:
    with build_proxy(["good.example"]) as proxy:
        assert talk(proxy, f"{request_line}\r\n\r\n").startswith(b"HTTP/1.1 403")
        assert verdicts(proxy) == ["refused"]
        assert detail in proxy.log[0].detail


@pytest.mark.parametrize(
    "head",
    [
        "CONNECT evil.example:443\n@good.example:443 HTTP/1.1",  # two lines to a proxy that takes bare line feeds
        "CONNECT evil.example:443@good.example:443 HTTP/1.1",
        "CONNECT good.example:443/../evil HTTP/1.1",
        "GET http://good.example/\tx HTTP/1.1",
        "GET http://good.example/ HTTP/2.0",
        "GET http://good.example/ x HTTP/1.1",
        "GET http://good.example/ HTTP/1.1\r\nA: b\n\nGET http://evil.example/ HTTP/1.1",
        "GET http://good.example/ HTTP/1.1\r\nA: b\r\n c: folded",
        "GET http://good.example/ HTTP/1.1\r\nContent-Length : 5",
        "POST http://good.example/ HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6",
        "POST http://good.example/ HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
        "POST http://good.example/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked",
        "POST http://good.example/ HTTP/1.1\r\nContent-Length: -1",
        "GET http://good.example/ HTTP/1.1\r\nA: \0",
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(head: str) -> None:
    with build_proxy(["good.example"]) as proxy:
        assert talk(proxy, f"{head}\r\n\r\n").startswith(b"HTTP/1.1 403")
        assert verdicts(proxy) == ["refused"]


@pytest.mark.parametrize(
    "host",
    "127.0.0.1 127.1 2130706433 0x7f000001 0.0.0.0 [::1] [::ffff:127.0.0.1] 169.254.169.254 168.63.129.16 "
    "100.100.100.200 [fd00:ec2::254] [64:ff9b::a9fe:a9fe] [2002:7f00:1::] 224.0.0.1 localhost a.localhost "
    "metadata.google.internal".split(),
)
def test_no_way_leads_to_this_machine_or_its_cloud(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    # Neither directly, nor through a proxy of the machine that would go there for us.
    monkeypatch.setenv("https_proxy", f"http://{mirror.name}")
    with EgressProxy(Egress.public()) as proxy:
        assert talk(proxy, f"CONNECT {host}:80 HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 403")
        monkeypatch.delenv("https_proxy")
        assert talk(proxy, f"CONNECT {host}:80 HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 403")
    assert mirror.seen == []


def test_addresses_of_this_machine_are_refused_even_when_public(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dial, "is_public", lambda address: address is not None)
    monkeypatch.setattr(dial, "looks_private", lambda host: host is None)
    with EgressProxy(Egress.public()) as proxy:
        assert get(proxy, f"http://{mirror.name}/").startswith(b"HTTP/1.1 403")
        assert "is this machine" in proxy.log[0].detail
    assert mirror.seen == []


def test_only_the_announced_body_is_passed_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        name, seen = f"127.0.0.1:{server.getsockname()[1]}", bytearray()

        def collect() -> None:
            peer, _ = server.accept()
            with peer:
                peer.settimeout(0.5)
                with suppress(TimeoutError):
                    while data := peer.recv(65536):
                        seen.extend(data)
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

        chunks = b"4\r\nWiki\r\n3;x=y\r\npez\r\n0\r\nTrailer: z\r\n\r\n"
        for kind, body in (
            ("Content-Length: 3", b"abc"),
            ("Transfer-Encoding: chunked", chunks),
            ("A: b", b""),
        ):
            seen.clear()
            thread = threading.Thread(target=collect, daemon=True)
            thread.start()
            with build_proxy([name], trusted=[name]) as proxy:
                request = f"POST http://{name}/ HTTP/1.1\r\n{kind}\r\n\r\n"
                more = body + b"GET http://evil.example/ HTTP/1.1\r\n\r\n"
                assert talk(proxy, request, more=more).startswith(b"HTTP/1.1 200")
            thread.join(10)
            assert bytes(seen).partition(b"\r\n\r\n")[2] == body


@pytest.mark.parametrize("step", [1, 2, 5, 100])
def test_chunks_in_any_pieces(step: int) -> None:
    head = b"POST http://x/ HTTP/1.1\r\nTransfer-Encoding: chunked"
    body, sent = Body(parse_request(head)), b"a\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n"
    data = sent + b"GET http://evil.example/ HTTP/1.1\r\n\r\n"
    assert b"".join(body.take(data[at : at + step]) for at in range(0, len(data), step)) == sent
    for bad in (b"zz\r\n", b"-1\r\n", b"5\nabcde", b"0x5\r\n"):
        with pytest.raises(OSError, match="damaged"):
            Body(parse_request(head)).take(bad)


def test_the_log_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_module, "LOG_AT_MOST", 3)
    with build_proxy(["good.example"]) as proxy:
        for _ in range(5):
            get(proxy, f"http://{'a' * 5000}.example/")
        assert len(proxy.log) == 3
        assert all(len(access.host) <= 255 and len(access.detail) <= 300 for access in proxy.log)
        assert proxy.unlogged == 2


def test_a_head_that_drips_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "HEAD_TIMEOUT_SEC", 0.2)
    with build_proxy(["good.example"]) as proxy, socket.socket(socket.AF_UNIX) as client:
        client.connect(str(proxy.socket_path))
        with pytest.raises(OSError, match=r"."):  # noqa: PT012 (the pipe breaks at one of these)
            for _ in range(100):
                client.sendall(b"A")
                time.sleep(0.05)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_private_addresses_need_the_machines_own_settings(mirror: Mirror, name: str) -> None:
    with build_proxy([f"{name}:{mirror.port}"]) as proxy:
        assert get(proxy, f"http://{name}:{mirror.port}/").startswith(b"HTTP/1.1 403")
        assert "private address" in proxy.log[0].detail
    assert mirror.seen == []


def test_a_second_request_on_the_connection_reaches_nobody(mirror: Mirror) -> None:
    smuggled = b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    with build_proxy([mirror.name], trusted=[mirror.name]) as proxy:
        first = f"GET http://{mirror.name}/one HTTP/1.1\r\nHost: {mirror.name}\r\n\r\n"
        assert talk(proxy, first, more=smuggled).count(b"HTTP/1.1 200") == 1
    assert mirror.seen == [f"GET /one {mirror.name}"]


@pytest.mark.parametrize(
    ("path", "verdict", "detail"),
    [
        ("broken", "failed", "answered 503"),
        ("cut", "failed", "broke off"),
        ("missing", "allowed", ""),
    ],
)
def test_the_log_blames_the_network_only_for_its_faults(
    mirror: Mirror, path: str, verdict: str, detail: str
) -> None:
    with build_proxy([mirror.name], trusted=[mirror.name]) as proxy:
        get(proxy, f"http://{mirror.name}/{path}")
        assert verdicts(proxy) == [verdict]
        assert detail in proxy.log[0].detail


def test_unreachable_hosts_are_failures() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    name = f"127.0.0.1:{port}"
    with build_proxy([name, "no-such-host.invalid"], trusted=[name]) as proxy:
        assert get(proxy, f"http://{name}/").startswith(b"HTTP/1.1 502")
        assert talk(proxy, "CONNECT no-such-host.invalid:443 HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 502")
        assert verdicts(proxy, 2) == ["failed", "failed"]


def test_tunnels_carry_bytes_both_ways() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        name = f"127.0.0.1:{server.getsockname()[1]}"

        def echo() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(peer.recv(100)[::-1])

        threading.Thread(target=echo, daemon=True).start()
        with build_proxy([name], trusted=[name]) as proxy:
            answer = talk(proxy, f"CONNECT {name} HTTP/1.1\r\nHost: {name}\r\n\r\n", more=b"abc")
            assert answer.startswith(b"HTTP/1.1 200")
            assert answer.endswith(b"\r\n\r\ncba")
            assert verdicts(proxy) == ["allowed"]


def test_the_machines_own_proxy_is_used(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://me:pa%40ss@{mirror.name}")
    monkeypatch.setenv("https_proxy", f"http://me:pa%40ss@{mirror.name}")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    login = "Basic bWU6cGFAc3M="
    with build_proxy(["far.example", mirror.name], trusted=[mirror.name]) as proxy:
        assert get(proxy, "http://far.example/x").endswith(f"close {login}".encode())
        assert talk(proxy, "CONNECT far.example:443 HTTP/1.1\r\n\r\n", more=b"hello\n").endswith(b"HELLO\n")
        assert get(proxy, f"http://{mirror.name}/direct").endswith(b"close None")
        assert get(proxy, "http://evil.example/").startswith(b"HTTP/1.1 403")
    assert mirror.seen == [
        "GET http://far.example/x far.example",
        f"CONNECT far.example:443 {login}",
        f"GET /direct {mirror.name}",
    ]


def test_a_proxy_for_one_host(mirror: Mirror) -> None:
    with build_proxy(["far.example"], via={"far.example": f"http://{mirror.name}/"}) as proxy:
        assert get(proxy, "http://far.example/x").startswith(b"HTTP/1.1 200")
    assert mirror.seen == ["GET http://far.example/x far.example"]


def test_patterns_and_ports() -> None:
    with build_proxy(["*.example.org", "mirror.example:8080", "[::1]:9"]) as proxy:
        assert proxy.allows("A.example.ORG.", 443)
        assert not proxy.allows("example.org", 443)
        assert not proxy.allows("a.example.org", 8080)
        assert proxy.allows("mirror.example", 8080)
        assert not proxy.allows("mirror.example", 80)


def test_nonsense_reaches_nobody() -> None:
    with build_proxy(["good.example"]) as proxy:
        assert talk(proxy, b"\xff" * 100 + b"\r\n\r\n").startswith(b"HTTP/1.1 403")
        assert talk(proxy, b"CONNECT good.example:99999999 HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 403")
        with suppress(ConnectionError):  # closed while the endless line is still being sent
            assert talk(proxy, b"A" * 200_000) == b""


def test_nothing_is_left_behind(mirror: Mirror) -> None:
    with build_proxy([mirror.name]) as proxy:
        path: Path = proxy.socket_path
        assert path.exists()
    assert not path.parent.exists()
    with pytest.raises(OSError, match=r"No such file"):
        talk(proxy, "GET http://x/ HTTP/1.1\r\n\r\n")
