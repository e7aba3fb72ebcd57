"""The only way out of a sandbox: a host-side HTTP proxy on a unix socket, with an allowlist and a log.

Covers: CONNECT (TLS passes through unread) and absolute-form HTTP requests to hosts on the list, one request a
connection; everything else is answered with 403 and logged. Addresses of this machine and of private networks are
refused unless the machine's own package settings name the host, so a list entry cannot be turned against the host by
DNS. Proxies that the machine itself needs (``http_proxy``, apt's settings) are passed through. The log tells a request
that the network failed to carry from one that was served or refused. Does not cover: what is asked inside TLS.
"""

import base64
import contextlib
import fnmatch
import ipaddress
import selectors
import shutil
import socket
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import SplitResult, unquote, urlsplit

HEADER_LIMIT_BYTES = 65536
CHUNK_BYTES = 1 << 16
CONNECT_TIMEOUT_SEC = 30.0
IDLE_TIMEOUT_SEC = 120.0
CONNECTIONS_AT_MOST = 64
_PORTS = (80, 443)


@dataclass(frozen=True, slots=True)
class Access:
    """One request as it was decided and carried."""

    host: str
    port: int
    verdict: str
    """``allowed`` (served), ``refused`` (not on the list) or ``failed`` (the network or the server broke down)."""
    detail: str = ""


class Refused(Exception):
    """The request asks for what is not on the list."""


class BuildProxy:
    """Serves until `close`; use as a context manager.

    Args:
        hosts: allowed ``host`` (ports 80 and 443) or ``host:port``; shell patterns such as ``*.example.org`` are
            understood in the host.
        trusted: of these, the ones that may have private addresses (mirrors of the machine's own settings).
        via: proxy URL for single hosts; other hosts use the environment's ``http_proxy`` and ``https_proxy``.
    """

    def __init__(
        self, hosts: Iterable[str], *, trusted: Iterable[str] = (), via: Mapping[str, str] | None = None
    ) -> None:
        self._rules = tuple(sorted({_rule(entry) for entry in hosts}))
        self._trusted = frozenset(_rule(entry)[0] for entry in trusted)
        self._via = {host.lower(): url for host, url in (via or {}).items()}
        self._folder = Path(tempfile.mkdtemp(prefix="skill2env-proxy-"))
        self._folder.chmod(0o711)
        self.socket_path = self._folder / "proxy.sock"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.socket_path))
        self.socket_path.chmod(0o666)
        self._listener.listen(CONNECTIONS_AT_MOST)
        self._slots = threading.BoundedSemaphore(CONNECTIONS_AT_MOST)
        self._lock = threading.Lock()
        self._log: list[Access] = []
        threading.Thread(target=self._accept, name="build-proxy", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening and remove the socket; connections in flight end with their peers."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def log(self) -> tuple[Access, ...]:
        """Every request so far."""
        with self._lock:
            return tuple(self._log)

    def allows(self, host: str, port: int) -> bool:
        """True when a host and port are on the list."""
        host = host.lower().rstrip(".")
        return any(
            fnmatch.fnmatchcase(host, pattern) and (port == only if only else port in _PORTS)
            for pattern, only in self._rules
        )

    def _note(self, host: str, port: int, verdict: str, detail: str = "") -> None:
        with self._lock:
            self._log.append(Access(host, port, verdict, detail))

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._slots.acquire(blocking=False):
                client.close()  # a flood from inside costs the flooder its own connections
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client:
                client.settimeout(IDLE_TIMEOUT_SEC)
                with contextlib.suppress(OSError, ValueError):
                    self._answer(client)
        finally:
            self._slots.release()

    def _answer(self, client: socket.socket) -> None:
        head, rest = _read_head(client)
        if not head:
            return
        method, target = [*head.partition(b"\r\n")[0].decode("latin-1").split(" "), "", ""][:2]
        tunnel = method == "CONNECT"
        parts = urlsplit(f"//{target}" if tunnel else target)
        host, port = parts.hostname or "", parts.port or (443 if tunnel else 80)
        try:
            if not tunnel and parts.scheme != "http":
                raise Refused(f"{method} {target[:100]} is no request for a proxy")
            upstream, via = self._connect(host, port, tunnel=tunnel)
        except Refused as refusal:
            self._note(host, port, "refused", str(refusal))
            _reply(client, b"403 Forbidden")
            return
        except OSError as error:
            self._note(host, port, "failed", str(error))
            _reply(client, b"502 Bad Gateway")
            return
        with upstream:
            upstream.settimeout(IDLE_TIMEOUT_SEC)
            try:
                if tunnel:
                    self._tunnel(client, upstream, via=via, target=target, rest=rest)
                else:
                    upstream.sendall(_one_request(head, parts, via) + rest)
                    _carry_answer(client, upstream, head_only=method == "HEAD")
            except OSError as error:
                self._note(host, port, "failed", str(error) or type(error).__name__)
            else:
                self._note(host, port, "allowed")

    def _tunnel(
        self,
        client: socket.socket,
        upstream: socket.socket,
        *,
        via: SplitResult | None,
        target: str,
        rest: bytes,
    ) -> None:
        if via is not None:
            upstream.sendall(
                f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{_login(via)}\r\n".encode("latin-1")
            )
            head, rest_of_proxy = _read_head(upstream)
            status = _status(head)
            if status != 200:
                _reply(client, b"502 Bad Gateway")
                raise OSError(f"the machine's proxy answered {status} to CONNECT")
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n" + rest_of_proxy)
        else:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        if rest:
            upstream.sendall(rest)
        _splice(client, upstream)

    def _connect(self, host: str, port: int, *, tunnel: bool) -> tuple[socket.socket, SplitResult | None]:
        """(connection, the machine's own proxy when it goes there and not to the host itself)."""
        if not host or not self.allows(host, port):
            raise Refused(f"{host or 'no host'}:{port} is not on the list")
        via = self._proxy_for(host, tunnel=tunnel)
        if via is not None and via.hostname:
            return socket.create_connection((via.hostname, via.port or 3128), CONNECT_TIMEOUT_SEC), via
        last: OSError | None = None
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            if host.lower() not in self._trusted and not ipaddress.ip_address(address[0]).is_global:
                raise Refused(f"{host} resolves to a private address")
            connection = socket.socket(family, kind, protocol)
            connection.settimeout(CONNECT_TIMEOUT_SEC)
            try:
                connection.connect(address)
            except OSError as error:
                connection.close()
                last = error
            else:
                return connection, None
        raise last or OSError(f"{host} has no address")

    def _proxy_for(self, host: str, *, tunnel: bool) -> SplitResult | None:
        url = self._via.get(host.lower(), "")
        if not url and not urllib.request.proxy_bypass(host):
            url = urllib.request.getproxies().get("https" if tunnel else "http", "")
        if url in ("", "DIRECT"):
            return None
        via = urlsplit(url if "://" in url else f"http://{url}")
        return via if via.scheme == "http" else None


def _rule(entry: str) -> tuple[str, int]:
    host, _, port = entry.lower().strip().rpartition(":")
    return (host, int(port)) if host and port.isdigit() else (entry.lower().strip().rstrip("."), 0)


def _read_head(source: socket.socket) -> tuple[bytes, bytes]:
    """(request or answer head without its last empty line, bytes that came after it); empty when there is none."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = source.recv(CHUNK_BYTES)
        if not piece or len(data) > HEADER_LIMIT_BYTES:
            return b"", b""
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _reply(client: socket.socket, status: bytes) -> None:
    client.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def _login(via: SplitResult) -> str:
    if via.username is None:
        return ""
    pair = f"{unquote(via.username)}:{unquote(via.password or '')}"
    return f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"


def _one_request(head: bytes, parts: SplitResult, via: SplitResult | None) -> bytes:
    """The request for the next hop, asking for one answer: a kept connection could be used for another host."""
    first, *lines = head.split(b"\r\n")
    method, _, version = first.split(b" ", 2)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    target = path if via is None else f"http://{parts.netloc}{path}"
    kept = [
        line
        for line in lines
        if line.partition(b":")[0].strip().lower()
        not in (b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive", b"host")
    ]
    top = [b" ".join((method, target.encode("latin-1"), version)), b"Host: " + parts.netloc.encode("latin-1")]
    login = _login(via).encode("latin-1").rstrip(b"\r\n") if via is not None else b""
    return b"\r\n".join([*top, *kept, *([login] if login else []), b"Connection: close"]) + b"\r\n\r\n"


def _status(head: bytes) -> int:
    words = head.partition(b"\r\n")[0].split()
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def _carry_answer(client: socket.socket, upstream: socket.socket, *, head_only: bool) -> None:
    """Pass one answer on, and a request body the other way; raises OSError when the server broke down."""
    seen = bytearray()

    def watch(data: bytes) -> None:
        if b"\r\n\r\n" not in seen and len(seen) < HEADER_LIMIT_BYTES:
            seen.extend(data)

    received = _splice(client, upstream, watch=watch)
    head, _, _ = bytes(seen).partition(b"\r\n\r\n")
    status = _status(head)
    if status == 0:
        raise OSError("the server closed the connection without an answer")
    if status >= 500 or status == 429:
        raise OSError(f"the server answered {status}")
    lengths = [line for line in head.split(b"\r\n")[1:] if line.lower().startswith(b"content-length:")]
    if lengths and not head_only and status not in (204, 304):
        expected = int(lengths[0].partition(b":")[2]) + len(head) + 4
        if received.upstream < expected and not received.client_left:
            raise OSError(f"the server broke off after {received.upstream} of {expected} bytes")


@dataclass(slots=True)
class _Carried:
    upstream: int = 0
    client_left: bool = False


def _splice(
    client: socket.socket, upstream: socket.socket, *, watch: Callable[[bytes], None] | None = None
) -> _Carried:
    """Copy both ways until one side ends.

    Raises:
        OSError: the server's side broke, or nothing moved for `IDLE_TIMEOUT_SEC`.
    """
    carried = _Carried()
    with selectors.DefaultSelector() as selector:
        selector.register(client, selectors.EVENT_READ)
        selector.register(upstream, selectors.EVENT_READ)
        while True:
            ready = selector.select(IDLE_TIMEOUT_SEC)
            if not ready:
                raise TimeoutError(f"nothing moved for {IDLE_TIMEOUT_SEC:.0f} s")
            for key, _ in ready:
                if key.fileobj is client:
                    try:
                        data = client.recv(CHUNK_BYTES)
                    except OSError:
                        data = b""
                    if not data:
                        carried.client_left = True
                        return carried
                    upstream.sendall(data)
                    continue
                data = upstream.recv(CHUNK_BYTES)
                if not data:
                    return carried
                carried.upstream += len(data)
                if watch is not None:
                    watch(data)
                try:
                    client.sendall(data)
                except OSError:
                    carried.client_left = True
                    return carried
