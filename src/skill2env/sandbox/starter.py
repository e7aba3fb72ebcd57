"""The thread that starts every sandbox of this process."""

import functools
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue


class Starter:
    """The one thread that starts all sandboxes, as long as this process lives.

    bubblewrap asks the kernel to end it with its parent, and to the kernel a parent is a thread: sandboxes that a
    short-lived thread started would die with that thread.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[
            tuple[Future[subprocess.Popen[bytes]], Callable[[], subprocess.Popen[bytes]]]
        ] = SimpleQueue()
        threading.Thread(target=self._serve, name="sandbox-start", daemon=True).start()

    def run(self, task: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        """Call `task` in the thread and wait for what it returns or raises."""
        future: Future[subprocess.Popen[bytes]] = Future()
        self._tasks.put((future, task))
        return future.result()

    def _serve(self) -> None:
        while True:
            future, task = self._tasks.get()
            try:
                future.set_result(task())
            except BaseException as error:
                future.set_exception(error)


@functools.cache
def starter(_pid: int) -> Starter:
    """The starter of a process; a forked child has none of its parent's threads and gets its own."""
    return Starter()
