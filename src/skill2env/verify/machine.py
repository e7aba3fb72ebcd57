"""Trials share the machine; one that timed out may ask for it alone before it is blamed."""

import threading
from collections.abc import Generator
from contextlib import contextmanager


class Machine:
    """Many holders at once, or one alone. A waiting loner keeps newcomers out, so it does get its turn."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._sharing = 0
        self._alone = False
        self._waiting = 0

    @contextmanager
    def shared(self) -> Generator[None]:
        """Run beside others."""
        with self._condition:
            self._condition.wait_for(lambda: not self._alone and not self._waiting)
            self._sharing += 1
        try:
            yield
        finally:
            with self._condition:
                self._sharing -= 1
                self._condition.notify_all()

    @contextmanager
    def alone(self) -> Generator[None]:
        """Wait until nobody shares, then run without company. Not to be entered while sharing."""
        with self._condition:
            self._waiting += 1
            try:
                self._condition.wait_for(lambda: not self._alone and not self._sharing)
                self._alone = True
            finally:
                self._waiting -= 1
                self._condition.notify_all()
        try:
            yield
        finally:
            with self._condition:
                self._alone = False
                self._condition.notify_all()
