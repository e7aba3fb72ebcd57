"""The agent loop and compaction, against a model in memory that sees exactly what an endpoint would."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from skill2env.llm.compaction import Compactor, shortened
from skill2env.llm.dialogue import (
    Completion,
    Finish,
    Lost,
    Role,
    TokenUsage,
    ToolCall,
    ToolSpec,
    Turn,
    estimate_turn,
)
from skill2env.llm.failures import ProviderError, ProviderFault
from skill2env.llm.loop import AgentLoop, LoopLimits, Session, Stop, ToolResult

ECHO = ToolSpec("echo", "Say it back.", {"type": "object", "properties": {"text": {"type": "string"}}})


@dataclass
class Tools:
    """One tool."""

    specs: Sequence[ToolSpec] = (ECHO,)
    called: list[Mapping[str, Any]] = field(default_factory=list)
    size: int = 0

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        if name != "echo":
            return ToolResult(f"There is no tool {name}.", ok=False)
        self.called.append(arguments)
        return ToolResult(str(arguments.get("text", "")) + "x" * self.size)


@dataclass
class Model:
    """Plays replies; checks that every dialogue it is shown is well-formed; may read only so much."""

    replies: Sequence[Completion]
    context: int = 10**9
    asked: list[list[Turn]] = field(default_factory=list)
    summaries: int = 0
    name: str = "memory"
    lost: list[Lost] = field(default_factory=list)

    async def complete(self, turns: Sequence[Turn], tools: Sequence[ToolSpec] = ()) -> Completion:
        well_formed(turns)
        size = sum(map(estimate_turn, turns))
        if size > self.context:
            raise ProviderError(ProviderFault.CONTEXT, "too long")
        assert tools, "calls of tools that the endpoint was not told of are refused"
        if turns[-1].text.startswith("The dialogue has become too long"):
            self.summaries += 1
            return Completion("I have echoed a lot.", usage=TokenUsage(size, 5))
        self.asked.append(list(turns))
        reply = self.replies[min(len(self.asked) - 1, len(self.replies) - 1)]
        return Completion(reply.text, reply.calls, reply.finish, TokenUsage(size, 10))

    async def close(self) -> None:
        return None


def well_formed(turns: Sequence[Turn]) -> None:
    """Each call is answered right behind it, each answer has its call: what endpoints insist on."""
    waiting: list[str] = []
    for turn in turns:
        if turn.role is Role.TOOL:
            assert turn.answers in waiting
            waiting.remove(turn.answers)
        else:
            assert not waiting
            waiting = [call.id for call in turn.calls]
    assert not waiting


def echo(text: str, number: int = 0) -> Completion:
    call = ToolCall(f"c{number}", "echo", json.dumps({"text": text}))
    return Completion("", (call,), Finish.TOOLS)


def done(summary: str = "All done.") -> Completion:
    return Completion("", (ToolCall("f", "finish", json.dumps({"summary": summary})),), Finish.TOOLS)


def run(model: Model, tools: Tools | None = None, **others: Any) -> Session:
    session = Session([Turn(Role.SYSTEM, "Rules."), Turn(Role.USER, "Task.")])
    asyncio.run(AgentLoop(model, tools or Tools(), **others).run(session))
    return session


def test_a_session() -> None:
    tools = Tools()
    session = run(Model([echo("one"), echo("two"), done()]), tools)
    assert session.stop is Stop.FINISHED
    assert session.summary == "All done."
    assert [item["text"] for item in tools.called] == ["one", "two"]
    assert [turn.text for turn in session.turns if turn.role is Role.TOOL][:2] == ["one", "two"]
    assert session.replies == 3
    assert session.usage.output == 30
    assert len(session.usages) == 3
    well_formed(session.turns)


@pytest.mark.parametrize(
    ("replies", "stop", "asked"),
    [
        ([Completion("I think about it.")], Stop.TEXT, 3),
        ([Completion("", (ToolCall("a", "echo", "{"),), Finish.TOOLS)], Stop.GARBAGE, 5),
        ([Completion("", (ToolCall("a", "echo", "[1]"),), Finish.TOOLS)], Stop.GARBAGE, 5),
        ([Completion("", (ToolCall("a", "teleport", "{}"),), Finish.TOOLS)], Stop.GARBAGE, 5),
        ([Completion("Once upon", finish=Finish.LENGTH)], Stop.LENGTH, 3),
        ([Completion("", (ToolCall("a", "echo", '{"te'),), Finish.LENGTH)], Stop.LENGTH, 3),
        ([Completion("No.", finish=Finish.REFUSAL)], Stop.REFUSAL, 1),
        ([echo("again")], Stop.TURNS, 12),
    ],
)
def test_every_way_to_go_nowhere_ends(replies: list[Completion], stop: Stop, asked: int) -> None:
    model = Model(replies)
    assert run(model, limits=LoopLimits(turns=12)).stop is stop
    assert len(model.asked) == asked


def test_a_slip_is_forgiven() -> None:
    slip = Completion("", (ToolCall("a", "echo", "{"),), Finish.TOOLS)
    talk = Completion("Hm.")
    model = Model([slip, talk, echo("x"), slip, talk, echo("y"), done()])
    assert run(model, limits=LoopLimits(garbage=2, talk=2)).stop is Stop.FINISHED


def test_tokens_are_limited() -> None:
    session = run(Model([echo("x" * 4000)]), limits=LoopLimits(tokens=20_000))
    assert session.stop is Stop.TOKENS
    assert 20_000 <= session.usage.input + session.usage.output < 40_000


def test_calls_behind_the_end_are_not_made() -> None:
    tools = Tools()
    both = Completion("", (done().calls[0], echo("late").calls[0]), Finish.TOOLS)
    assert run(Model([both]), tools).stop is Stop.FINISHED
    assert not tools.called


def test_what_was_said_survives_a_failure() -> None:
    class Failing(Model):
        async def complete(self, turns: Sequence[Turn], tools: Sequence[ToolSpec] = ()) -> Completion:
            if len(self.asked) == 2:
                raise ProviderError(ProviderFault.SERVER, "broke")
            return await super().complete(turns, tools)

    session = Session([Turn(Role.USER, "Task.")])
    seen: list[int] = []
    loop = AgentLoop(Failing([echo("x")]), Tools(), listener=lambda item: seen.append(item.replies))
    with pytest.raises(ProviderError, match="broke"):
        asyncio.run(loop.run(session))
    assert session.replies == 2
    assert session.usage.output == 20
    assert seen == [1, 2]


def test_old_results_are_shortened_first() -> None:
    model = Model([echo(f"n{number}", number) for number in range(30)] + [done()], context=20_000)
    session = run(model, Tools(size=4000), compactor=Compactor(context_tokens=16_000, reply_tokens=1000))
    assert session.stop is Stop.FINISHED
    assert session.compactions
    assert not model.summaries
    last = model.asked[-1]
    assert [turn.text for turn in last[:2]] == ["Rules.", "Task."]
    results = [turn.text for turn in last if turn.role is Role.TOOL]
    assert len(results) == 30
    assert len(results[0]) < 800
    assert "characters left out" in results[0]
    assert len(results[-1]) > 4000
    assert len([turn for turn in session.turns if len(turn.text) > 4000]) == 30, "the record is kept whole"


def test_then_the_model_sums_up() -> None:
    replies = [echo("word " * 800, number) for number in range(30)] + [done()]
    model = Model(replies, context=9000)
    session = run(model, compactor=Compactor(context_tokens=9000, reply_tokens=500))
    assert session.stop is Stop.FINISHED
    assert model.summaries
    assert any("I have echoed a lot." in turn.text for turn in model.asked[-1])
    assert [turn.text for turn in model.asked[-1][:2]] == ["Rules.", "Task."]


def test_an_endpoint_that_reads_less_than_it_says() -> None:
    model = Model([echo("word " * 500, number) for number in range(20)] + [done()], context=6000)
    session = run(model, compactor=Compactor(context_tokens=9000, reply_tokens=500))
    assert session.stop is Stop.FINISHED


def test_a_task_that_is_too_long_is_the_endpoints_failure() -> None:
    model = Model([done()], context=10)
    with pytest.raises(ProviderError) as caught:
        run(model)
    assert caught.value.fault is ProviderFault.CONTEXT
    assert not caught.value.transient


def test_counts_of_the_endpoint_are_learned() -> None:
    compactor = Compactor(context_tokens=10_000, reply_tokens=100)
    turns = [Turn(Role.USER, "x" * 8000)]
    compactor.learn(turns, TokenUsage(4000, 1))
    assert 1.9 < compactor.factor < 2.1
    compactor.learn(turns, TokenUsage(100, 1))
    assert compactor.factor > 1.9, "never less careful again"


@pytest.mark.parametrize("size", [0, 10, 11, 500])
def test_shortened(size: int) -> None:
    text = "a" * size
    assert shortened(text, 10) == text if size <= 10 else "left out" in shortened(text, 10)


def test_what_broke_off_is_billed_and_counts_against_the_money() -> None:
    class Breaking(Model):
        async def complete(self, turns: Sequence[Turn], tools: Sequence[ToolSpec] = ()) -> Completion:
            self.lost.append(Lost(TokenUsage(1000, 50), counted=True))
            if len(self.asked) == 2:
                raise ProviderError(ProviderFault.CUT, "broke off")
            return await super().complete(turns, tools)

    model = Breaking([echo("x")])
    session = Session([Turn(Role.USER, "Task.")])
    loop = AgentLoop(model, Tools(), affords=lambda done, _: done.usage.output < 165)
    asyncio.run(loop.run(session))
    assert session.stop is Stop.MONEY, "no failure of the endpoint: what was left is used up"
    assert session.usage.output == 2 * 10 + 3 * 50
    assert len(session.requests) == 5
    assert session.estimated
    assert model.lost == []
    with pytest.raises(ProviderError):
        asyncio.run(AgentLoop(Breaking([echo("x")]), Tools()).run(Session([Turn(Role.USER, "Task.")])))


def test_estimates_of_what_broke_off_follow_the_endpoints_measure() -> None:
    model = Model([done()], lost=[Lost(TokenUsage(100, 10)), Lost(TokenUsage(7, 3), counted=True)])
    session = run(model, Tools(), compactor=Compactor(factor=1.5))
    assert session.requests[1:] == [TokenUsage(150, 15), TokenUsage(7, 3)]
