"""HTTP as the proxy carries it: one request a connection, heads read whole, bodies passed on unread."""

import base64
import selectors
import socket
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote

HEADER_LIMIT_BYTES = 65536
CHUNK_BYTES = 1 << 16
IDLE_TIMEOUT_SEC = 120.0


def read_head(source: socket.socket) -> tuple[bytes, bytes]:
    """(request or answer head without its last empty line, bytes that came after it); empty when there is none."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = source.recv(CHUNK_BYTES)
        if not piece or len(data) > HEADER_LIMIT_BYTES:
            return b"", b""
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def reply(client: socket.socket, status: bytes) -> None:
    """Answer with an empty body."""
    client.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def login(via: SplitResult) -> str:
    """The header line that logs in to the machine's own proxy; empty where its URL has no name."""
    if via.username is None:
        return ""
    pair = f"{unquote(via.username)}:{unquote(via.password or '')}"
    return f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"


def one_request(head: bytes, parts: SplitResult, via: SplitResult | None) -> bytes:
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
    credentials = login(via).encode("latin-1").rstrip(b"\r\n") if via is not None else b""
    return (
        b"\r\n".join([*top, *kept, *([credentials] if credentials else []), b"Connection: close"])
        + b"\r\n\r\n"
    )


def status(head: bytes) -> int:
    """Status code of an answer; 0 when there is none."""
    words = head.partition(b"\r\n")[0].split()
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def carry_answer(
    client: socket.socket, upstream: socket.socket, *, head_only: bool, idle_sec: float = IDLE_TIMEOUT_SEC
) -> None:
    """Pass one answer on, and a request body the other way.

    Raises:
        OSError: the server broke down, or nothing moved for `idle_sec`.
    """
    seen = bytearray()

    def watch(data: bytes) -> None:
        if b"\r\n\r\n" not in seen and len(seen) < HEADER_LIMIT_BYTES:
            seen.extend(data)

    received = splice(client, upstream, watch=watch, idle_sec=idle_sec)
    head, _, _ = bytes(seen).partition(b"\r\n\r\n")
    code = status(head)
    if code == 0:
        raise OSError("the server closed the connection without an answer")
    if code >= 500 or code == 429:
        raise OSError(f"the server answered {code}")
    lengths = [line for line in head.split(b"\r\n")[1:] if line.lower().startswith(b"content-length:")]
    if lengths and not head_only and code not in (204, 304):
        expected = int(lengths[0].partition(b":")[2]) + len(head) + 4
        if received.upstream < expected and not received.client_left:
            raise OSError(f"the server broke off after {received.upstream} of {expected} bytes")


@dataclass(slots=True)
class Carried:
    """What one exchange moved."""

    upstream: int = 0
    """Bytes from the server."""
    client_left: bool = False


def splice(
    client: socket.socket,
    upstream: socket.socket,
    *,
    watch: Callable[[bytes], None] | None = None,
    idle_sec: float = IDLE_TIMEOUT_SEC,
) -> Carried:
    """Copy both ways until one side ends.

    Raises:
        OSError: the server's side broke, or nothing moved for `idle_sec`.
    """
    carried = Carried()
    with selectors.DefaultSelector() as selector:
        selector.register(client, selectors.EVENT_READ)
        selector.register(upstream, selectors.EVENT_READ)
        while True:
            ready = selector.select(idle_sec)
            if not ready:
                raise TimeoutError(f"nothing moved for {idle_sec:.0f} s")
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
