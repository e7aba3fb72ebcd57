"""Worker processes for skills: started once, fed in order, answered in order, gone with whoever started them."""

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from itertools import batched
from multiprocessing.connection import wait

from skill2env.errors import Boundary, InfraError

CHUNK = 16
"""Skills handed to a worker at once."""
_AHEAD = 4
"""Chunks per worker that may wait, so that results never pile up in memory."""
_MODULES = ["skill2env.hub.take"]


def default_workers() -> int:
    """As many as there are cores for this process, at most sixteen."""
    return max(1, min(16, len(os.sched_getaffinity(0))))


class Workers:
    """A pool that keeps the order of what it is given."""

    def __init__(self, pool: ProcessPoolExecutor, count: int) -> None:
        self._pool = pool
        self._count = count

    def map[I, R](
        self, function: Callable[[Sequence[I]], Sequence[R]], items: Iterable[I], chunk: int = CHUNK
    ) -> Iterator[R]:
        """Apply a function to chunks of items; results come in the order of the items.

        Raises:
            InfraError: boundary ``storage``, when a worker was killed (usually for its memory).
        """
        waiting: deque[Future[Sequence[R]]] = deque()
        chunks = batched(items, chunk)
        try:
            for part in chunks:
                waiting.append(self._pool.submit(function, part))
                if len(waiting) >= self._count * _AHEAD:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        except BrokenProcessPool:
            raise _killed() from None
        finally:
            for future in waiting:
                future.cancel()

    def submit[**P, R](self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Callable[[], R]:
        """Have something done meanwhile.

        Returns:
            Waits for it and gives its result; raises InfraError of boundary ``storage`` when no worker could do it.
        """
        try:
            future = self._pool.submit(function, *args, **kwargs)
        except (BrokenProcessPool, RuntimeError):
            future = Future[R]()
            future.set_exception(BrokenProcessPool())

        def result() -> R:
            try:
                return future.result()
            except BrokenProcessPool:
                raise _killed() from None

        return result


@contextmanager
def workers(count: int = 0) -> Generator[Workers]:
    """Worker processes for a while.

    Args:
        count: how many; 0 for one a core.
    """
    number = count or default_workers()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_MODULES)
    pool = ProcessPoolExecutor(number, mp_context=context, initializer=_begin)
    try:
        for _ in range(number):  # they start now, while a source is being unpacked
            pool.submit(_warm)
        yield Workers(pool, number)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _killed() -> InfraError:
    return InfraError(
        Boundary.STORAGE,
        "a worker process was killed",
        hint="make memory free, or give fewer --workers; finished work is kept",
    )


def _warm() -> None:
    """Load what every skill needs."""
    from skill2env.domains import load_classifier
    from skill2env.hub.rules import default_rules

    load_classifier()
    default_rules()


def _begin() -> None:
    """End with the process that started us, however it ends, and leave Ctrl-C to it."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        with suppress(OSError):
            wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
