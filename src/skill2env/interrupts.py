"""Ctrl-C, SIGTERM and a terminal that goes away: the same orderly stop for every verb that works for long."""

import os
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

_ECHO_SEC = 0.5
"""``timeout`` and shells signal a process and then its group: the same wish, told twice."""


@contextmanager
def interruptible() -> Generator[None]:
    """Let SIGINT, SIGTERM and SIGHUP raise `KeyboardInterrupt` once, so that running trials are stopped in good order.

    A second one ends at once, which loses nothing but unfinished work: whatever is finished is on disk. A signal that
    was ignored before (``nohup``) stays ignored. Outside the main thread signals are left alone.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    met: list[float] = []

    def stop(_: int, __: object) -> None:
        met.append(time.monotonic())
        if len(met) == 1:
            raise KeyboardInterrupt
        if met[-1] - met[0] > _ECHO_SEC:
            os._exit(128 + signal.SIGINT)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {n: signal.signal(n, stop) for n in numbers if signal.getsignal(n) is not signal.SIG_IGN}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
