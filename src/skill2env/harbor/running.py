"""The trials that run in this process, and stopping them.

Covers: trials in any thread, a wish to stop that comes while one is only being made, and worker threads that run trials
and end with them. Does not cover: trials of other processes.
"""

import asyncio
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

_RUNNING: set[tuple[asyncio.AbstractEventLoop, "asyncio.Task[Any]"]] = set()
_LOCK = threading.Lock()
_INSIST_SEC = 2.0
_halts = 0
"""How many `halted` blocks there are."""


@contextmanager
def registered() -> Generator[None]:
    """Let the current task be found by those who stop trials.

    Raises:
        asyncio.CancelledError: no trial may begin now.
    """
    task = asyncio.current_task()
    assert task is not None
    entry = (asyncio.get_running_loop(), task)
    with _LOCK:
        if _halts:
            raise asyncio.CancelledError
        _RUNNING.add(entry)
    try:
        yield
    finally:
        with _LOCK:
            _RUNNING.discard(entry)


def cancel_running() -> int:
    """Cancel every trial that runs in any thread; each call of `run_trial` then raises `InfraError`.

    Returns:
        How many were cancelled. Their containers are stopped by the trials themselves before they return.
    """
    with _LOCK:
        running = tuple(_RUNNING)
    for loop, task in running:
        if not loop.is_closed():
            loop.call_soon_threadsafe(task.cancel)
    return len(running)


@contextmanager
def halted() -> Generator[None]:
    """Cancel every running trial of this process, and let none begin until the block ends.

    Once is not enough: a trial that is just being made may come to its work later, and one whose sandbox was killed
    while it started looks like a failure of the machine, which is tried again.
    """
    global _halts  # noqa: PLW0603
    with _LOCK:
        _halts += 1
    over = threading.Event()

    def insist() -> None:
        cancel_running()
        while not over.wait(_INSIST_SEC):
            cancel_running()

    thread = threading.Thread(target=insist, name="halt", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with _LOCK:
            _halts -= 1


@contextmanager
def trial_workers(count: int, name: str) -> Generator[ThreadPoolExecutor]:
    """Threads that run trials and end with the block; where it ends with an error, their trials are stopped.

    Args:
        count: how many at once, at least one.
        name: of the threads.
    """
    pool = ThreadPoolExecutor(max_workers=max(1, count), thread_name_prefix=name)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        with halted():
            pool.shutdown()
        raise
    finally:
        pool.shutdown()
