"""Send a request again when the endpoint's failure may pass: bounded, backing off, and never for anything else."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from skill2env.llm.dialogue import ChatModel, Completion, Lost, ToolSpec, Turn
from skill2env.llm.failures import ProviderError, ProviderFault
from skill2env.llm.throttle import Throttle

FIRST_WAIT_SEC = 1.0
LONGEST_WAIT_SEC = 60.0

_FOR_ALL = frozenset({ProviderFault.RATE_LIMIT, ProviderFault.OVERLOADED})
"""Faults that the next request of anybody would meet, too."""

type Sleep = Callable[[float], Awaitable[None]]
type Told = Callable[[ProviderError, int, float], None]
"""(what failed, number of the attempt, seconds until the next one)"""


@dataclass(slots=True)
class Requests:
    """How many requests were sent and how they ended: what tells a provider's failure from an author's."""

    sent: int = 0
    answered: int = 0
    failed: int = 0
    pausing: bool = False
    """A request failed and is to be sent again."""
    began: float | None = None
    """When the open request was sent, by the clock of the event loop; None when none is open."""

    def open_sec(self, now: float) -> float:
        """Seconds that the request which a time limit interrupted had been open; 0 when none was."""
        return 0.0 if self.began is None else max(0.0, now - self.began)


class RetryingModel:
    """A `ChatModel` that asks `inner` up to `attempts` times.

    Waits double from one second up to a minute, with up to a quarter of jitter drawn from `seed`; an endpoint that says
    how long to wait is obeyed (up to five minutes).

    Args:
        inner: who answers.
        attempts: how often one request is sent.
        seed: of the jitter.
        sleep: waits.
        told: hears of each failure that is tried again.
        throttle: slots and pauses shared with all who ask the same endpoint.
        may_repeat: whether a request can be paid once more; None for no limit.
    """

    def __init__(
        self,
        inner: ChatModel,
        *,
        attempts: int,
        seed: int = 0,
        sleep: Sleep = asyncio.sleep,
        told: Told | None = None,
        throttle: Throttle | None = None,
        may_repeat: Callable[[], bool] | None = None,
    ) -> None:
        self._inner = inner
        self._attempts = attempts
        self._random = random.Random(seed)
        self._sleep = sleep
        self._told = told
        self._throttle = throttle
        self._may_repeat = may_repeat
        self.requests = Requests()

    @property
    def name(self) -> str:
        """The inner model's."""
        return self._inner.name

    @property
    def lost(self) -> list[Lost]:
        """The inner model's."""
        return self._inner.lost

    async def close(self) -> None:
        """Close the inner model."""
        await self._inner.close()

    async def complete(self, turns: Sequence[Turn], tools: Sequence[ToolSpec] = ()) -> Completion:
        """See `ChatModel.complete`; raises what the last attempt raised."""
        retrying = AsyncRetrying(
            retry=retry_if_exception(self._is_repeated),
            stop=stop_after_attempt(self._attempts),
            wait=self._wait,
            before_sleep=self._tell,
            sleep=self._sleep,
            reraise=True,
        )
        return await retrying(self._once, turns, tools)

    def _is_repeated(self, error: BaseException) -> bool:
        """Whether to send the request again: it may pass, and it can be paid."""
        if not (isinstance(error, ProviderError) and error.transient):
            return False
        return self._may_repeat is None or self._may_repeat()

    async def _once(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Completion:
        if self._throttle is None:
            return await self._send(turns, tools)
        # Waiting for others is no work of the author: a time limit that ends it is not the author's fault.
        self.requests.pausing = True
        async with self._throttle.slot():
            return await self._send(turns, tools)

    async def _send(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Completion:
        requests = self.requests
        requests.sent += 1
        requests.pausing, requests.began = False, asyncio.get_running_loop().time()
        try:
            reply = await self._inner.complete(turns, tools)
        except ProviderError:
            requests.failed += 1
            requests.began = None
            raise
        requests.answered += 1
        requests.began = None
        return reply

    def _wait(self, state: RetryCallState) -> float:
        assert state.outcome is not None
        error = state.outcome.exception()
        assert isinstance(error, ProviderError)
        waited = min(LONGEST_WAIT_SEC, FIRST_WAIT_SEC * 2 ** (state.attempt_number - 1))
        waited *= 1 + self._random.random() / 4
        if error.retry_after is not None:
            waited = min(max(error.retry_after, 0.1), 5 * LONGEST_WAIT_SEC)
        if self._throttle is not None and error.fault in _FOR_ALL:
            self._throttle.pause(waited)
        return waited

    def _tell(self, state: RetryCallState) -> None:
        assert state.outcome is not None
        error = state.outcome.exception()
        self.requests.pausing = True
        if self._told is not None and isinstance(error, ProviderError):
            self._told(error, state.attempt_number, state.upcoming_sleep)
