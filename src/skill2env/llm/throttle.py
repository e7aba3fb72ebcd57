"""How many requests one endpoint gets at once from this process, and pauses that all of them keep.

An endpoint that turns one request away for coming too often would turn the next one away as well: its pause holds for
everybody who asks the same endpoint. Sessions run on event loops of their own threads, so a slot is taken by looking
again and again; a wait of a twentieth of a second is nothing beside an answer.
"""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

DEFAULT_AT_ONCE = 8
_LOOK_SEC = 0.05


class Throttle:
    """Slots and pauses of one endpoint. Thread-safe."""

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self._lock = threading.Lock()
        self._open = 0
        self._until = 0.0
        self.most = 0
        """Most requests that were open at the same time."""

    def pause(self, seconds: float) -> None:
        """Nobody begins a request before so many seconds have passed; a longer pause stands."""
        with self._lock:
            self._until = max(self._until, time.monotonic() + seconds)

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None]:
        """Wait for a slot and for the end of pauses, and hold the slot while the block lasts."""
        while (wait := self._take()) > 0:
            await asyncio.sleep(wait)
        try:
            yield
        finally:
            self._give_back()

    @contextmanager
    def held(self) -> Generator[None]:
        """As `slot`, for threads without an event loop."""
        while (wait := self._take()) > 0:
            time.sleep(wait)
        try:
            yield
        finally:
            self._give_back()

    def _take(self) -> float:
        """0 when a slot was taken, else seconds until it is worth looking again."""
        with self._lock:
            pause = self._until - time.monotonic()
            if pause > 0:
                return min(pause, 1.0)
            if self._open >= self.at_once:
                return _LOOK_SEC
            self._open += 1
            self.most = max(self.most, self._open)
            return 0.0

    def _give_back(self) -> None:
        with self._lock:
            self._open -= 1


_ALL: dict[str, Throttle] = {}
_ALL_LOCK = threading.Lock()


def throttle_of(endpoint: str, at_once: int) -> Throttle:
    """The one throttle of an endpoint in this process; the limit that was given last holds."""
    with _ALL_LOCK:
        found = _ALL.setdefault(endpoint, Throttle(at_once))
        found.at_once = at_once
        return found
