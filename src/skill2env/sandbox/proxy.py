"""The only way out of a sandbox: a host-side HTTP proxy on a unix socket, with an allowlist and a log.

Covers: CONNECT (TLS passes through unread) and absolute-form HTTP requests to hosts on the list, one request a
connection; everything else is answered with 403 and logged. Addresses of this machine and of private networks are
refused unless the machine's own package settings name the host, so a list entry cannot be turned against the host by
DNS. Proxies that the machine itself needs (``http_proxy``, apt's settings) are passed through. The log tells a request
that the network failed to carry from one that was served or refused. Does not cover: what is asked inside TLS.
"""

import contextlib
import ipaddress
import shutil
import socket
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import SplitResult, urlsplit

from skill2env.sandbox.egress import Egress, address_of
from skill2env.sandbox.wire import (
    IDLE_TIMEOUT_SEC,
    carry_answer,
    login,
    one_request,
    read_head,
    reply,
    splice,
    status,
)

CONNECT_TIMEOUT_SEC = 30.0
CONNECTIONS_AT_MOST = 64


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


class EgressProxy:
    """Serves until `close`; use as a context manager.

    Args:
        rules: what may be reached; may be replaced while it serves (`switch`).
        via: proxy URL for single hosts; other hosts use the environment's ``http_proxy`` and ``https_proxy``.
        idle_sec: a connection on which nothing moves for so long is ended.
    """

    def __init__(
        self,
        rules: Egress,
        *,
        via: Mapping[str, str] | None = None,
        idle_sec: float = IDLE_TIMEOUT_SEC,
    ) -> None:
        self._rules = rules
        self._idle_sec = idle_sec
        self._via = {host.lower(): url for host, url in (via or {}).items()}
        self._folder = Path(tempfile.mkdtemp(prefix="skill2env-proxy-"))
        self._folder.chmod(0o711)
        self._listeners: list[socket.socket] = []
        self._slots = threading.BoundedSemaphore(CONNECTIONS_AT_MOST)
        self._lock = threading.Lock()
        self._log: list[Access] = []
        self._open: dict[socket.socket, tuple[str, int]] = {}
        self.socket_path = self._folder / "proxy.sock"
        self._listen(self.socket_path, self._answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening and remove the sockets; connections in flight end with their peers."""
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def log(self) -> tuple[Access, ...]:
        """Every request so far."""
        with self._lock:
            return tuple(self._log)

    def allows(self, host: str, port: int) -> bool:
        """True when the rules name a host and port."""
        return self._rules.allows(host, port)

    def switch(self, rules: Egress) -> None:
        """Go on with other rules; open connections to what they do not allow end at once."""
        with self._lock:
            self._rules = rules
            ended = [
                upstream for upstream, (host, port) in self._open.items() if not rules.allows(host, port)
            ]
        for upstream in ended:
            with contextlib.suppress(OSError):
                upstream.shutdown(socket.SHUT_RDWR)

    def forward(self, port: int) -> Path:
        """Socket whose connections lead to a port of this machine's 127.0.0.1, while the rules name it."""
        path = self._folder / f"forward-{port}.sock"
        self._listen(path, lambda client: self._pass_on(client, port))
        return path

    def _note(self, host: str, port: int, verdict: str, detail: str = "") -> None:
        with self._lock:
            self._log.append(Access(host, port, verdict, detail))

    def _listen(self, path: Path, serve: Callable[[socket.socket], None]) -> None:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen(CONNECTIONS_AT_MOST)
        self._listeners.append(listener)
        threading.Thread(
            target=self._accept, args=(listener, serve), name="egress-proxy", daemon=True
        ).start()

    def _accept(self, listener: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            if not self._slots.acquire(blocking=False):
                client.close()  # a flood from inside costs the flooder its own connections
                continue
            threading.Thread(target=self._serve, args=(client, serve), daemon=True).start()

    def _serve(self, client: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        try:
            with client:
                client.settimeout(self._idle_sec)
                with contextlib.suppress(OSError, ValueError):
                    serve(client)
        finally:
            self._slots.release()

    def _pass_on(self, client: socket.socket, port: int) -> None:
        host = "127.0.0.1"
        if not (self._rules.allows(host, port) or self._rules.allows("localhost", port)):
            self._note(host, port, "refused", f"{host}:{port} is not on the list")
            return
        try:
            upstream = socket.create_connection((host, port), CONNECT_TIMEOUT_SEC)
        except OSError as error:
            self._note(host, port, "failed", str(error))
            return
        with upstream, self._listed(upstream, host, port):
            upstream.settimeout(self._idle_sec)
            splice(client, upstream, idle_sec=self._idle_sec)
        self._note(host, port, "allowed")

    def _answer(self, client: socket.socket) -> None:
        head, rest = read_head(client)
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
            reply(client, b"403 Forbidden")
            return
        except OSError as error:
            self._note(host, port, "failed", str(error))
            reply(client, b"502 Bad Gateway")
            return
        with upstream, self._listed(upstream, host, port):
            upstream.settimeout(self._idle_sec)
            try:
                if tunnel:
                    self._tunnel(client, upstream, via=via, target=target, rest=rest)
                else:
                    upstream.sendall(one_request(head, parts, via) + rest)
                    carry_answer(client, upstream, head_only=method == "HEAD", idle_sec=self._idle_sec)
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
                f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{login(via)}\r\n".encode("latin-1")
            )
            head, rest_of_proxy = read_head(upstream)
            code = status(head)
            if code != 200:
                reply(client, b"502 Bad Gateway")
                raise OSError(f"the machine's proxy answered {code} to CONNECT")
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n" + rest_of_proxy)
        else:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        if rest:
            upstream.sendall(rest)
        splice(client, upstream, idle_sec=self._idle_sec)

    def _connect(self, host: str, port: int, *, tunnel: bool) -> tuple[socket.socket, SplitResult | None]:
        """(connection, the machine's own proxy when it goes there and not to the host itself)."""
        rules = self._rules
        named = bool(host) and rules.allows(host, port)
        if not named and (not host or not rules.networks or address_of(host) is not None):
            raise Refused(f"{host or 'no host'}:{port} is not on the list")
        via = self._proxy_for(host, tunnel=tunnel) if named else None
        if via is not None and via.hostname:
            return socket.create_connection((via.hostname, via.port or 3128), CONNECT_TIMEOUT_SEC), via
        last: OSError | None = None
        for family, kind, protocol, _, where in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            address = ipaddress.ip_address(where[0].partition("%")[0] if isinstance(where[0], str) else "::")
            if not named and not rules.allows_address(address, port):
                raise Refused(f"{host}:{port} is not on the list")
            if not address.is_global and not rules.may_be_private(host, port):
                raise Refused(f"{host} has a private address")
            connection = socket.socket(family, kind, protocol)
            connection.settimeout(CONNECT_TIMEOUT_SEC)
            try:
                connection.connect(where)
            except OSError as error:
                connection.close()
                last = error
            else:
                return connection, None
        raise last or OSError(f"{host} has no address")

    @contextlib.contextmanager
    def _listed(self, upstream: socket.socket, host: str, port: int) -> Generator[None]:
        """Let `switch` find a connection while it is in use."""
        with self._lock:
            self._open[upstream] = host, port
        try:
            yield
        finally:
            with self._lock:
                del self._open[upstream]

    def _proxy_for(self, host: str, *, tunnel: bool) -> SplitResult | None:
        url = self._via.get(host.lower(), "")
        if not url and not urllib.request.proxy_bypass(host):
            url = urllib.request.getproxies().get("https" if tunnel else "http", "")
        if url in ("", "DIRECT"):
            return None
        via = urlsplit(url if "://" in url else f"http://{url}")
        return via if via.scheme == "http" else None
