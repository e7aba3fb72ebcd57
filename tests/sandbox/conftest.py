"""Sandboxes on the default base image, started as whoever runs the tests, in the best tier that this user has."""

import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from skill2env.sandbox.doctor import namespace_works
from skill2env.sandbox.images import ensure_base
from skill2env.sandbox.session import Sandbox, SandboxSpec


@pytest.fixture(scope="session")
def rootfs() -> Path:
    """Root file system of the default base; skips where sandboxes cannot start."""
    if not namespace_works():
        pytest.skip("this machine forbids the namespace sandbox: see `skill2env doctor`")
    return ensure_base().rootfs


@pytest.fixture(scope="module")
def box(rootfs: Path) -> Iterator[Sandbox]:
    """A sandbox that the tests of a module share."""
    with Sandbox(SandboxSpec(layers=(rootfs,))) as sandbox:
        yield sandbox


@pytest.fixture
def new_box(rootfs: Path) -> Iterator[Callable[..., Sandbox]]:
    """Starts sandboxes with settings of their own."""
    with ExitStack() as stack:

        def make(**settings: Any) -> Sandbox:
            return stack.enter_context(Sandbox(SandboxSpec(layers=(rootfs,), **settings)))

        yield make


@pytest.fixture
def no_machine_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the proxies of this machine out of the environment."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def serve() -> Iterator[Callable[[bytes], int]]:
    """Starts servers on the loopback interface of this machine that answer everything with one text; gives the port."""
    with ExitStack() as stack:

        def start(body: bytes) -> int:
            class Answer(http.server.BaseHTTPRequestHandler):
                def do_GET(self) -> None:
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.write(body)

                def log_message(self, *args: object) -> None:
                    pass

            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
            return server.server_port

        yield start
