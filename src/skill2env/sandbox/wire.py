"""HTTP as the proxy carries it: one request a connection, heads read whole, bodies passed on unread."""

import base64
import re
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote

HEADER_LIMIT_BYTES = 65536
CHUNK_BYTES = 1 << 16
IDLE_TIMEOUT_SEC = 120.0
HEAD_TIMEOUT_SEC = 60.0
HOP_HEADERS = (
    b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive", b"host", b"upgrade", b"te"
)  # fmt: skip
"""Headers that are between us and one neighbour."""


def read_head(source: socket.socket) -> tuple[bytes, bytes]:
    """(request or answer head without its last empty line, bytes that came after it); empty when there is none.

    A head has `HEAD_TIMEOUT_SEC` in all, however slowly it drips.
    """
    data, end = bytearray(), time.monotonic() + HEAD_TIMEOUT_SEC
    while (at := data.find(b"\r\n\r\n", max(0, len(data) - CHUNK_BYTES - 3))) < 0:
        piece = source.recv(CHUNK_BYTES)
        if not piece or len(data) > HEADER_LIMIT_BYTES or time.monotonic() > end:
            return b"", b""
        data += piece
    return bytes(data[:at]), bytes(data[at + 4 :])


@dataclass(frozen=True, slots=True)
class Request:
    """The head of a request, read so strictly that nobody behind can read it otherwise."""

    method: str
    target: str
    version: bytes
    lines: tuple[bytes, ...]
    """Header lines."""

    def values(self, name: bytes) -> list[bytes]:
        """Values of one header, in order."""
        pairs = (line.partition(b":") for line in self.lines)
        return [value.strip(b" \t") for key, _, value in pairs if key.lower() == name]


_REQUEST_LINE = re.compile(rb"([A-Za-z]{1,20}) ([!-~]{1,16384}) (HTTP/1\.[01])")
_HEADER_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*")


def parse_request(head: bytes) -> Request:
    """Read a head.

    Raises:
        ValueError: another program could read it in another way: bare line feeds, folded lines, spaces before a
            colon, or a body of unclear length.
    """
    first, *lines = head.split(b"\r\n")
    words = _REQUEST_LINE.fullmatch(first)
    if words is None or not all(_HEADER_LINE.fullmatch(line) for line in lines):
        raise ValueError("no plain HTTP request")
    request = Request(words[1].decode(), words[2].decode(), words[3], tuple(lines))
    lengths, codings = request.values(b"content-length"), request.values(b"transfer-encoding")
    if len(lengths) + len(codings) > 1 or any(not re.fullmatch(rb"[0-9]{1,15}", text) for text in lengths):
        raise ValueError("a body of unclear length")
    if codings and codings[0].lower() != b"chunked":
        raise ValueError("an unknown coding of the body")
    return request


class Body:
    """What of a client's bytes belongs to the one request: the rest would be a second one, and goes nowhere.

    Args:
        request: the head that was sent.
    """

    def __init__(self, request: Request) -> None:
        lengths = request.values(b"content-length")
        self._left = int(lengths[0]) if lengths else 0
        self._chunked = bool(request.values(b"transfer-encoding"))
        self._line = bytearray()
        self._trailer = False

    def take(self, data: bytes) -> bytes:
        """The part of the next bytes that belongs to the body.

        Raises:
            OSError: the chunks make no sense.
        """
        if not self._chunked:
            data = data[: self._left]
            self._left -= len(data)
            return data
        used = 0
        while used < len(data) and self._chunked:
            if self._left:
                step = min(self._left, len(data) - used)
                self._left -= step
                used += step
                continue
            at = data.find(b"\n", used)
            end = len(data) if at < 0 else at + 1
            self._line += data[used:end]
            used = end
            if at >= 0:
                self._read_line(bytes(self._line))
                self._line.clear()
            elif len(self._line) > CHUNK_BYTES:
                raise OSError("a damaged body came out of the sandbox")
        return data[:used]

    def _read_line(self, line: bytes) -> None:
        text = line.rstrip(b"\r\n").partition(b";")[0].strip()
        if self._trailer:
            self._chunked = bool(text)  # the empty line ends it all
        elif not re.fullmatch(rb"[0-9A-Fa-f]{1,12}", text) or not line.endswith(b"\r\n"):
            raise OSError("a damaged body came out of the sandbox")
        elif int(text, 16) == 0:
            self._trailer = True
        else:
            self._left = int(text, 16) + 2  # with the end of its line


def reply(client: socket.socket, status: bytes) -> None:
    """Answer with an empty body."""
    client.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def login(via: SplitResult) -> str:
    """The header line that logs in to the machine's own proxy; empty where its URL has no name."""
    if via.username is None:
        return ""
    pair = f"{unquote(via.username)}:{unquote(via.password or '')}"
    return f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"


def one_request(request: Request, parts: SplitResult, host: str, via: SplitResult | None) -> bytes:
    """The request for the next hop, asking for one answer: a kept connection could be used for another host.

    Args:
        request: as it came.
        parts: its target.
        host: what was checked, with the port where the target names one.
        via: the machine's own proxy, when it goes there.
    """
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    target = path if via is None else f"http://{host}{path}"
    kept = [line for line in request.lines if line.partition(b":")[0].lower() not in HOP_HEADERS]
    top = [
        b" ".join((request.method.encode(), target.encode("latin-1"), request.version)),
        b"Host: " + host.encode("latin-1"),
    ]
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
    client: socket.socket,
    upstream: socket.socket,
    *,
    head_only: bool,
    body: Body,
    idle_sec: float = IDLE_TIMEOUT_SEC,
) -> None:
    """Pass one answer on, and what is left of the request's body the other way.

    Raises:
        OSError: the server broke down, or nothing moved for `idle_sec`.
    """
    seen = bytearray()

    def watch(data: bytes) -> None:
        if b"\r\n\r\n" not in seen and len(seen) < HEADER_LIMIT_BYTES:
            seen.extend(data)

    received = splice(client, upstream, watch=watch, body=body, idle_sec=idle_sec)
    head, _, _ = bytes(seen).partition(b"\r\n\r\n")
    code = status(head)
    if code == 0:
        raise OSError("the server closed the connection without an answer")
    if code >= 500 or code == 429:
        raise OSError(f"the server answered {code}")
    lengths = [line for line in head.split(b"\r\n")[1:] if line.lower().startswith(b"content-length:")]
    if lengths and not head_only and code not in (204, 304):
        try:
            expected = int(lengths[0].partition(b":")[2]) + len(head) + 4
        except ValueError as error:
            raise OSError("the server sent no readable length") from error
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
    body: Body | None = None,
    idle_sec: float = IDLE_TIMEOUT_SEC,
) -> Carried:
    """Copy both ways until one side ends; with a `body`, only that goes to the server.

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
                    upstream.sendall(data if body is None else body.take(data))
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
