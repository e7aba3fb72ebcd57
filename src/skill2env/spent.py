"""Where wall time goes, for people who read the end of a run. No result depends on it."""

import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager


class Spent:
    """Seconds by what they were spent on, added up over all threads. Safe to use from several of them."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._seconds: dict[str, float] = {}
        self._lock = threading.Lock()

    @contextmanager
    def on(self, what: str) -> Generator[None]:
        """Count what happens within, also when it fails."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.add(what, time.monotonic() - begun)

    def add(self, what: str, seconds: float) -> None:
        """Count seconds that were measured elsewhere."""
        with self._lock:
            self._seconds[what] = self._seconds.get(what, 0.0) + seconds

    @property
    def seconds(self) -> Mapping[str, float]:
        """Name -> wall seconds of all threads together, sorted by name."""
        with self._lock:
            return dict(sorted(self._seconds.items()))
