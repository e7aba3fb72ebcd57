"""OpenAI's chat completions, as its own service and most local servers speak them."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import openai
from openai import AsyncOpenAI

from skill2env.llm.dialogue import (
    Completion,
    Finish,
    Role,
    TokenUsage,
    ToolCall,
    ToolSpec,
    Turn,
    estimate_tokens,
    estimate_turn,
)
from skill2env.llm.endpoint import Endpoint, client_options
from skill2env.llm.failures import Began, ProviderError, ProviderFault, provider_failures
from skill2env.llm.settings import ModelSettings


class OpenAIChat(Endpoint):
    """A `ChatModel` over chat completions."""

    def __init__(self, settings: ModelSettings, key: str) -> None:
        self._client = AsyncOpenAI(**client_options(settings, key, openai.Timeout))
        super().__init__(settings, self._client)

    async def complete(self, turns: Sequence[Turn], tools: Sequence[ToolSpec] = ()) -> Completion:
        """See `ChatModel.complete`."""
        request = self._request(turns, tools)
        began = self._begin(turns, tools)
        if self._settings.stream:
            request |= {"stream": True, "stream_options": {"include_usage": True}}
        create: Any = self._client.chat.completions.create
        with provider_failures(began=began):
            answer = await create(**request)
            reply = await _collect(answer, began) if self._settings.stream else _whole(answer)
        return reply.completion(turns)

    def _request(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> dict[str, Any]:
        settings = self._settings
        # The public service has replaced max_tokens, which is all that many other servers know.
        limit = "max_tokens" if settings.base_url else "max_completion_tokens"
        request: dict[str, Any] = {
            "model": settings.name,
            "messages": [_message(turn) for turn in turns],
            limit: settings.max_output_tokens,
        }
        if tools:
            request["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                    },
                }
                for tool in tools
            ]
        if settings.temperature is not None:
            request["temperature"] = settings.temperature
        if settings.reasoning_effort:
            request["reasoning_effort"] = settings.reasoning_effort
        return request


def _message(turn: Turn) -> dict[str, Any]:
    if turn.role is Role.TOOL:
        return {"role": "tool", "tool_call_id": turn.answers, "content": turn.text}
    message: dict[str, Any] = {"role": turn.role.value, "content": turn.text}
    if turn.calls:
        message["content"] = turn.text or None
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in turn.calls
        ]
    return message


class Reply:
    """A reply under construction; also used for the other OpenAI format."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.calls: dict[int, list[str]] = {}
        """Index -> [id, name, arguments]."""
        self.finish = ""
        self.refused = False
        self.usage: TokenUsage | None = None

    def add_call(self, index: int, *, key: str = "", name: str = "", arguments: str = "") -> None:
        """Add a piece of a call; its id (`key`) and name come once, arguments in pieces."""
        call = self.calls.setdefault(index, ["", "", ""])
        call[0] = call[0] or key
        call[1] = call[1] or name
        call[2] += arguments

    def completion(self, turns: Sequence[Turn]) -> Completion:
        """The finished reply.

        Raises:
            ProviderError: ``bad_reply`` when the endpoint said nothing at all, not even why it stopped.
        """
        text = "".join(self.text)
        calls = tuple(
            ToolCall(key or f"call_{index}", name, arguments)
            for index, (key, name, arguments) in sorted(self.calls.items())
        )
        if not (text or calls or self.finish):
            raise ProviderError(ProviderFault.BAD_REPLY, "the reply is empty")
        usage = self.usage
        if usage is None:
            written = estimate_turn(Turn(Role.ASSISTANT, text, calls))
            usage = TokenUsage(
                sum(map(estimate_turn, turns)), written if text or calls else estimate_tokens(text)
            )
        return Completion(text, calls, self._reason(), usage, estimated=self.usage is None)

    def _reason(self) -> Finish:
        if self.refused or self.finish in {"content_filter", "refusal"}:
            return Finish.REFUSAL
        if self.finish in {"length", "max_tokens", "max_output_tokens"}:
            return Finish.LENGTH
        return Finish.TOOLS if self.calls else Finish.STOP


async def _collect(stream: AsyncIterator[Any], began: Began) -> Reply:
    reply = Reply()
    async for chunk in stream:
        began.value = True
        if chunk.usage is not None:
            reply.usage = _usage(chunk.usage)
        for choice in chunk.choices or ():
            delta = choice.delta
            began.chars += len(delta.content or "") + len(getattr(delta, "reasoning_content", None) or "")
            reply.text.append(delta.content or "")
            if getattr(delta, "refusal", None):
                reply.refused = True
                reply.text.append(delta.refusal)
            for position, piece in enumerate(delta.tool_calls or ()):
                function = piece.function
                began.chars += len((function.arguments if function else "") or "")
                reply.add_call(
                    piece.index if piece.index is not None else position,
                    key=piece.id or "",
                    name=(function.name if function else "") or "",
                    arguments=(function.arguments if function else "") or "",
                )
            reply.finish = choice.finish_reason or reply.finish
    if not reply.finish:
        # A server that was killed closes the connection as if all were said; what came may end anywhere.
        begun = bool(reply.calls or any(reply.text))
        fault = ProviderFault.CUT if begun else ProviderFault.BAD_REPLY
        raise ProviderError(fault, "the stream ended before the reply did")
    return reply


def _whole(answer: Any) -> Reply:
    reply = Reply()
    if not getattr(answer, "choices", None):
        raise ProviderError(ProviderFault.BAD_REPLY, "the reply has no choices")
    choice = answer.choices[0]
    message = choice.message
    reply.text.append(message.content or "")
    if getattr(message, "refusal", None):
        reply.refused = True
        reply.text.append(message.refusal)
    for index, call in enumerate(message.tool_calls or ()):
        reply.add_call(
            index, key=call.id or "", name=call.function.name, arguments=call.function.arguments or ""
        )
    reply.finish = choice.finish_reason or ""
    reply.usage = None if answer.usage is None else _usage(answer.usage)
    return reply


def _usage(usage: Any) -> TokenUsage:
    details = getattr(usage, "prompt_tokens_details", None)
    return TokenUsage(
        usage.prompt_tokens or 0, usage.completion_tokens or 0, getattr(details, "cached_tokens", 0) or 0
    )
