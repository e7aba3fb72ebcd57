"""Send a request again when the endpoint's failure may pass: bounded, backing off, and never for anything else."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from skill2env.llm.dialogue import ChatModel, Completion, ToolSpec, Turn
from skill2env.llm.failures import ProviderError

FIRST_WAIT_SEC = 1.0
LONGEST_WAIT_SEC = 60.0

type Sleep = Callable[[float], Awaitable[None]]
type Told = Callable[[ProviderError, int, float], None]
"""(what failed, number of the attempt, seconds until the next one)"""


@dataclass(slots=True)
class Requests:
    """How many requests were sent and how they ended: what tells a provider's failure from an author's."""

    sent: int = 0
    answered: int = 0
    failed: int = 0

    @property
    def open(self) -> int:
        """Requests that were sent and neither answered nor failed: the one that a time limit interrupted."""
        return self.sent - self.answered - self.failed


class RetryingModel:
    """A `ChatModel` that asks `inner` up to `attempts` times.

    Waits double from one second up to a minute, with up to a quarter of jitter drawn from `seed`; an endpoint that says
    how long to wait is obeyed (up to five minutes).
    """

    def __init__(
        self,
        inner: ChatModel,
        *,
        attempts: int,
        seed: int = 0,
        sleep: Sleep = asyncio.sleep,
        told: Told | None = None,
    ) -> None:
        self._inner = inner
        self._attempts = attempts
        self._random = random.Random(seed)
        self._sleep = sleep
        self._told = told
        self.requests = Requests()

    @property
    def name(self) -> str:
        """The inner model's."""
        return self._inner.name

    async def close(self) -> None:
        """Close the inner model."""
        await self._inner.close()

    async def complete(self, turns: Sequence[Turn], tools: Sequence[ToolSpec] = ()) -> Completion:
        """See `ChatModel.complete`; raises what the last attempt raised."""
        retrying = AsyncRetrying(
            retry=retry_if_exception(lambda error: isinstance(error, ProviderError) and error.transient),
            stop=stop_after_attempt(self._attempts),
            wait=self._wait,
            before_sleep=self._tell,
            sleep=self._sleep,
            reraise=True,
        )
        return await retrying(self._once, turns, tools)

    async def _once(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Completion:
        self.requests.sent += 1
        try:
            reply = await self._inner.complete(turns, tools)
        except ProviderError:
            self.requests.failed += 1
            raise
        self.requests.answered += 1
        return reply

    def _wait(self, state: RetryCallState) -> float:
        assert state.outcome is not None
        error = state.outcome.exception()
        assert isinstance(error, ProviderError)
        waited = min(LONGEST_WAIT_SEC, FIRST_WAIT_SEC * 2 ** (state.attempt_number - 1))
        waited *= 1 + self._random.random() / 4
        if error.retry_after is not None:
            waited = min(max(error.retry_after, 0.1), 5 * LONGEST_WAIT_SEC)
        return waited

    def _tell(self, state: RetryCallState) -> None:
        assert state.outcome is not None
        error = state.outcome.exception()
        if self._told is not None and isinstance(error, ProviderError):
            self._told(error, state.attempt_number, state.upcoming_sleep)
