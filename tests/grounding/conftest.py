"""A web server of one's own with every kind of bad manners."""

import threading
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

MIT = b"MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy\n"
TABLE = b"month,total\n2024-01,10\n"


@dataclass
class Web:
    """A running server and what it was asked."""

    port: int
    asked: list[str] = field(default_factory=list[str])
    failures_left: int = 0

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        return f"http://{self.host}{path}"


class Handler(BaseHTTPRequestHandler):
    web: Web

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        web, path = self.web, self.path
        web.asked.append(path)
        if path == "/cut" or (path == "/flaky" and web.failures_left > 0):
            web.failures_left -= 1
            self.head(200, length=1000)
            self.wfile.write(b"x" * 10)
            self.close_connection = True
        elif path == "/slow":
            self.head(200, length=1000)
            for _ in range(40):
                time.sleep(0.05)
                self.wfile.write(b"x")
        elif path in DRIPS:
            self.drip(path)
        elif path == "/silent":
            time.sleep(2)
        elif path == "/long":
            self.head(200)
            self.wfile.write(b"x" * 4096)
        elif path.startswith("/to/") or path in MOVED:
            self.send_response(302)
            self.send_header("location", MOVED.get(path) or path.removeprefix("/to/"))
            self.end_headers()
        elif path == "/lost":
            self.send_response(302)
            self.end_headers()
        elif path == "/broken":
            self.send_error(503)
        elif path == "/page":
            self.head(200, kind="text/html; charset=utf-8")
            self.wfile.write(b"<html>a page about table.csv</html>")
        elif path in FILES:
            self.head(200, length=len(FILES[path]))
            self.wfile.write(FILES[path])
        else:
            self.send_error(404)

    def drip(self, path: str) -> None:
        """Fifty bytes a second, of the headers or of the file."""
        if path != "/drip-head":
            self.head(200, length=100_000 if path == "/endless" else 1000)
        for letter in DRIPS[path]:
            self.wfile.write(bytes([letter]))
            time.sleep(0.02)
        self.close_connection = True

    def head(self, status: int, *, length: int = 0, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        if length:
            self.send_header("content-length", str(length))
        self.end_headers()


DRIPS = {
    "/drip-head": b"HTTP/1.1 200 OK\r\nX-Slow: " + b"y" * 400,
    "/drip": b"x" * 400,
    "/drip-cut": b"x" * 20,
    "/endless": b"x" * 30_000,
}
MOVED = {"/circle": "/circle", "/moved/table.csv": "/data/table.csv", "/TERMS": "/data/other/LICENSE"}
FILES = {
    "/data/table.csv": TABLE,
    "/data/big.bin": b"\0" * 3000,
    "/flaky": TABLE,
    "/LICENSE": MIT,
    "/moved/LICENSE": MIT,
    "/data/other/LICENSE": MIT,
    "/data/GPL": b"GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007\n",
    "/data/odd": b"You may look at this file on Tuesdays.\n",
}


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Generator[Web]:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
    Handler.web = Web(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield Handler.web
    server.shutdown()
    server.server_close()
    thread.join()
