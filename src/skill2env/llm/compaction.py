"""Keep a long dialogue within what a model can read.

First old results of tools are shortened, oldest first; when that is not enough, the model writes down what it has done
and knows, and goes on from there. The task itself and the last turns always stay whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from skill2env.llm.dialogue import (
    ChatModel,
    Role,
    TokenUsage,
    ToolSpec,
    Turn,
    estimate_request,
    estimate_turn,
)

_SHORT_CHARS = 600
_ASK_SUMMARY = (
    "The dialogue has become too long to go on with. Before its beginning is removed, write down everything "
    "that the rest of the work needs: what was asked, what is done and where it lies, what was found out, decisions "
    "and their reasons, what is left, in that order. No tool calls."
)
_HANDED_OVER = "What you wrote down when the dialogue was shortened:\n\n"


class Counts(Protocol):
    """What compaction adds to a session's books."""

    compactions: int

    def bill(self, usage: TokenUsage, *, estimated: bool = False) -> None:
        """Count one request."""
        ...


@dataclass(slots=True)
class Compactor:
    """Fits dialogues into a window. One per session: it remembers what it has already shortened."""

    context_tokens: int = 128_000
    """What the model can read."""
    reply_tokens: int = 16_384
    """Kept free for the reply."""
    keep: int = 8
    """Turns at the end that are never touched."""
    factor: float = 1.0
    """Tokens as the endpoint counts them for each that we estimate; learned from its counts."""
    _cut_before: int = 0
    """Results of tools before this turn are shortened."""
    _dropped: int = 0
    """Turns before this one are replaced by `_summary`."""
    _summary: str = ""

    @property
    def room(self) -> int:
        """Tokens that a dialogue may have."""
        # A sixteenth stays free: estimates are estimates, and tools have a description too.
        free = self.context_tokens - min(self.reply_tokens, self.context_tokens // 2)
        return max(256, free - self.context_tokens // 16)

    def size(self, turns: Sequence[Turn]) -> int:
        """Tokens that the dialogue takes as it would be shown now, by the endpoint's measure as far as it is known."""
        return int(_size(self._view(turns)) * self.factor)

    def shrink(self) -> None:
        """The endpoint said that a dialogue was too long although we thought otherwise: assume three quarters."""
        self.context_tokens = max(1024, self.context_tokens * 3 // 4)

    def learn(self, turns: Sequence[Turn], usage: TokenUsage) -> None:
        """Compare our estimate with the endpoint's count; only ever become more careful."""
        estimate = sum(map(estimate_turn, turns))
        if estimate > 1000 and usage.input:
            self.factor = max(self.factor, min(4.0, usage.input / estimate))

    async def fit(
        self, turns: Sequence[Turn], model: ChatModel, tools: Sequence[ToolSpec], counts: Counts
    ) -> list[Turn]:
        """The dialogue as the model shall see it.

        Args:
            turns: the whole dialogue so far.
            model: asked for a summary when shortening is not enough.
            tools: described with every request.
            counts: gets what the summary costs.

        Raises:
            ProviderError: the summary could not be had.
        """
        overhead = estimate_request((), tools)
        room = int(self.room / self.factor) - overhead
        shown = self._view(turns)
        if _size(shown) <= room:
            return shown
        counts.compactions += 1
        last = max(_head(turns), len(turns) - self.keep)
        while self._cut_before < last:
            # A few at once, so that the endpoint's cache of the beginning is not lost with every turn.
            self._cut_before = min(last, self._cut_before + self.keep)
            shown = self._view(turns)
            if _size(shown) <= room * 3 // 4:
                return shown
        if _size(shown) <= room:
            return shown
        await self._summarise(turns, model, tools, counts, room)
        return self._view(turns)

    def _view(self, turns: Sequence[Turn]) -> list[Turn]:
        head = _head(turns)
        shown = list(turns[:head])
        if self._summary:
            shown.append(Turn(Role.USER, _HANDED_OVER + self._summary))
        for index in range(max(head, self._dropped), len(turns)):
            turn = turns[index]
            short = index < self._cut_before and turn.role is Role.TOOL
            shown.append(replace(turn, text=shortened(turn.text, _SHORT_CHARS)) if short else turn)
        return shown

    async def _summarise(
        self, turns: Sequence[Turn], model: ChatModel, tools: Sequence[ToolSpec], counts: Counts, room: int
    ) -> None:
        asked = [*_closed(_tail_within(self._view(turns), room)), Turn(Role.USER, _ASK_SUMMARY)]
        # With the tools, although none shall be called: endpoints refuse dialogues with calls of unknown tools.
        reply = await model.complete(asked, tools)
        counts.bill(reply.usage, estimated=reply.estimated)
        self._summary = shortened(reply.text.strip() or "(nothing)", max(2000, room))
        self._dropped = _safe_cut(turns, max(_head(turns), len(turns) - self.keep))
        self._cut_before = max(self._cut_before, self._dropped)
        while _size(self._view(turns)) > room and self._dropped < len(turns):
            self._dropped = _safe_cut(turns, self._dropped + 1)


def shortened(text: str, limit: int) -> str:
    """A text of at most about `limit` characters: beginning and end, and how much is missing between them."""
    if len(text) <= limit:
        return text
    half = max(1, limit // 2)
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters left out ...]\n{text[-half:]}"


def _head(turns: Sequence[Turn]) -> int:
    """Number of turns before the model's first one: rules and task."""
    return next((at for at, turn in enumerate(turns) if turn.role is Role.ASSISTANT), len(turns))


def _size(turns: Sequence[Turn]) -> int:
    return sum(map(estimate_turn, turns))


def _safe_cut(turns: Sequence[Turn], at: int) -> int:
    """The first place from `at` on where no result of a tool is parted from its call."""
    while at < len(turns) and turns[at].role is Role.TOOL:
        at += 1
    return at


def _tail_within(turns: list[Turn], room: int) -> list[Turn]:
    """The dialogue with its middle taken out where it is too long even for the question."""
    head = _head(turns)
    while _size(turns) > room and len(turns) > head + 1:
        end = _safe_cut(turns, head + 1)
        del turns[head:end]
    return turns


def _closed(turns: list[Turn]) -> list[Turn]:
    """Without calls at the end that nobody has answered: endpoints refuse a question in their place."""
    while turns and turns[-1].role is Role.ASSISTANT and turns[-1].calls:
        turns.pop()
    return turns
