"""Waiting in threads, for an event loop that must never block."""

import asyncio
import contextlib
import threading
from collections.abc import Callable


async def off_loop[T](function: Callable[[], T], *, on_cancel: Callable[[int], object] | None = None) -> T:
    """Run a function that waits in a thread of its own.

    Args:
        function: what to run.
        on_cancel: called with the thread's identifier when the awaiting task is cancelled, to end what it waits for.
            The thread never keeps the process alive.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def deliver(result: T | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # pyright: ignore[reportArgumentType]

    def work() -> None:
        result, problem = None, None
        try:
            result = function()
        except BaseException as error:
            problem = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(deliver, result, problem)

    thread = threading.Thread(target=work, name="sandbox-call", daemon=True)
    thread.start()
    try:
        return await future
    except asyncio.CancelledError:
        if on_cancel is not None and thread.ident is not None:
            on_cancel(thread.ident)
        raise
