"""OpenAI's responses: the dialogue is sent whole each time, nothing is kept on the endpoint's side."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import openai
from openai import AsyncOpenAI

from skill2env.llm.dialogue import Completion, Role, TokenUsage, ToolSpec, Turn
from skill2env.llm.endpoint import Endpoint, client_options
from skill2env.llm.failures import Began, ProviderError, ProviderFault, provider_failures
from skill2env.llm.openai_chat import Reply
from skill2env.llm.settings import ModelSettings


class OpenAIResponses(Endpoint):
    """A `ChatModel` over responses."""

    def __init__(self, settings: ModelSettings, key: str) -> None:
        self._client = AsyncOpenAI(**client_options(settings, key, openai.Timeout))
        super().__init__(settings, self._client)

    async def complete(self, turns: Sequence[Turn], tools: Sequence[ToolSpec] = ()) -> Completion:
        """See `ChatModel.complete`."""
        request = self._request(turns, tools)
        began = self._begin(turns, tools)
        create: Any = self._client.responses.create
        with provider_failures(began=began):
            answer = await create(stream=self._settings.stream, **request)
            response = await _last_state(answer, began) if self._settings.stream else answer
            return _read(response).completion(turns)

    def _request(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> dict[str, Any]:
        settings = self._settings
        request: dict[str, Any] = {
            "model": settings.name,
            "input": [item for turn in turns for item in _items(turn)],
            "max_output_tokens": settings.max_output_tokens,
            "store": False,
        }
        if tools:
            request["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in tools
            ]
        if settings.temperature is not None:
            request["temperature"] = settings.temperature
        if settings.reasoning_effort:
            request["reasoning"] = {"effort": settings.reasoning_effort}
        return request


def _items(turn: Turn) -> list[dict[str, Any]]:
    if turn.role is Role.TOOL:
        return [{"type": "function_call_output", "call_id": turn.answers, "output": turn.text}]
    said = [{"role": turn.role.value, "content": turn.text}] if turn.text or not turn.calls else []
    return [
        *said,
        *(
            {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
            for call in turn.calls
        ),
    ]


async def _last_state(stream: AsyncIterator[Any], began: Began) -> Any:
    """The response as the closing event states it; the pieces before it say the same and only prove life."""
    async for event in stream:
        began.value = True
        delta = getattr(event, "delta", None)
        began.chars += len(delta) if isinstance(delta, str) else 0
        if event.type in {"response.completed", "response.incomplete", "response.failed"}:
            return event.response
        if event.type == "error":
            raise ProviderError(ProviderFault.SERVER, f"{event.code}: {event.message}")
    fault = ProviderFault.CUT if began.value else ProviderFault.BAD_REPLY
    raise ProviderError(fault, "the stream ended before the reply did")


_FAILED = {
    "rate_limit_exceeded": ProviderFault.RATE_LIMIT,
    "context_length_exceeded": ProviderFault.CONTEXT,
    "invalid_prompt": ProviderFault.REFUSED,
}


def _read(response: Any) -> Reply:
    if response.status == "failed":
        error = response.error
        code = getattr(error, "code", "") or ""
        told = f"{code}: {getattr(error, 'message', '')}"
        raise ProviderError(_FAILED.get(code, ProviderFault.SERVER), told)
    if response.status == "completed" and not response.output:
        raise ProviderError(ProviderFault.BAD_REPLY, "the reply has no output")
    reply = Reply()
    for index, item in enumerate(response.output):
        if item.type == "function_call":
            reply.add_call(index, key=item.call_id, name=item.name, arguments=item.arguments or "")
        elif item.type == "message":
            for part in item.content:
                reply.refused |= part.type == "refusal"
                reply.text.append(part.refusal if part.type == "refusal" else part.text)
    details = response.incomplete_details
    reply.finish = (
        (getattr(details, "reason", "") or "incomplete") if response.status == "incomplete" else "stop"
    )
    if response.usage is not None:
        cached = getattr(response.usage.input_tokens_details, "cached_tokens", 0) or 0
        reply.usage = TokenUsage(response.usage.input_tokens, response.usage.output_tokens, cached)
    return reply
