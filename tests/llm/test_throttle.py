"""Slots and pauses of an endpoint, over threads with event loops of their own."""

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from skill2env.llm.dialogue import Completion, Lost, Role, ToolSpec, Turn
from skill2env.llm.failures import ProviderError, ProviderFault
from skill2env.llm.retrying import RetryingModel
from skill2env.llm.throttle import Throttle, throttle_of


class Endpoint:
    """Answers after a moment; turns the first requests away."""

    name = "slow"

    def __init__(self, refusals: Sequence[ProviderError] = ()) -> None:
        self.open = self.most = 0
        self.lock = threading.Lock()
        self.refusals = list(refusals)
        self.times: list[float] = []
        self.lost: list[Lost] = []

    async def complete(self, turns: Sequence[Turn], tools: Sequence[ToolSpec] = ()) -> Completion:
        with self.lock:
            self.open += 1
            self.most = max(self.most, self.open)
            self.times.append(time.monotonic())
            refusal = self.refusals.pop(0) if self.refusals else None
        await asyncio.sleep(0 if refusal else 0.05)
        with self.lock:
            self.open -= 1
        if refusal:
            raise refusal
        return Completion("yes")

    async def close(self) -> None:
        return None


def ask_from_threads(endpoint: Any, throttle: Throttle, threads: int, each: int = 2) -> list[BaseException]:
    failures: list[BaseException] = []

    async def session() -> None:
        model = RetryingModel(endpoint, attempts=3, throttle=throttle)
        await asyncio.gather(*(model.complete([Turn(Role.USER, "?")]) for _ in range(each)))

    def work() -> None:
        try:
            asyncio.run(session())
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return failures


def test_no_more_at_once_than_the_limit_over_all_threads() -> None:
    endpoint, throttle = Endpoint(), Throttle(3)
    assert ask_from_threads(endpoint, throttle, threads=5) == []
    assert len(endpoint.times) == 10
    assert endpoint.most == throttle.most == 3


def test_a_pause_holds_for_everybody() -> None:
    refusal = ProviderError(ProviderFault.RATE_LIMIT, "too many", retry_after=0.4)
    endpoint, throttle = Endpoint([refusal]), Throttle(1)
    assert ask_from_threads(endpoint, throttle, threads=3, each=1) == []
    first, *others = endpoint.times
    assert len(others) == 3
    assert min(others) - first >= 0.39, "nobody asked while the endpoint wanted to be left alone"


def test_other_faults_hold_up_nobody() -> None:
    endpoint, throttle = Endpoint([ProviderError(ProviderFault.SERVER, "broke", retry_after=30)]), Throttle(4)

    async def both() -> float:
        one = RetryingModel(endpoint, attempts=1, throttle=throttle)
        with pytest.raises(ProviderError):
            await one.complete([])
        begun = time.monotonic()
        await one.complete([])
        return time.monotonic() - begun

    assert asyncio.run(both()) < 5


def test_a_cancelled_request_gives_its_slot_back() -> None:
    throttle = Throttle(1)

    async def run() -> None:
        class Hanging(Endpoint):
            async def complete(self, turns: Sequence[Turn], tools: Sequence[ToolSpec] = ()) -> Completion:
                await asyncio.sleep(60)
                raise AssertionError

        hanging = asyncio.create_task(RetryingModel(Hanging(), attempts=1, throttle=throttle).complete([]))
        waiting = asyncio.create_task(RetryingModel(Hanging(), attempts=1, throttle=throttle).complete([]))
        await asyncio.sleep(0.1)
        for task in (waiting, hanging):
            task.cancel()
        await asyncio.gather(hanging, waiting, return_exceptions=True)
        await asyncio.wait_for(RetryingModel(Endpoint(), attempts=1, throttle=throttle).complete([]), 5)

    asyncio.run(run())


def test_a_request_that_cannot_be_paid_again_is_not_sent_again() -> None:
    cut = [ProviderError(ProviderFault.CUT, "broke off") for _ in range(3)]
    endpoint = Endpoint(cut)
    model = RetryingModel(endpoint, attempts=5, may_repeat=lambda: len(endpoint.times) < 2, sleep=_no_sleep)
    with pytest.raises(ProviderError, match="broke off"):
        asyncio.run(model.complete([]))
    assert len(endpoint.times) == 2


async def _no_sleep(_: float) -> None:
    return None


def test_one_throttle_an_endpoint() -> None:
    first = throttle_of("http://one.example/v1", 3)
    assert throttle_of("http://one.example/v1", 5) is first
    assert first.at_once == 5
    assert throttle_of("http://two.example/v1", 5) is not first
    with first.held(), first.held():
        assert first.most == 2
