"""The three wire formats from the server's side, for `scripted_server`."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from skill2env.llm.dialogue import estimate_tokens
from skill2env.llm.script import ScriptedCall, ScriptedReply

PIECE_CHARS = 24
"""Characters of one streamed piece."""


class WireFormat(Protocol):
    """How requests are read and replies written."""

    @property
    def path(self) -> str:
        """End of the address."""
        ...

    def position(self, body: dict[str, Any]) -> tuple[str, int]:
        """(what was said before the model's first turn, number of the model's turns); raises on strange bodies."""
        ...

    def whole(self, reply: ScriptedReply, model: str, size: int, finish: str) -> dict[str, Any]:
        """The reply as one document. `finish` is empty, ``length``, ``refusal`` or ``empty``."""
        ...

    def pieces(self, reply: ScriptedReply, model: str, size: int, finish: str) -> Iterator[str]:
        """The reply as server-sent events."""
        ...


def text_of(content: Any) -> str:
    """Plain text of a message's content, whichever way it is written."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content)


def arguments_of(call: ScriptedCall) -> str:
    """Arguments as the JSON text that goes over the wire."""
    return (
        call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
    )


def _counts(reply: ScriptedReply, size: int) -> tuple[int, int]:
    written = reply.text + "".join(call.name + arguments_of(call) for call in reply.calls)
    given = size // 4 if reply.input_tokens is None else reply.input_tokens
    return given, estimate_tokens(written) if reply.output_tokens is None else reply.output_tokens


def _cut(text: str) -> Iterator[str]:
    for at in range(0, len(text), PIECE_CHARS):
        yield text[at : at + PIECE_CHARS]


def _position(messages: list[dict[str, Any]], before: str = "") -> tuple[str, int]:
    said = [index for index, message in enumerate(messages) if message.get("role") == "assistant"]
    head = messages[: said[0]] if said else messages
    return "\n".join([before, *(text_of(message.get("content")) for message in head)]), len(said)


def _event(document: dict[str, Any], name: str = "") -> str:
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(document)}\n\n"


@dataclass(frozen=True, slots=True)
class _Chat:
    path: str = "/chat/completions"

    def position(self, body: dict[str, Any]) -> tuple[str, int]:
        return _position(body["messages"])

    def whole(self, reply: ScriptedReply, model: str, size: int, finish: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if reply.calls:
            message["tool_calls"] = self._calls(reply)
        choices = [{"index": 0, "message": message, "finish_reason": self._finish(reply, finish)}]
        return {
            **self._head("chat.completion", model),
            "choices": [] if finish == "empty" else choices,
            "usage": self._usage(reply, size),
        }

    def pieces(self, reply: ScriptedReply, model: str, size: int, finish: str) -> Iterator[str]:
        head = self._head("chat.completion.chunk", model)

        def chunk(delta: dict[str, Any], reason: str | None = None) -> str:
            return _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

        if finish != "empty":
            yield chunk({"role": "assistant", "content": ""})
            for piece in _cut(reply.text):
                yield chunk({"content": piece})
            for call in self._calls(reply):
                function = call["function"]
                yield chunk(
                    {"tool_calls": [{**call, "function": {"name": function["name"], "arguments": ""}}]}
                )
                for piece in _cut(function["arguments"]):
                    yield chunk({"tool_calls": [{"index": call["index"], "function": {"arguments": piece}}]})
            yield chunk({}, self._finish(reply, finish))
        yield _event({**head, "choices": [], "usage": self._usage(reply, size)})
        yield "data: [DONE]\n\n"

    @staticmethod
    def _head(kind: str, model: str) -> dict[str, Any]:
        return {"id": "chatcmpl-scripted", "object": kind, "created": 0, "model": model}

    @staticmethod
    def _calls(reply: ScriptedReply) -> list[dict[str, Any]]:
        return [
            {
                "index": index,
                "id": f"call_{index}",
                "type": "function",
                "function": {"name": call.name, "arguments": arguments_of(call)},
            }
            for index, call in enumerate(reply.calls)
        ]

    @staticmethod
    def _finish(reply: ScriptedReply, finish: str) -> str:
        kinds = {"length": "length", "refusal": "content_filter"}
        return kinds.get(finish) or ("tool_calls" if reply.calls else "stop")

    @staticmethod
    def _usage(reply: ScriptedReply, size: int) -> dict[str, Any]:
        given, written = _counts(reply, size)
        return {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written}


@dataclass(frozen=True, slots=True)
class _Responses:
    path: str = "/responses"

    def position(self, body: dict[str, Any]) -> tuple[str, int]:
        given = body["input"]
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        # A turn of the model is a run of its texts and calls; results of tools end it.
        messages: list[dict[str, Any]] = []
        for item in items:
            mine = item.get("type") == "function_call" or item.get("role") == "assistant"
            if mine and messages and messages[-1]["role"] == "assistant":
                continue
            messages.append(
                {"role": "assistant"} if mine else {"role": "user", "content": item.get("content")}
            )
        return _position(messages, str(body.get("instructions") or ""))

    def whole(self, reply: ScriptedReply, model: str, size: int, finish: str) -> dict[str, Any]:
        given, written = _counts(reply, size)
        incomplete = {"reason": "max_output_tokens"} if finish == "length" else None
        return {
            "id": "resp_scripted",
            "object": "response",
            "created_at": 0,
            "model": model,
            "status": "incomplete" if incomplete else "completed",
            "incomplete_details": incomplete,
            "error": None,
            "instructions": None,
            "metadata": {},
            "output": [] if finish == "empty" else self._output(reply, finish),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "temperature": 1.0,
            "top_p": 1.0,
            "usage": {
                "input_tokens": given,
                "output_tokens": written,
                "total_tokens": given + written,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }

    def pieces(self, reply: ScriptedReply, model: str, size: int, finish: str) -> Iterator[str]:
        final = self.whole(reply, model, size, finish)
        number = 0

        def event(kind: str, **content: Any) -> str:
            nonlocal number
            number += 1
            return _event({"type": kind, "sequence_number": number, **content}, kind)

        yield event(
            "response.created", response={**final, "status": "in_progress", "output": [], "usage": None}
        )
        for index, item in enumerate(final["output"]):
            yield event("response.output_item.added", output_index=index, item=item)
            if item["type"] == "message":
                for piece in _cut(reply.text):
                    yield event(
                        "response.output_text.delta",
                        item_id=item["id"],
                        output_index=index,
                        content_index=0,
                        delta=piece,
                        logprobs=[],
                    )
            else:
                for piece in _cut(item["arguments"]):
                    yield event(
                        "response.function_call_arguments.delta",
                        item_id=item["id"],
                        output_index=index,
                        delta=piece,
                    )
            yield event("response.output_item.done", output_index=index, item=item)
        kind = "response.incomplete" if final["status"] == "incomplete" else "response.completed"
        yield event(kind, response=final)

    @staticmethod
    def _output(reply: ScriptedReply, finish: str) -> list[dict[str, Any]]:
        part: dict[str, Any] = (
            {"type": "refusal", "refusal": reply.text}
            if finish == "refusal"
            else {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        )
        message: dict[str, Any] = {
            "id": "msg_scripted",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
        calls = [
            {
                "id": f"fc_{index}",
                "type": "function_call",
                "call_id": f"call_{index}",
                "name": call.name,
                "arguments": arguments_of(call),
                "status": "completed",
            }
            for index, call in enumerate(reply.calls)
        ]
        return [*([message] if reply.text else []), *calls]


@dataclass(frozen=True, slots=True)
class _Messages:
    path: str = "/messages"

    def position(self, body: dict[str, Any]) -> tuple[str, int]:
        return _position(body["messages"], text_of(body.get("system")))

    def whole(self, reply: ScriptedReply, model: str, size: int, finish: str) -> dict[str, Any]:
        given, written = _counts(reply, size)
        return {
            "id": "msg_scripted",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [] if finish == "empty" else self._blocks(reply),
            "stop_reason": None if finish == "empty" else self._finish(reply, finish),
            "stop_sequence": None,
            "usage": {"input_tokens": given, "output_tokens": written},
        }

    def pieces(self, reply: ScriptedReply, model: str, size: int, finish: str) -> Iterator[str]:
        final = self.whole(reply, model, size, finish)
        start: dict[str, Any] = {**final, "content": [], "stop_reason": None}
        yield _event({"type": "message_start", "message": start}, "message_start")
        for index, block in enumerate(final["content"]):
            text = block["type"] == "text"
            shell: dict[str, Any] = {**block, "text": ""} if text else {**block, "input": {}}
            yield _event(
                {"type": "content_block_start", "index": index, "content_block": shell}, "content_block_start"
            )
            source = block["text"] if text else arguments_of(reply.calls[index - (1 if reply.text else 0)])
            for piece in _cut(source):
                delta = (
                    {"type": "text_delta", "text": piece}
                    if text
                    else {"type": "input_json_delta", "partial_json": piece}
                )
                yield _event(
                    {"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta"
                )
            yield _event({"type": "content_block_stop", "index": index}, "content_block_stop")
        ending = {"stop_reason": final["stop_reason"], "stop_sequence": None}
        yield _event(
            {
                "type": "message_delta",
                "delta": ending,
                "usage": {"output_tokens": final["usage"]["output_tokens"]},
            },
            "message_delta",
        )
        yield _event({"type": "message_stop"}, "message_stop")

    @staticmethod
    def _blocks(reply: ScriptedReply) -> list[dict[str, Any]]:
        said = [{"type": "text", "text": reply.text}] if reply.text else []
        return [
            *said,
            *(
                {
                    "type": "tool_use",
                    "id": f"toolu_{index}",
                    "name": call.name,
                    "input": call.arguments
                    if isinstance(call.arguments, dict)
                    else {"unparsed": call.arguments},
                }
                for index, call in enumerate(reply.calls)
            ),
        ]

    @staticmethod
    def _finish(reply: ScriptedReply, finish: str) -> str:
        kinds = {"length": "max_tokens", "refusal": "refusal"}
        return kinds.get(finish) or ("tool_use" if reply.calls else "end_turn")


FORMATS: tuple[WireFormat, ...] = (_Chat(), _Responses(), _Messages())
"""Every format, each with its own end of the address."""
