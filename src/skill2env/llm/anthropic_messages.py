"""Anthropic's messages."""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

import anthropic
from anthropic import AsyncAnthropic

from skill2env.llm.dialogue import Completion, Finish, Role, TokenUsage, ToolCall, ToolSpec, Turn
from skill2env.llm.endpoint import Endpoint, client_options
from skill2env.llm.failures import Began, ProviderError, ProviderFault, provider_failures
from skill2env.llm.settings import ModelSettings

_FINISH = {
    "tool_use": Finish.TOOLS,
    "max_tokens": Finish.LENGTH,
    "refusal": Finish.REFUSAL,
}

_CACHED = {"cache_control": {"type": "ephemeral"}}
_DELTAS = {"text_delta": "text", "input_json_delta": "partial_json", "thinking_delta": "thinking"}


class AnthropicMessages(Endpoint):
    """A `ChatModel` over messages. Rules and dialogue so far are marked for the endpoint's cache."""

    def __init__(self, settings: ModelSettings, key: str) -> None:
        self._client = AsyncAnthropic(**client_options(settings, key, anthropic.Timeout))
        super().__init__(settings, self._client)

    async def complete(self, turns: Sequence[Turn], tools: Sequence[ToolSpec] = ()) -> Completion:
        """See `ChatModel.complete`."""
        request = self._request(turns, tools)
        began = self._begin(turns, tools)
        create: Any = self._client.messages.create
        with provider_failures(began=began):
            answer = await create(stream=self._settings.stream, **request)
            return await _collect(answer, began) if self._settings.stream else _whole(answer)

    def _request(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> dict[str, Any]:
        settings = self._settings
        system = "\n\n".join(turn.text for turn in turns if turn.role is Role.SYSTEM)
        request: dict[str, Any] = {
            "model": settings.name,
            "max_tokens": settings.max_output_tokens,
            "messages": list(_messages(turn for turn in turns if turn.role is not Role.SYSTEM)),
        }
        if request["messages"]:
            request["messages"][-1]["content"][-1] |= _CACHED
        if system:
            request["system"] = [{"type": "text", "text": system} | _CACHED]
        if tools:
            request["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
                for tool in tools
            ]
        if settings.temperature is not None:
            request["temperature"] = settings.temperature
        if settings.reasoning_effort:
            request["output_config"] = {"effort": settings.reasoning_effort}
        return request


def _messages(turns: Iterable[Turn]) -> Iterable[dict[str, Any]]:
    """Turns as messages; results of tools that follow each other belong into one message of the user."""
    results: list[dict[str, Any]] = []
    for turn in turns:
        if turn.role is Role.TOOL:
            results.append(
                {"type": "tool_result", "tool_use_id": turn.answers, "content": turn.text or "(empty)"}
            )
            continue
        said = [{"type": "text", "text": turn.text}] if turn.text.strip() else []
        if turn.role is Role.USER:
            yield {"role": "user", "content": [*results, *said]}
            results = []
            continue
        if results:
            yield {"role": "user", "content": results}
            results = []
        calls = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": _arguments(call.arguments)}
            for call in turn.calls
        ]
        yield {"role": "assistant", "content": [*said, *calls] or [{"type": "text", "text": "(nothing)"}]}
    if results:
        yield {"role": "user", "content": results}


def _arguments(text: str) -> dict[str, Any]:
    """The arguments as an object; what was no object is sent back to the model as text, so that it sees its slip."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {"unparsed": text}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"unparsed": text}


async def _collect(stream: AsyncIterator[Any], began: Began) -> Completion:
    texts: list[str] = []
    calls: dict[int, list[str]] = {}
    usage, finish, closed = TokenUsage(), "", False
    async for event in stream:
        began.value = True
        if event.type == "message_start":
            usage = began.usage = _usage(event.message.usage)
        elif event.type == "content_block_start" and event.content_block.type == "tool_use":
            calls[event.index] = [event.content_block.id, event.content_block.name, ""]
        elif event.type == "content_block_delta":
            began.chars += len(getattr(event.delta, _DELTAS.get(event.delta.type, ""), ""))
            if event.delta.type == "text_delta":
                texts.append(event.delta.text)
            elif event.delta.type == "input_json_delta":
                calls[event.index][2] += event.delta.partial_json
        elif event.type == "message_delta":
            finish = event.delta.stop_reason or finish
            usage = replace(usage, output=event.usage.output_tokens or usage.output)
        elif event.type == "message_stop":
            closed = True
    if not finish:
        fault = ProviderFault.BAD_REPLY if closed or not began.value else ProviderFault.CUT
        raise ProviderError(fault, "the stream ended before the reply did")
    found = tuple(ToolCall(key, name, text or "{}") for _, (key, name, text) in sorted(calls.items()))
    return _checked("".join(texts), found, finish, usage)


def _whole(message: Any) -> Completion:
    if getattr(message, "content", None) is None:
        raise ProviderError(ProviderFault.BAD_REPLY, "the reply has no content")
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = tuple(
        ToolCall(block.id, block.name, json.dumps(block.input))
        for block in message.content
        if block.type == "tool_use"
    )
    return _checked(text, calls, message.stop_reason or "", _usage(message.usage))


def _checked(text: str, calls: tuple[ToolCall, ...], finish: str, usage: TokenUsage) -> Completion:
    if finish == "model_context_window_exceeded":
        raise ProviderError(ProviderFault.CONTEXT, "the reply would have left the context window")
    reason = _FINISH.get(finish, Finish.TOOLS if calls else Finish.STOP)
    if not (text or calls or finish):
        raise ProviderError(ProviderFault.BAD_REPLY, "the reply is empty")
    return Completion(text, calls, reason, usage)


def _usage(usage: Any) -> TokenUsage:
    read = usage.cache_read_input_tokens or 0
    written = usage.cache_creation_input_tokens or 0
    given = (usage.input_tokens or 0) + read + written
    return TokenUsage(given, usage.output_tokens or 0, read, written)
