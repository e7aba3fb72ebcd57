"""The only way out of a sandbox: a host-side HTTP proxy on a unix socket, with an allowlist and a log.

Covers: CONNECT (TLS passes through unread) and absolute-form HTTP requests to hosts on the list; everything else is
answered with 403 and logged. Addresses of this machine and of private networks are refused unless the machine's own package
settings name them, so a list entry cannot be turned against the host by DNS. Upstream proxies of the environment (``http_proxy``) are used.
"""

import contextlib
import fnmatch
import ipaddress
import os
import selectors
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

HEADER_LIMIT_BYTES = 65536
CHUNK_BYTES = 1 << 16
CONNECT_TIMEOUT_SEC = 30.0
IDLE_TIMEOUT_SEC = 300.0


@dataclass(frozen=True, slots=True)
class Access:
    """One request as it was decided."""

    host: str
    port: int
    verdict: str
    """``allowed``, ``refused`` or ``failed``."""
    detail: str = ""


class Refused(Exception):
    """The host is not on the list."""


class BuildProxy:
    """Serves until `close`; use as a context manager.

    Args:
        hosts: allowed host names; shell patterns such as ``*.example.org`` are understood.
        trusted: of these, hosts that may resolve to private addresses (mirrors of the machine's own settings).
    """

    def __init__(self, hosts: Iterable[str], *, trusted: Iterable[str] = ()) -> None:
        self._hosts = tuple(sorted({h.lower() for h in hosts}))
        self._trusted = frozenset(h.lower() for h in trusted)
        self._folder = Path(tempfile.mkdtemp(prefix="skill2env-proxy-"))
        self._folder.chmod(0o711)
        self.socket_path = self._folder / "proxy.sock"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.socket_path))
        self.socket_path.chmod(0o666)
        self._listener.listen(64)
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

    def allows(self, host: str) -> bool:
        """True when a host name is on the list."""
        host = host.lower().rstrip(".")
        return any(fnmatch.fnmatchcase(host, pattern) for pattern in self._hosts)

    def _note(self, host: str, port: int, verdict: str, detail: str = "") -> None:
        with self._lock:
            self._log.append(Access(host, port, verdict, detail))

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            client.settimeout(IDLE_TIMEOUT_SEC)
            with contextlib.suppress(OSError, ValueError):
                self._answer(client)

    def _answer(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            piece = client.recv(CHUNK_BYTES)
            if not piece or len(head) > HEADER_LIMIT_BYTES:
                return
            head += piece
        line = head.split(b"\r\n", 1)[0].decode("latin-1")
        method, target, *_ = [*line.split(" "), "", ""]
        tunnel = method == "CONNECT"
        parts = urlsplit(f"//{target}" if tunnel else target)
        host, port = parts.hostname or "", parts.port or (443 if tunnel else 80)
        try:
            upstream, direct = self._connect(host, port)
        except Refused as refusal:
            self._note(host, port, "refused", str(refusal))
            client.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        except OSError as error:
            self._note(host, port, "failed", str(error))
            client.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        self._note(host, port, "allowed")
        with upstream:
            upstream.settimeout(IDLE_TIMEOUT_SEC)
            if not tunnel:
                upstream.sendall(_closing(_origin_form(head, parts.netloc) if direct else head))
            elif direct:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                rest = head.partition(b"\r\n\r\n")[2]
                if rest:
                    upstream.sendall(rest)
            else:
                upstream.sendall(head)
            _splice(client, upstream)

    def _connect(self, host: str, port: int) -> tuple[socket.socket, bool]:
        """(connection, True when it goes to the host itself and not to an upstream proxy)."""
        if not host or not self.allows(host):
            raise Refused(f"{host or 'no host'} is not on the list")
        via = urlsplit(os.environ.get("https_proxy" if port == 443 else "http_proxy", ""))
        if via.hostname:
            return socket.create_connection((via.hostname, via.port or 3128), CONNECT_TIMEOUT_SEC), False
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
                return connection, True
        raise last or OSError(f"{host} has no address")


def _origin_form(head: bytes, netloc: str) -> bytes:
    """Rewrite ``GET http://host/path`` to ``GET /path``."""
    return head.replace(f"http://{netloc}".encode("latin-1"), b"", 1).replace(b"GET  ", b"GET / ", 1)


def _closing(head: bytes) -> bytes:
    """Ask for one answer a connection: a kept-open one could be used for another host without a check."""
    lines, _, body = head.partition(b"\r\n\r\n")
    kept = [
        x for x in lines.split(b"\r\n") if not x.lower().startswith((b"connection:", b"proxy-connection:"))
    ]
    return b"\r\n".join([*kept, b"Connection: close"]) + b"\r\n\r\n" + body


def _splice(first: socket.socket, second: socket.socket) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(first, selectors.EVENT_READ, second)
        selector.register(second, selectors.EVENT_READ, first)
        while True:
            ready = selector.select(IDLE_TIMEOUT_SEC)
            if not ready:
                return
            for key, _ in ready:
                source = key.fileobj
                assert isinstance(source, socket.socket)
                data = source.recv(CHUNK_BYTES)
                if not data:
                    return
                key.data.sendall(data)
