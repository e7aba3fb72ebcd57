"""Serve a policy to agents: chat completions with token ids and log-probabilities, as vLLM gives them.

Requests are answered in batches. A trainer that knows how many rollouts are under way says so (`PolicyServer.expect`);
a batch is then made when every one of them waits for the policy, so the same rollouts make the same batches, whatever
the machine does in between. Otherwise a batch is what arrives within a moment.

Listens on this machine only.
"""

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, cast, override

from skill2env.train.local.policy import Policy
from skill2env.train.local.sampling import Answer, Ask, sample

MAX_REQUEST_BYTES = 4 * 2**20
MOMENT_SEC = 0.03
"""How long a batch stays open after the last request, where nobody says how many there will be."""
PATIENCE_SEC = 60.0
"""How long a batch waits for rollouts that were announced. One that is lost must not hold the others for ever."""


@dataclass(slots=True)
class _Pending:
    ask: Ask
    ready: threading.Event = field(default_factory=threading.Event)
    answer: Answer | None = None
    problem: str = ""


class _BadRequest(Exception):
    """What is wrong with a request, and the code that clients know it by."""

    def __init__(self, message: str, code: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.code = code


class PolicyServer:
    """Use as a context manager. `seconds` and `tokens` tell what the model has done so far."""

    def __init__(
        self,
        policy: Policy,
        *,
        context_tokens: int = 1024,
        port: int = 0,
        sampler: Callable[[Policy, Sequence[Ask]], list[Answer]] = sample,
    ) -> None:
        self.policy = policy
        self.context_tokens = context_tokens
        self.seconds = 0.0
        self.tokens = 0
        self.batches = 0
        self._sampler = sampler
        self._pending: list[_Pending] = []
        self._live: int | None = None
        self._last = 0.0
        self._closing = False
        self._changed = threading.Condition()
        handler = type("_Bound", (_Handler,), {"server_of": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._http.daemon_threads = True
        self._threads = [
            threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True),
            threading.Thread(target=self._batches, daemon=True),
        ]

    @property
    def base_url(self) -> str:
        """What clients take as base address."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._http.shutdown()
        self._http.server_close()
        for thread in self._threads:
            thread.join(timeout=10)

    def expect(self, rollouts: int | None) -> None:
        """So many rollouts are under way; None when nobody knows."""
        with self._changed:
            self._live = rollouts
            self._changed.notify_all()

    def ended(self) -> None:
        """One of them has ended."""
        with self._changed:
            if self._live:
                self._live -= 1
            self._changed.notify_all()

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer one request of chat completions; waits for its batch."""
        ask = self._ask(body)
        waiting = _Pending(ask)
        with self._changed:
            self._pending.append(waiting)
            self._last = time.monotonic()
            self._changed.notify_all()
        while not waiting.ready.wait(0.5):
            if self._closing:
                raise _BadRequest("the server is closing")
        if waiting.answer is None:
            raise RuntimeError(waiting.problem)
        return self._document(ask, waiting.answer)

    def _ask(self, body: dict[str, Any]) -> Ask:
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            raise _BadRequest("messages: a list of messages is needed")
        clean: list[dict[str, str]] = []
        for item in cast("list[Any]", messages):
            if not isinstance(item, dict) or not isinstance(cast("Any", item).get("content"), str):
                raise _BadRequest("messages: each needs a role and a text as content")
            found = cast("dict[str, Any]", item)
            clean.append({"role": str(found.get("role", "user")), "content": found["content"]})
        try:
            prompt = self.policy.encode(clean)
            longest = int(body.get("max_tokens") or body.get("max_completion_tokens") or 24)
            heat, seed = float(body.get("temperature", 1.0)), int(body.get("seed") or 0)
        except (TypeError, ValueError) as error:
            raise _BadRequest(f"the request cannot be understood: {error}") from error
        if longest < 1 or not 0 <= heat <= 5:
            raise _BadRequest("max_tokens must be at least 1, and temperature in [0, 5]")
        if len(prompt) + longest > self.context_tokens:
            text = f"{len(prompt)} tokens of prompt and {longest} of answer exceed {self.context_tokens}"
            raise _BadRequest(text, "context_length_exceeded")
        stop = body.get("stop") or ()
        stops = (stop,) if isinstance(stop, str) else tuple(str(item) for item in stop)
        return Ask(prompt, seed, longest, heat, stops)

    def _document(self, ask: Ask, answer: Answer) -> dict[str, Any]:
        tokenizer = self.policy.tokenizer
        listed = [
            {"token": tokenizer.decode([token]), "logprob": value}
            for token, value in zip(answer.tokens, answer.log_probs, strict=True)
        ]
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": answer.text},
            "finish_reason": answer.finish,
            "token_ids": answer.tokens,
            "logprobs": {"content": listed},
        }
        used = {"prompt_tokens": len(ask.prompt), "completion_tokens": len(answer.tokens)}
        return {
            "object": "chat.completion",
            "model": self.policy.name,
            "choices": [choice],
            "prompt_token_ids": list(ask.prompt),
            "usage": {**used, "total_tokens": sum(used.values())},
        }

    def _batches(self) -> None:
        while True:
            with self._changed:
                while not self._closing and not self._ready():
                    self._changed.wait(MOMENT_SEC if self._pending else None)
                if self._closing:
                    return
                batch, self._pending = self._pending, []
            self._serve(sorted(batch, key=lambda item: item.ask))

    def _ready(self) -> bool:
        if not self._pending:
            return False
        quiet = time.monotonic() - self._last
        if self._live is None:
            return quiet >= MOMENT_SEC
        return len(self._pending) >= self._live or quiet >= PATIENCE_SEC

    def _serve(self, batch: Sequence[_Pending]) -> None:
        started = time.perf_counter()
        try:
            answers = self._sampler(self.policy, [item.ask for item in batch])
        except Exception as error:  # whoever asked is told; the server goes on
            for item in batch:
                item.problem = f"{type(error).__name__}: {error}"
                item.ready.set()
            return
        self.seconds += time.perf_counter() - started
        self.batches += 1
        for item, answer in zip(batch, answers, strict=True):
            self.tokens += len(answer.tokens)
            item.answer = answer
            item.ready.set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of: PolicyServer
    timeout = 600

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: what matters is in the metrics."""

    def do_GET(self) -> None:
        """The list of models, for clients that look first."""
        if self.path.rstrip("/").endswith("/models"):
            name = self.server_of.policy.name
            self._send(200, {"object": "list", "data": [{"id": name, "object": "model"}]})
        else:
            self._fail(404, "there is no such path", "not_found")

    def do_POST(self) -> None:
        """Chat completions."""
        if not self.path.rstrip("/").endswith("/chat/completions"):
            self._fail(404, "only chat completions are served", "not_found")
            return
        try:
            length = int(self.headers.get("Content-Length") or 0)
            if length > MAX_REQUEST_BYTES:
                self.close_connection = True
                self._fail(413, "the request is too large", "invalid_request_error")
                return
            body: Any = json.loads(self.rfile.read(length))
            if not isinstance(body, dict):
                raise _BadRequest("a JSON object is needed")
            self._send(200, self.server_of.answer(cast("dict[str, Any]", body)))
        except _BadRequest as error:
            self._fail(400, str(error), error.code)
        except (ValueError, RecursionError) as error:
            self._fail(400, f"the request is no JSON: {error}", "invalid_request_error")
        except RuntimeError as error:
            self._fail(500, str(error), "server_error")

    def _fail(self, status: int, message: str, code: str) -> None:
        self._send(status, {"error": {"message": message, "type": code, "code": code}})

    def _send(self, status: int, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except ConnectionError:
            self.close_connection = True  # whoever asked has gone
