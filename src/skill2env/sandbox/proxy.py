"""The only way out of a sandbox: a host-side HTTP proxy on a unix socket, with an allowlist and a log.

Covers: CONNECT (TLS passes through unread) and absolute-form HTTP requests to hosts on the list, one request a
connection; everything else is answered with 403 and logged. Addresses of this machine and of private networks are
refused unless the machine's own package settings name the host, so a list entry cannot be turned against the host by
DNS. Proxies that the machine itself needs (``http_proxy``, apt's settings) are passed through. The log tells a request
that the network failed to carry from one that was served or refused. Does not cover: what is asked inside TLS.
"""

import contextlib
import os
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import SplitResult, urlsplit

from skill2env.sandbox import scratch
from skill2env.sandbox.dial import CONNECT_TIMEOUT_SEC, Refused, authority, dial
from skill2env.sandbox.egress import Egress
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.wire import (
    IDLE_TIMEOUT_SEC,
    Body,
    Request,
    carry_answer,
    login,
    one_request,
    parse_request,
    read_head,
    reply,
    splice,
    status,
)

CONNECTIONS_AT_MOST = 64
LOG_AT_MOST = 10_000
"""Requests that are logged; more are counted. Whoever is inside must not fill the host's memory."""
_HOST_CHARS = 255
_DETAIL_CHARS = 300
_PAUSE_SEC = 0.1


@dataclass(frozen=True, slots=True)
class Access:
    """One request as it was decided and carried."""

    host: str
    port: int
    verdict: str
    """``allowed`` (served), ``refused`` (not on the list) or ``failed`` (the network or the server broke down)."""
    detail: str = ""


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
        self._corner = scratch.Corner.make(current_identity())
        self._closed = False
        self._listeners: list[socket.socket] = []
        self._slots = threading.BoundedSemaphore(CONNECTIONS_AT_MOST)
        self._lock = threading.Lock()
        self._log: list[Access] = []
        self.unlogged = 0
        """Requests beyond `LOG_AT_MOST`."""
        self._open: dict[socket.socket, tuple[str, int]] = {}
        self.socket_path = self._corner.path / "proxy.sock"
        self._listen(self.socket_path, self._answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening and remove the sockets; connections in flight end with their peers."""
        self._closed = True
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self._corner.remove()

    @property
    def folder(self) -> Path:
        """A private folder that mapped users can walk into; gone with the proxy."""
        return self._corner.path

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
        path = self._corner.path / f"forward-{port}.sock"
        self._listen(path, lambda client: self._pass_on(client, port))
        return path

    def _note(self, host: str, port: int, verdict: str, detail: str = "") -> None:
        with self._lock:
            if len(self._log) < LOG_AT_MOST:
                self._log.append(Access(host[:_HOST_CHARS], port, verdict, detail[:_DETAIL_CHARS]))
            else:
                self.unlogged += 1

    def _listen(self, path: Path, serve: Callable[[socket.socket], None]) -> None:
        listener = socket.socket(socket.AF_UNIX)
        # By way of an open folder, because the path of a socket may have 107 bytes only.
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            listener.bind(f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)
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
                if self._closed:
                    return
                time.sleep(_PAUSE_SEC)  # no descriptor left, for the moment
                continue
            if not self._slots.acquire(blocking=False):
                client.close()  # a flood from inside costs the flooder its own connections
                continue
            try:
                threading.Thread(target=self._serve, args=(client, serve), daemon=True).start()
            except RuntimeError:  # no thread left
                client.close()
                self._slots.release()

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
        host, port = "", 0
        try:
            request = parse_request(head)
            tunnel = request.method == "CONNECT"
            parts = urlsplit(f"//{request.target}" if tunnel else request.target)
            host, port = parts.hostname or "", parts.port or (443 if tunnel else 80)
            if (not tunnel and parts.scheme != "http") or (tunnel and parts.netloc != request.target):
                raise Refused(f"{request.method} {request.target[:100]} is no request for a proxy")
            if tunnel and "@" in parts.netloc:
                raise Refused("a tunnel needs no user name")
            upstream, via = dial(self._rules, host, port, via=self._proxy_for(host, tunnel=tunnel))
        except (Refused, ValueError) as refusal:
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
                    self._tunnel(client, upstream, via=via, target=authority(host, port), rest=rest)
                else:
                    self._carry(client, upstream, via=via, request=request, parts=parts, rest=rest)
            except OSError as error:
                self._note(host, port, "failed", str(error) or type(error).__name__)
            else:
                self._note(host, port, "allowed")

    def _carry(
        self,
        client: socket.socket,
        upstream: socket.socket,
        *,
        via: SplitResult | None,
        request: Request,
        parts: SplitResult,
        rest: bytes,
    ) -> None:
        where = authority(parts.hostname or "", parts.port or 0)
        body = Body(request)
        upstream.sendall(one_request(request, parts, where, via) + body.take(rest))
        head_only = request.method == "HEAD"
        carry_answer(client, upstream, head_only=head_only, body=body, idle_sec=self._idle_sec)

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
        return via if via.scheme == "http" and via.hostname else None
