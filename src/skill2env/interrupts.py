"""Ctrl-C, SIGTERM and a terminal that goes away: the same orderly stop for every verb that works for long."""

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def interruptible() -> Generator[None]:
    """Let SIGINT, SIGTERM and SIGHUP raise `KeyboardInterrupt` once, so that running trials are stopped in good order.

    A second one ends at once, which loses nothing but unfinished work: whatever is finished is on disk. A signal that
    was ignored before (``nohup``) stays ignored. Outside the main thread signals are left alone.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    met: list[int] = []

    def stop(number: int, _: object) -> None:
        met.append(number)
        if len(met) > 1:
            os._exit(128 + signal.SIGINT)
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {n: signal.signal(n, stop) for n in numbers if signal.getsignal(n) is not signal.SIG_IGN}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
