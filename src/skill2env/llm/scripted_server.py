"""A model server with scripted replies, for tests and for trying things without a model.

    python -m skill2env.llm.scripted_server SCRIPT.json [--port 8080]

Speaks chat completions, responses and Anthropic's messages, streaming or not, with tool calls, token counts, and
faults on demand (`script.Fault`). Chat completions that ask for token ids get bytes (`byte_tokens`). Listens on this
machine only. It is no mock of a client: every byte goes over a socket.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, override

from skill2env.llm.byte_tokens import with_token_ids
from skill2env.llm.formats import FORMATS, WireFormat
from skill2env.llm.script import Fault, Reader, Script, ScriptedCall, ScriptedReply

MAX_REQUEST_BYTES = 64 * 2**20
_SLOW_SEC = 0.5
_HANG_SEC = 600.0
_STATUS: dict[Fault, tuple[int, str, str]] = {
    Fault.RATE_LIMIT: (429, "rate_limit_exceeded", "Too many requests"),
    Fault.QUOTA: (429, "insufficient_quota", "You exceeded your current quota"),
    Fault.SERVER: (500, "server_error", "Something broke"),
    Fault.OVERLOADED: (503, "overloaded_error", "Overloaded"),
    Fault.UNAUTHORISED: (401, "invalid_api_key", "Incorrect API key"),
    Fault.NO_MODEL: (404, "model_not_found", "There is no such model"),
    Fault.CONTEXT: (400, "context_length_exceeded", "This dialogue exceeds the maximum context length"),
    Fault.BLOCKED: (400, "content_policy_violation", "Blocked by the content policy"),
}


@dataclass(slots=True)
class Seen:
    """One request, as tests look at it."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    fault: Fault | None = None


@dataclass(slots=True)
class ScriptedServer:
    """A running server."""

    address: str
    """``http://127.0.0.1:PORT``; clients of OpenAI's formats add ``/v1``."""
    requests: list[Seen] = field(default_factory=list[Seen])

    @property
    def base_url(self) -> str:
        """What OpenAI clients take as base address."""
        return f"{self.address}/v1"

    @property
    def port(self) -> int:
        """Its port."""
        return int(self.address.rpartition(":")[2])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    reader: Reader
    server_state: ScriptedServer
    stopping: threading.Event

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: what matters is in `ScriptedServer.requests`."""

    def do_GET(self) -> None:
        """List the one model; a client that would rather have a web socket is told that there are none."""
        if self.headers.get("upgrade"):
            self._refuse(426, "no_web_sockets", "There are no web sockets here")
            return
        known = {"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "skill2env"}]}
        self._send(200, json.dumps(known).encode())

    def do_POST(self) -> None:
        """Answer one request."""
        path = self.path.partition("?")[0]
        wire = next((item for item in FORMATS if path.endswith(item.path)), None)
        length = int(self.headers.get("content-length") or 0)
        if length > MAX_REQUEST_BYTES:
            self._refuse(413, "too_large", "The request is too large")
            return
        data = self.rfile.read(length)
        if wire is None:
            self._refuse(404, "not_found", f"There is nothing at {path}")
            return
        try:
            body = json.loads(data)
            first, turns = wire.position(body)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._refuse(400, "invalid_request_error", f"The request is no {wire.path}: {error}")
            return
        seen = Seen(path, body, {key.lower(): value for key, value in self.headers.items()})
        self.server_state.requests.append(seen)
        found = self.reader.next(first, turns)
        if found is None:
            self._refuse(400, "no_scenario", "The script has no scenario for this dialogue")
            return
        reply, seen.fault = found
        with suppress(BrokenPipeError, ConnectionResetError):  # the client gave up: what some faults are for
            self._answer(wire, body, len(data), reply, seen.fault)

    def _answer(
        self, wire: WireFormat, body: dict[str, Any], size: int, reply: ScriptedReply, fault: Fault | None
    ) -> None:
        if fault is not None and fault in _STATUS:
            status, code, words = _STATUS[fault]
            self._refuse(status, code, words, {"retry-after": "0.2"} if fault is Fault.RATE_LIMIT else {})
        elif fault is Fault.HANG:
            self.stopping.wait(_HANG_SEC)
            self.close_connection = True
        elif fault is Fault.WEB_PAGE:
            self._send(200, b"<html><body>Sign in to the network</body></html>", kind="text/html")
        elif fault is Fault.BROKEN_JSON:
            self._send(200, b'{"id": "x", "choices": [{"mess', kind="application/json")
        else:
            self._reply(wire, body, size, _bent(reply, fault), fault)

    def _reply(
        self, wire: WireFormat, body: dict[str, Any], size: int, reply: ScriptedReply, fault: Fault | None
    ) -> None:
        finish = {Fault.LENGTH: "length", Fault.REFUSAL: "refusal", Fault.EMPTY: "empty"}.get(
            fault or Fault.SLOW, ""
        )
        model = str(body.get("model", ""))
        if not body.get("stream"):
            data = json.dumps(with_token_ids(wire.whole(reply, model, size, finish), body)).encode()
            if fault is Fault.CUT:
                self._send(200, data[: len(data) // 2], length=len(data))
            else:
                if fault is Fault.SLOW:
                    self.stopping.wait(_SLOW_SEC)
                self._send(200, data)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        events = list(wire.pieces(reply, model, size, finish))
        shown = events[: len(events) // 2] if fault is Fault.CUT else events
        for event in shown:
            self.wfile.write(event.encode())
            self.wfile.flush()
            if fault is Fault.SLOW and self.stopping.wait(_SLOW_SEC):
                return

    def _refuse(self, status: int, code: str, words: str, headers: dict[str, str] | None = None) -> None:
        error = {"type": "error", "error": {"type": code, "code": code, "message": words}}
        self._send(status, json.dumps(error).encode(), headers=headers)

    def _send(
        self,
        status: int,
        data: bytes,
        *,
        kind: str = "application/json",
        length: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data) if length is None else length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
        if length is not None:
            self.close_connection = True


def _bent(reply: ScriptedReply, fault: Fault | None) -> ScriptedReply:
    """The reply with the fault in it, for faults that are a matter of content."""
    if fault is Fault.REFUSAL:
        return ScriptedReply(text="I cannot help with that.")
    if fault is Fault.LENGTH:
        return ScriptedReply(text=(reply.text or "Let me think about this")[: max(1, len(reply.text) // 2)])
    if fault is Fault.EMPTY:
        return ScriptedReply()
    if fault is Fault.GARBAGE_CALL:
        name = reply.calls[0].name if reply.calls else "bash"
        return ScriptedReply(calls=(ScriptedCall(name=name, arguments='{"command": "ls'),))
    return reply


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news; anything else is."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def scripted_server(script: Script, *, port: int = 0) -> Generator[ScriptedServer]:
    """Run a server on 127.0.0.1 while the block lasts.

    Args:
        script: what it says.
        port: 0 for any free one.
    """
    stopping = threading.Event()
    state = ScriptedServer("")
    handler = type(
        "Handler", (_Handler,), {"reader": Reader(script), "server_state": state, "stopping": stopping}
    )
    server = _Server(("127.0.0.1", port), handler)
    state.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        stopping.set()
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)


def main() -> int:
    """Serve a script until interrupted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("script", type=Path)
    parser.add_argument("--port", type=int, default=8080)
    arguments = parser.parse_args()
    with scripted_server(Script.load(arguments.script), port=arguments.port) as server:
        print(f"serving {arguments.script} at {server.base_url} (Ctrl-C ends it)", flush=True)
        with suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600)
    return 0


if __name__ == "__main__":
    sys.exit(main())
