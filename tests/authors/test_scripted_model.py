"""The scripted model server, asked by the client that agents use."""

import http.client
import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from skill2env.authors.scripted_model import Call, ScriptedModel, Turn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from openai import APIStatusError, OpenAI

TURNS = (Turn("Looking.\nAgain.", (Call("bash", {"command": "ls"}), Call("read"))), Turn("Done."))
TOOLS = [
    {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}
]


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(TURNS) as served:
        yield served


@pytest.fixture
def client(model: ScriptedModel) -> Iterator[OpenAI]:
    with OpenAI(base_url=model.url, api_key="sk-x", max_retries=0) as made:
        yield made


def ask(client: OpenAI, **more: Any) -> Any:
    return client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "hello"}], tools=TOOLS, **more
    )


def test_chat_completions(model: ScriptedModel, client: OpenAI) -> None:
    first, second = ask(client), ask(client)
    choice = first.choices[0]
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "Looking.\nAgain.")
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls]
    assert calls == [("bash", {"command": "ls"}), ("read", {})]
    assert (second.choices[0].finish_reason, second.choices[0].message.content) == ("stop", "Done.")
    assert first.usage.total_tokens == first.usage.prompt_tokens + first.usage.completion_tokens > 2
    assert [(asked.path, asked.key, asked.body["model"]) for asked in model.asked] == [
        ("/v1/chat/completions", "sk-x", "m")
    ] * 2
    assert model.left == 0


def test_streamed_chat_completions_say_the_same(client: OpenAI) -> None:
    text, calls, reasons, usage = "", {}, [], None
    for chunk in ask(client, stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reasons += [choice.finish_reason] if choice.finish_reason else []
            for call in choice.delta.tool_calls or []:
                calls[call.index] = (call.function.name, json.loads(call.function.arguments))
    assert (text, reasons) == ("Looking.\nAgain.", ["tool_calls"])
    assert calls == {0: ("bash", {"command": "ls"}), 1: ("read", {})}
    assert usage.completion_tokens > 1


def test_responses_whole_and_streamed(client: OpenAI) -> None:
    whole = client.responses.create(model="m", input="hello")
    assert whole.output_text == "Looking.\nAgain."
    assert [(item.name, item.arguments) for item in whole.output if item.type == "function_call"] == [
        ("bash", '{"command": "ls"}'),
        ("read", "{}"),
    ]
    with client.responses.stream(model="m", input="hello") as stream:
        kinds = [event.type for event in stream]
        assert stream.get_final_response().output_text == "Done."
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert "response.output_text.delta" in kinds


def test_errors_and_the_end_of_the_script() -> None:
    with (
        ScriptedModel([Turn("slow down", status=429)]) as model,
        OpenAI(base_url=model.url, api_key="x", max_retries=0) as client,
    ):
        for status, told in ((429, "slow down"), (400, "the script has no turn 2")):
            with pytest.raises(APIStatusError, match=told) as caught:
                ask(client)
            assert caught.value.status_code == status
        assert [listed.id for listed in client.models.list()] == ["scripted"]


def test_what_it_does_not_serve(model: ScriptedModel) -> None:
    def status(method: str, path: str, body: str = "{}", **headers: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", model.port)
        try:
            connection.request(method, path, body=body, headers=headers)
            return connection.getresponse().status
        finally:
            connection.close()

    assert status("POST", "/v1/embeddings") == 404
    assert status("GET", "/v1/files") == 404
    assert status("POST", "/v1/responses", "[1]") == 400
    assert status("POST", "/v1/chat/completions", "no json") == 400
    assert status("GET", "/v1/responses", Upgrade="websocket") == 426
    assert model.asked == []
