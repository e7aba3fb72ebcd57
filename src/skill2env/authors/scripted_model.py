"""A model server that plays fixed turns: the fake of a provider, shipped so that everybody's tests use the same.

with ScriptedModel([Turn("Looking.", (Call("bash", {"command": "ls"}),)), Turn("Done.")]) as model:
    ...  # an agent with the base URL model.url and any key

Speaks OpenAI's chat completions and responses, whole or streamed, with tool calls and token counts, on the loopback
interface of this machine. One script serves one conversation: each request gets the next turn, whatever it asks. Does
not cover: other providers' formats, images, embeddings, more than one choice.
"""

import http.server
import json
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Self, cast, override

type Json = dict[str, Any]
_CREATED = 1_700_000_000
"""Time stamp of every answer, in seconds of Unix time: scripts read no clock."""
_CHARS_A_TOKEN = 4
_BODY_BYTES_AT_MOST = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Call:
    """One tool that the model asks for."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the model."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    status: int = 200
    """Of HTTP; from 400 on the answer is an error whose message is `text`."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came in."""

    path: str
    key: str
    """What stood in the Authorization header, without ``Bearer``."""
    body: Json


class ScriptedModel:
    """Serves until `close`; use as a context manager. When the turns are used up, every request is an error 400.

    Args:
        turns: the answers in order.
        name: of the model, in its list of models and in answers to requests that name none.
    """

    def __init__(self, turns: Sequence[Turn], *, name: str = "scripted") -> None:
        self.asked: list[Asked] = []
        """Every request for an answer, in the order of arrival."""
        self.name = name
        self._turns = tuple(turns)
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def port(self) -> int:
        """On 127.0.0.1."""
        return self._server.server_port

    @property
    def url(self) -> str:
        """Base URL for clients."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def left(self) -> int:
        """How many turns nobody has asked for yet."""
        return max(0, len(self._turns) - len(self.asked))

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def next_turn(self, asked: Asked) -> tuple[int, Turn]:
        """(number of the turn from 0, the turn) for one request, which is remembered."""
        with self._lock:
            number = len(self.asked)
            self.asked.append(asked)
        if number < len(self._turns):
            return number, self._turns[number]
        return number, Turn(f"the script has no turn {number + 1}", status=HTTPStatus.BAD_REQUEST)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    @override
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that hang up; they do when their time is over."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # pyright: ignore[reportArgumentType]


def _handler(model: ScriptedModel) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(_Handler):
        script = model

    return Handler


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: ScriptedModel

    def do_GET(self) -> None:
        if self.headers.get("Upgrade"):  # codex would rather have a web socket, and knows this answer
            self._say(HTTPStatus.UPGRADE_REQUIRED, _error("there are no web sockets here"))
        elif self.path.partition("?")[0].endswith("/models"):
            models = [{"id": self.script.name, "object": "model", "created": _CREATED, "owned_by": "script"}]
            self._say(HTTPStatus.OK, {"object": "list", "data": models})
        else:
            self._say(HTTPStatus.NOT_FOUND, _error(f"nothing at {self.path}"))

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        answer = next((form for end, form in _FORMS.items() if path.endswith(end)), None)
        body = self._body()
        if answer is None or body is None:
            told = f"nothing at {path}" if answer is None else "the body is no JSON object"
            self._say(HTTPStatus.NOT_FOUND if answer is None else HTTPStatus.BAD_REQUEST, _error(told))
            return
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        number, turn = self.script.next_turn(Asked(path, key, body))
        if turn.status >= HTTPStatus.BAD_REQUEST:
            self._say(turn.status, _error(turn.text))
            return
        whole, events = answer
        body.setdefault("model", self.script.name)
        if body.get("stream"):
            self._stream(events(body, turn, number))
        else:
            self._say(turn.status, whole(body, turn, number))

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: `ScriptedModel.asked` has it all."""

    def _body(self) -> Json | None:
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 < length <= _BODY_BYTES_AT_MOST:
            return None
        try:
            body: Any = json.loads(self.rfile.read(length))
        except ValueError:
            return None
        return cast("Json", body) if isinstance(body, dict) else None

    def _say(self, status: int, answer: Json) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[str]) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in (*events, ""):
            data = event.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()


def _error(message: str) -> Json:
    return {"error": {"message": message, "type": "script", "param": None, "code": None}}


def _tokens(body: Json, turn: Turn) -> tuple[int, int]:
    """(of the prompt, of the answer): as plausible as a count of characters can be, and the same each time."""
    said = turn.text + "".join(json.dumps(dict(call.arguments)) for call in turn.calls)
    return max(1, len(json.dumps(body)) // _CHARS_A_TOKEN), max(1, len(said) // _CHARS_A_TOKEN)


# ---------------------------------------------------------------------------------------------------- chat completions


def _chat_calls(turn: Turn, number: int) -> list[Json]:
    return [
        {
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
        }
        for place, call in enumerate(turn.calls)
    ]


def _chat_usage(body: Json, turn: Turn) -> Json:
    asked, said = _tokens(body, turn)
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def _chat(body: Json, turn: Turn, number: int) -> Json:
    message: Json = {"role": "assistant", "content": turn.text}
    if turn.calls:
        message["tool_calls"] = _chat_calls(turn, number)
    reason = "tool_calls" if turn.calls else "stop"
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": _CREATED,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": _chat_usage(body, turn),
    }


def _chat_events(body: Json, turn: Turn, number: int) -> Iterator[str]:
    def chunk(delta: Json, reason: str | None = None, **more: Any) -> str:
        choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
        told = {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion.chunk",
            "created": _CREATED,
            "model": body["model"],
            "choices": choices,
            **more,
        }
        return f"data: {json.dumps(told)}\n\n"

    yield chunk({"role": "assistant", "content": ""})
    for word in turn.text.splitlines(keepends=True):
        yield chunk({"content": word})
    for place, call in enumerate(_chat_calls(turn, number)):
        yield chunk({"tool_calls": [{"index": place, **call}]})
    yield chunk({}, "tool_calls" if turn.calls else "stop")
    if (body.get("stream_options") or {}).get("include_usage"):
        yield chunk({}, choices=[], usage=_chat_usage(body, turn))
    yield "data: [DONE]\n\n"


# ---------------------------------------------------------------------------------------------------- responses


def _items(turn: Turn, number: int) -> list[Json]:
    items: list[Json] = []
    if turn.text:
        content: list[Json] = [{"type": "output_text", "text": turn.text, "annotations": []}]
        items.append(
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        )
    for place, call in enumerate(turn.calls):
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{number}_{place}",
                "call_id": f"call_{number}_{place}",
                "name": call.name,
                "arguments": json.dumps(dict(call.arguments)),
                "status": "completed",
            }
        )
    return items


def _response(body: Json, turn: Turn, number: int) -> Json:
    asked, said = _tokens(body, turn)
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": _CREATED,
        "status": "completed",
        "model": body["model"],
        "output": _items(turn, number),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
        "usage": {
            "input_tokens": asked,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": said,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": asked + said,
        },
    }


def _response_events(body: Json, turn: Turn, number: int) -> Iterator[str]:
    order = iter(range(1_000_000))

    def event(kind: str, **more: Any) -> str:
        told = {"type": kind, "sequence_number": next(order), **more}
        return f"event: {kind}\ndata: {json.dumps(told)}\n\n"

    whole = _response(body, turn, number)
    yield event("response.created", response={**whole, "status": "in_progress", "output": [], "usage": None})
    for place, item in enumerate(whole["output"]):
        at = {"output_index": place}
        yield event("response.output_item.added", item={**item, "status": "in_progress"}, **at)
        if item["type"] == "message":
            told = {"item_id": item["id"], "content_index": 0, **at}
            yield event("response.output_text.delta", delta=turn.text, **told)
            yield event("response.output_text.done", text=turn.text, **told)
        else:
            yield event(
                "response.function_call_arguments.done", item_id=item["id"], arguments=item["arguments"], **at
            )
        yield event("response.output_item.done", item=item, **at)
    yield event("response.completed", response=whole)


_FORMS = {"/chat/completions": (_chat, _chat_events), "/responses": (_response, _response_events)}
