"""An agent: a model, some tools, limits. Knows nothing of where the tools act."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, cast

from skill2env.llm.compaction import Compactor
from skill2env.llm.dialogue import ChatModel, Completion, Finish, Role, TokenUsage, ToolCall, ToolSpec, Turn
from skill2env.llm.failures import ProviderError, ProviderFault

FINISH = ToolSpec(
    "finish",
    "End the session. Call it once, when everything is done and checked, or when you decline.",
    {
        "type": "object",
        "properties": {"summary": {"type": "string", "description": "One to three sentences."}},
        "required": ["summary"],
    },
)
_NUDGE = "You called no tool. Go on with the tools, or call `finish` when everything is done."
_CUT = "Your last reply was cut off at the output limit. Work in smaller steps: write long files in several parts."


class Stop(StrEnum):
    """Why a session ended."""

    FINISHED = "finished"
    """The model called ``finish``."""
    TEXT = "text"
    """It went on talking without calling a tool."""
    TURNS = "turns"
    """It had all its turns."""
    TOKENS = "tokens"
    """It had all its tokens."""
    MONEY = "money"
    """The next request could have cost more than was left."""
    GARBAGE = "garbage"
    """Calls that cannot be understood, too often in a row."""
    LENGTH = "length"
    """Replies that were cut off at the output limit, too often in a row."""
    REFUSAL = "refusal"
    """It declined."""


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """When a session ends by itself."""

    turns: int = 150
    """Replies of the model."""
    tokens: int = 0
    """Input and output of all requests together; 0 for no limit."""
    talk: int = 3
    """Replies without a tool call in a row."""
    garbage: int = 5
    """Replies in a row whose calls cannot be understood."""
    length: int = 3
    """Replies in a row that were cut off."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool said."""

    text: str
    ok: bool = True
    """False when the call itself was wrong; a command that fails is a fine call."""


class Toolbox(Protocol):
    """The tools of a session."""

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """What the model is told."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Use a tool. Never raises for what the model did wrong."""
        ...


@dataclass(slots=True)
class Session:
    """A session so far; complete also when it ends by an exception."""

    turns: list[Turn]
    """The dialogue as it really was, compacted or not."""
    usages: dict[int, TokenUsage] = field(default_factory=dict[int, TokenUsage])
    """Index in `turns` of a reply of the model -> its tokens."""
    requests: list[TokenUsage] = field(default_factory=list[TokenUsage])
    """Every request that is paid for: replies, compaction, and what broke off."""
    usage: TokenUsage = field(default_factory=TokenUsage)
    """`requests` added up."""
    estimated: bool = False
    """Some token counts were estimated."""
    replies: int = 0
    compactions: int = 0
    stop: Stop | None = None
    summary: str = ""
    """What the model said last, about the whole."""

    def bill(self, usage: TokenUsage, *, estimated: bool = False) -> None:
        """Count one request."""
        self.requests.append(usage)
        self.usage += usage
        self.estimated |= estimated


type Listener = Callable[[Session], None]
type Affords = Callable[[Session, int], bool]
"""(session so far, input tokens of the next request) -> whether it may be sent"""


class AgentLoop:
    """Runs one session."""

    def __init__(
        self,
        model: ChatModel,
        tools: Toolbox,
        *,
        limits: LoopLimits | None = None,
        compactor: Compactor | None = None,
        listener: Listener | None = None,
        affords: Affords | None = None,
    ) -> None:
        self._model = model
        self._tools = tools
        self._specs = (*tools.specs, FINISH)
        self._limits = limits or LoopLimits()
        self._compactor = compactor or Compactor()
        self._listener = listener
        self._affords = affords
        self._row = {Stop.TEXT: 0, Stop.GARBAGE: 0, Stop.LENGTH: 0}

    async def run(self, session: Session) -> None:
        """Go on until something ends the session; `session` is kept up to date all the time.

        Raises:
            ProviderError: the endpoint failed for good.
        """
        while session.stop is None:
            if session.replies >= self._limits.turns:
                session.stop = Stop.TURNS
                break
            if self._limits.tokens and session.usage.input + session.usage.output >= self._limits.tokens:
                session.stop = Stop.TOKENS
                break
            if not self._can_pay(session):
                session.stop = Stop.MONEY
                break
            try:
                reply = await self._ask(session)
            except ProviderError as error:
                if error.transient and not self._can_pay(session):
                    session.stop = Stop.MONEY  # broken replies have used up what was left
                    break
                raise
            session.replies += 1
            session.usages[len(session.turns)] = reply.usage
            session.turns.append(reply.turn)
            await self._react(session, reply)
            if self._listener is not None:
                self._listener(session)

    def _can_pay(self, session: Session) -> bool:
        return self._affords is None or self._affords(session, self._compactor.size(session.turns))

    async def _ask(self, session: Session) -> Completion:
        """One reply to the dialogue, shortened when it is too long for the model."""
        for shrunk in range(3):
            try:
                turns = await self._compactor.fit(session.turns, self._model, self._specs, session)
                reply = await self._model.complete(turns, self._specs)
                session.bill(reply.usage, estimated=reply.estimated)
            except ProviderError as error:
                # The endpoint counts differently from us; believe it and make the dialogue shorter still.
                if error.fault is not ProviderFault.CONTEXT or shrunk == 2:
                    raise
                self._compactor.shrink()
                continue
            finally:
                self._bill_lost(session)
            self._compactor.learn(turns, reply.usage)
            return reply
        raise AssertionError("unreachable")

    def _bill_lost(self, session: Session) -> None:
        """Count what broke off; an endpoint's tokens are more than our estimates by what was learned so far."""
        while self._model.lost:
            lost = self._model.lost.pop(0)
            factor = 1.0 if lost.counted else self._compactor.factor
            used = lost.usage
            session.bill(
                TokenUsage(
                    math.ceil(used.input * factor), math.ceil(used.output * factor), used.cached, used.written
                ),
                estimated=True,
            )

    async def _react(self, session: Session, reply: Completion) -> None:
        if reply.text.strip():
            session.summary = reply.text.strip()
        if reply.finish is Finish.REFUSAL:
            session.stop = Stop.REFUSAL
        elif reply.finish is Finish.LENGTH:
            await self._answer_cut(session, reply)
        elif not reply.calls:
            self._again(session, Stop.TEXT, self._limits.talk, _NUDGE)
        else:
            self._row[Stop.TEXT] = self._row[Stop.LENGTH] = 0
            await self._use_tools(session, reply.calls)

    async def _answer_cut(self, session: Session, reply: Completion) -> None:
        """A cut reply: complete calls cannot be told from cut ones, so none is made."""
        for call in reply.calls:
            session.turns.append(Turn(Role.TOOL, "Not run: the reply was cut off.", answers=call.id))
        self._again(session, Stop.LENGTH, self._limits.length, _CUT)

    def _again(self, session: Session, kind: Stop, limit: int, words: str) -> None:
        self._row[kind] += 1
        if self._row[kind] >= limit:
            session.stop = kind
        else:
            session.turns.append(Turn(Role.USER, words))

    async def _use_tools(self, session: Session, calls: Sequence[ToolCall]) -> None:
        understood = False
        ended = False
        for call in calls:
            arguments, problem = parse_arguments(call)
            if ended:
                result = ToolResult("Not run: the session has ended.", ok=False)
            elif problem:
                result = ToolResult(problem, ok=False)
            elif call.name == FINISH.name:
                ended = understood = True
                session.summary = str(arguments.get("summary") or session.summary)
                result = ToolResult("The session has ended.")
            else:
                result = await self._tools.call(call.name, arguments)
                understood |= result.ok
            session.turns.append(Turn(Role.TOOL, result.text, answers=call.id))
        self._row[Stop.GARBAGE] = 0 if understood else self._row[Stop.GARBAGE] + 1
        if ended:
            session.stop = Stop.FINISHED
        elif self._row[Stop.GARBAGE] >= self._limits.garbage:
            session.stop = Stop.GARBAGE


def parse_arguments(call: ToolCall) -> tuple[dict[str, Any], str]:
    """(arguments, what is wrong with them as the model is told)."""
    try:
        value = json.loads(call.arguments or "{}", strict=False)
    except ValueError as error:
        return {}, f"The arguments of {call.name} are no JSON: {error}. Send the call again."
    if not isinstance(value, dict):
        return {}, f"The arguments of {call.name} are no JSON object. Send the call again."
    return cast("dict[str, Any]", value), ""
