"""Three clients against the scripted server: the same dialogue, the same faults, streaming and not."""

import asyncio
import json
from collections.abc import Awaitable
from itertools import product

import httpx
import openai
import pytest

from skill2env.llm.dialogue import Completion, Finish, Role, ToolCall, ToolSpec, Turn
from skill2env.llm.failures import ProviderError, ProviderFault, classify
from skill2env.llm.retrying import RetryingModel
from skill2env.llm.script import Fault, Scenario, Script, ScriptedCall, ScriptedFault, ScriptedReply
from skill2env.llm.scripted_server import ScriptedServer, scripted_server
from skill2env.llm.settings import ApiFormat, ModelSettings, make_model

BASH = ToolSpec("bash", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
ASKED = (Turn(Role.SYSTEM, "Be brief."), Turn(Role.USER, "List the files of the shelf."))
COMMAND = {"command": "printf 'a\\tb\\n' > \"ünïcode\"; ls"}
CALLING = ScriptedReply(text="Looking.", calls=(ScriptedCall(name="bash", arguments=COMMAND),))
SAYING = ScriptedReply(text="There are two files: a and b. " * 5, input_tokens=100, output_tokens=7)
FORMATS = list(product(ApiFormat, (True, False)))
each_format = pytest.mark.parametrize(
    ("api", "stream"), FORMATS, ids=[f"{api.value}{'-stream' if stream else ''}" for api, stream in FORMATS]
)


def settings_for(server: ScriptedServer, api: ApiFormat, stream: bool, **others: object) -> ModelSettings:
    base = server.address if api is ApiFormat.ANTHROPIC else server.base_url
    return ModelSettings.model_validate(
        {"name": "scripted", "api": api, "base_url": base, "stream": stream, "stall_sec": 20.0, **others}
    )


def ask(settings: ModelSettings, *turns: Turn, attempts: int = 1) -> Completion:
    async def run() -> Completion:
        model = RetryingModel(make_model(settings), attempts=attempts, sleep=no_sleep)
        try:
            return await model.complete(turns or ASKED, [BASH])
        finally:
            await model.close()

    return asyncio.run(run())


async def no_sleep(_: float) -> None:
    return None


def script(*replies: ScriptedReply, faults: tuple[ScriptedFault, ...] = ()) -> Script:
    return Script(scenarios=(Scenario(when=("List the files",), replies=replies, faults=faults),))


@each_format
def test_a_dialogue_with_a_tool(api: ApiFormat, stream: bool) -> None:
    with scripted_server(script(CALLING, SAYING)) as server:
        settings = settings_for(server, api, stream)
        first = ask(settings)
        assert first.finish is Finish.TOOLS
        assert first.text == "Looking."
        (call,) = first.calls
        assert (call.name, json.loads(call.arguments)) == ("bash", COMMAND)
        second = ask(settings, *ASKED, first.turn, Turn(Role.TOOL, "a b", answers=call.id))
        assert second.text == SAYING.text
        assert second.finish is Finish.STOP
        assert (second.usage.input, second.usage.output, second.estimated) == (100, 7, False)
        assert all(seen.body["model"] == "scripted" for seen in server.requests)
        sent = json.dumps(server.requests[1].body)
        assert "Be brief." in sent
        assert "a b" in sent


EXPECTED = {
    Fault.RATE_LIMIT: ProviderFault.RATE_LIMIT,
    Fault.QUOTA: ProviderFault.USAGE_LIMIT,
    Fault.SERVER: ProviderFault.SERVER,
    Fault.OVERLOADED: ProviderFault.OVERLOADED,
    Fault.UNAUTHORISED: ProviderFault.AUTHENTICATION,
    Fault.NO_MODEL: ProviderFault.NO_MODEL,
    Fault.CONTEXT: ProviderFault.CONTEXT,
    Fault.BLOCKED: ProviderFault.REFUSED,
    Fault.CUT: ProviderFault.CUT,
    Fault.BROKEN_JSON: ProviderFault.BAD_REPLY,
    Fault.WEB_PAGE: ProviderFault.BAD_REPLY,
    Fault.EMPTY: ProviderFault.BAD_REPLY,
}


@each_format
@pytest.mark.parametrize("fault", EXPECTED, ids=lambda fault: fault.value)
def test_each_fault_has_its_kind(api: ApiFormat, stream: bool, fault: Fault) -> None:
    with (
        scripted_server(script(SAYING, faults=(ScriptedFault(kind=fault),))) as server,
        pytest.raises(ProviderError) as caught,
    ):
        ask(settings_for(server, api, stream))
    assert caught.value.fault is EXPECTED[fault]
    if fault is Fault.RATE_LIMIT:
        assert caught.value.retry_after == 0.2


@each_format
@pytest.mark.parametrize(
    "fault",
    [
        fault
        for fault, kind in EXPECTED.items()
        if kind.value not in {"usage_limit", "authentication", "no_model", "context", "refused"}
    ],
    ids=lambda fault: fault.value,
)
def test_a_transient_fault_is_survived(api: ApiFormat, stream: bool, fault: Fault) -> None:
    with scripted_server(script(SAYING, faults=(ScriptedFault(kind=fault, times=2),))) as server:
        assert ask(settings_for(server, api, stream), attempts=3).text == SAYING.text
        assert len(server.requests) == 3


@each_format
def test_silence_ends(api: ApiFormat, stream: bool) -> None:
    with (
        scripted_server(script(SAYING, faults=(ScriptedFault(kind=Fault.HANG),))) as server,
        pytest.raises(ProviderError) as caught,
    ):
        ask(settings_for(server, api, stream, stall_sec=0.3))
    assert caught.value.fault is ProviderFault.STALLED


@each_format
@pytest.mark.parametrize(
    ("fault", "finish"),
    [(Fault.LENGTH, Finish.LENGTH), (Fault.REFUSAL, Finish.REFUSAL)],
    ids=["length", "refusal"],
)
def test_how_a_reply_ends(api: ApiFormat, stream: bool, fault: Fault, finish: Finish) -> None:
    with scripted_server(script(SAYING, faults=(ScriptedFault(kind=fault),))) as server:
        assert ask(settings_for(server, api, stream)).finish is finish


@each_format
def test_slow_pieces_are_no_silence(api: ApiFormat, stream: bool) -> None:
    short = ScriptedReply(text="Two.")
    with scripted_server(script(short, faults=(ScriptedFault(kind=Fault.SLOW),))) as server:
        assert ask(settings_for(server, api, stream, stall_sec=3.0)).text == "Two."


@each_format
def test_garbage_arguments_arrive_as_text(api: ApiFormat, stream: bool) -> None:
    with scripted_server(script(CALLING, SAYING, faults=(ScriptedFault(kind=Fault.GARBAGE_CALL),))) as server:
        settings = settings_for(server, api, stream)
        first = ask(settings)
        (call,) = first.calls
        assert '"command": "ls' in call.arguments or "unparsed" in call.arguments
        # The slip can be sent back without the client or the endpoint choking on it.
        answer = Turn(Role.TOOL, "the arguments are no JSON", answers=call.id)
        assert ask(settings, *ASKED, first.turn, answer).text == SAYING.text


def test_nothing_listens() -> None:
    settings = ModelSettings(name="m", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ProviderError) as caught:
        ask(settings)
    assert caught.value.fault is ProviderFault.NETWORK
    assert caught.value.transient
    assert "--api-base" in caught.value.hint


def test_the_last_failure_is_raised_and_requests_are_counted() -> None:
    told: list[tuple[str, int, float]] = []

    async def run(address: str) -> RetryingModel:
        model = RetryingModel(
            make_model(ModelSettings(name="m", base_url=address, stall_sec=20)),
            attempts=3,
            seed=5,
            sleep=no_sleep,
            told=lambda error, number, wait: told.append((error.fault.value, number, wait)),
        )
        with pytest.raises(ProviderError, match="HTTP 500"):
            await model.complete(ASKED)
        await model.close()
        return model

    with scripted_server(script(SAYING, faults=(ScriptedFault(kind=Fault.SERVER, times=9),))) as server:
        model = asyncio.run(run(server.base_url))
    assert (model.requests.sent, model.requests.failed, model.requests.open_sec(1e9)) == (3, 3, 0)
    assert [(fault, number) for fault, number, _ in told] == [("server", 1), ("server", 2)]
    assert 1 <= told[0][2] <= 1.25
    assert 2 <= told[1][2] <= 2.5


def test_no_usage_is_estimated() -> None:
    from skill2env.llm.openai_chat import Reply

    reply = Reply()
    reply.text.append("four word reply here")
    reply.finish = "stop"
    done = reply.completion(ASKED)
    assert done.estimated
    assert done.usage.input > 5
    assert done.usage.output > 4


def test_a_call_without_id_gets_one() -> None:
    from skill2env.llm.openai_chat import Reply

    reply = Reply()
    reply.add_call(0, name="bash", arguments='{"a":')
    reply.add_call(0, arguments="1}")
    assert reply.completion(ASKED).calls == (ToolCall("call_0", "bash", '{"a":1}'),)


@pytest.mark.parametrize("run", [0, 1])
def test_many_dialogues_at_once(run: int) -> None:
    del run

    async def together(address: str) -> list[Completion]:
        model = make_model(ModelSettings(name="m", base_url=address, stall_sec=20))
        asks: list[Awaitable[Completion]] = [model.complete(ASKED, [BASH]) for _ in range(8)]
        done = await asyncio.gather(*asks)
        await model.close()
        return done

    with scripted_server(script(SAYING)) as server:
        done = asyncio.run(together(server.base_url))
    assert {item.text for item in done} == {SAYING.text}


def test_a_dialogue_that_no_scenario_knows() -> None:
    with scripted_server(script(SAYING)) as server, pytest.raises(ProviderError) as caught:
        ask(settings_for(server, ApiFormat.OPENAI_CHAT, True), Turn(Role.USER, "Something else."))
    assert caught.value.fault is ProviderFault.BAD_REQUEST
    assert "no scenario" in caught.value.message


@each_format
def test_a_reply_that_broke_off_is_noted_as_lost(api: ApiFormat, stream: bool) -> None:
    async def run(settings: ModelSettings) -> RetryingModel:
        model = RetryingModel(make_model(settings), attempts=2, sleep=no_sleep)
        await model.complete(ASKED, [BASH])
        await model.close()
        return model

    with scripted_server(script(SAYING, faults=(ScriptedFault(kind=Fault.CUT),))) as server:
        model = asyncio.run(run(settings_for(server, api, stream)))
    (lost,) = model.lost
    assert 20 < lost.usage.input < 400
    assert lost.counted == (api is ApiFormat.ANTHROPIC and stream)
    assert (lost.usage.output > 0) == stream, "what had come is counted where it was seen"


@each_format
def test_nothing_is_lost_when_no_reply_had_begun(api: ApiFormat, stream: bool) -> None:
    async def run(settings: ModelSettings) -> RetryingModel:
        model = RetryingModel(make_model(settings), attempts=3, sleep=no_sleep)
        await model.complete(ASKED, [BASH])
        await model.close()
        return model

    faults = (ScriptedFault(kind=Fault.RATE_LIMIT), ScriptedFault(kind=Fault.SERVER))
    with scripted_server(script(SAYING, faults=faults)) as server:
        assert asyncio.run(run(settings_for(server, api, stream))).lost == []


@pytest.mark.parametrize("api", ApiFormat)
def test_a_time_limit_amid_a_reply_loses_it(api: ApiFormat) -> None:
    async def run(settings: ModelSettings) -> RetryingModel:
        model = RetryingModel(make_model(settings), attempts=2)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(model.complete(ASKED, [BASH]), 1.7)
        await model.close()
        return model

    with scripted_server(script(SAYING, faults=(ScriptedFault(kind=Fault.SLOW),))) as server:
        model = asyncio.run(run(settings_for(server, api, True)))
    (lost,) = model.lost
    assert lost.usage.input > 20


@pytest.mark.parametrize("api", ApiFormat)
def test_a_stall_amid_a_reply_loses_it(api: ApiFormat) -> None:
    async def run(settings: ModelSettings) -> RetryingModel:
        model = RetryingModel(make_model(settings), attempts=1)
        with pytest.raises(ProviderError) as caught:
            await model.complete(ASKED, [BASH])
        assert caught.value.fault is ProviderFault.STALLED
        await model.close()
        return model

    with scripted_server(script(SAYING, faults=(ScriptedFault(kind=Fault.SLOW),))) as server:
        model = asyncio.run(run(settings_for(server, api, True, stall_sec=0.2)))
    assert len(model.lost) == 1


@pytest.mark.parametrize("stream", [True, False])
def test_anthropic_caches_the_dialogue_so_far_and_is_told_the_effort(stream: bool) -> None:
    with scripted_server(script(CALLING, CALLING, SAYING)) as server:
        settings = settings_for(server, ApiFormat.ANTHROPIC, stream, reasoning_effort="high")
        first = ask(settings)
        asked = (*ASKED, first.turn, Turn(Role.TOOL, "a b", answers=first.calls[0].id))
        ask(settings, *asked)
        plain = settings_for(server, ApiFormat.ANTHROPIC, stream)
        ask(plain, *asked, Turn(Role.ASSISTANT, "Two."), Turn(Role.USER, "Go on."))
    bodies = [seen.body for seen in server.requests]
    assert [body.get("output_config") for body in bodies] == [{"effort": "high"}, {"effort": "high"}, None]
    for body in bodies:
        blocks = [*body["system"], *(block for message in body["messages"] for block in message["content"])]
        marked = [block for block in blocks if "cache_control" in block]
        assert marked == [blocks[0], blocks[-1]], "what stands for all turns, and everything so far"
    assert [body["messages"][-1]["content"][-1]["type"] for body in bodies] == ["text", "tool_result", "text"]


@pytest.mark.parametrize(
    "words",
    [
        "request (9024 tokens) exceeds the available context size (8192 tokens), try increasing it",  # llama.cpp
        "This model's maximum context length is 8192 tokens.",  # vLLM
    ],
)
def test_local_servers_say_in_their_own_words_that_a_dialogue_is_too_long(words: str) -> None:
    answer = httpx.Response(400, request=httpx.Request("POST", "http://127.0.0.1/v1"), json={"error": words})
    error = openai.BadRequestError(words, response=answer, body={"message": words, "code": 400})
    assert classify(error, began=False).fault is ProviderFault.CONTEXT
