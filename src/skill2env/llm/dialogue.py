"""What passes between an agent and a model, whatever the wire format: turns, tools, completions, token counts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


class Role(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    """Standing rules; only at the beginning."""
    USER = "user"
    """The task, and what the agent loop adds."""
    ASSISTANT = "assistant"
    """The model."""
    TOOL = "tool"
    """The result of one tool call."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool that the model may call."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON schema of the arguments, an object."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as the model wrote it."""

    id: str
    name: str
    arguments: str
    """JSON text, unparsed: what is wrong with it is for the agent to say."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One entry of a dialogue."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    """ASSISTANT only."""
    answers: str = ""
    """TOOL only: the id of the call that this is the result of."""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one request, or of many added up."""

    input: int = 0
    """All input tokens, cached ones included."""
    output: int = 0
    """Hidden reasoning included, where the endpoint counts it."""
    cached: int = 0
    """Input tokens that came from the endpoint's cache."""
    written: int = 0
    """Input tokens that the endpoint has put into its cache, where that costs extra."""

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.written + other.written,
        )


class Finish(StrEnum):
    """Why the model stopped."""

    STOP = "stop"
    """It had said everything."""
    TOOLS = "tools"
    """It waits for tool results."""
    LENGTH = "length"
    """The output limit cut it off."""
    REFUSAL = "refusal"
    """It, or a filter in front of it, declined."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply of a model, complete."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: Finish = Finish.STOP
    usage: TokenUsage = field(default_factory=TokenUsage)
    estimated: bool = False
    """The endpoint gave no token counts; `usage` was estimated from the lengths of the texts."""

    @property
    def turn(self) -> Turn:
        """The reply as an entry of the dialogue."""
        return Turn(Role.ASSISTANT, self.text, self.calls)


@dataclass(frozen=True, slots=True)
class Lost:
    """A request whose reply broke off after it had begun: it is billed, and nobody says how much."""

    usage: TokenUsage
    """What was sent and what had come, estimated from the lengths of the texts."""
    counted: bool = False
    """The endpoint had counted the input before it broke off."""


class ChatModel(Protocol):
    """A model that continues a dialogue. Safe for concurrent calls within one event loop."""

    @property
    def name(self) -> str:
        """The model's name as the endpoint knows it."""
        ...

    @property
    def lost(self) -> list[Lost]:
        """Requests that broke off and that nobody has billed yet; whoever bills one removes it."""
        ...

    async def complete(self, turns: Sequence[Turn], tools: Sequence[ToolSpec] = ()) -> Completion:
        """The next turn of `turns`.

        Raises:
            ProviderError: the endpoint failed, by kind; nothing is retried here.
        """
        ...

    async def close(self) -> None:
        """Give connections back."""
        ...


CHARS_PER_TOKEN = 4
"""Rule of thumb for English text and code; only used where no endpoint counts."""


def estimate_tokens(text: str) -> int:
    """Roughly how many tokens a text has; never 0 for a text that is not empty."""
    return (len(text) + CHARS_PER_TOKEN - 1) // CHARS_PER_TOKEN


def estimate_turn(turn: Turn) -> int:
    """Roughly how many tokens one turn takes, its tool calls and framing included."""
    calls = sum(estimate_tokens(call.name) + estimate_tokens(call.arguments) + 8 for call in turn.calls)
    return estimate_tokens(turn.text) + calls + 4


def estimate_request(turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> int:
    """Roughly how many tokens a request has, with the description of its tools."""
    told = sum(estimate_tokens(f"{tool.name}{tool.description}{tool.parameters}") for tool in tools)
    return told + sum(map(estimate_turn, turns))
