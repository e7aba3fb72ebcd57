"""The bytes of one command: its pipes, moved by the thread that waits for it, until it ends or its time is up."""

import os
import selectors
import threading
import time
from collections.abc import Callable, Iterator
from typing import Self

CHUNK_BYTES = 1 << 16
DRAIN_SEC = 0.25
"""How long output is still read after the command ended while a background child keeps the pipe open."""

Sink = Callable[[memoryview], None]


class Pending:
    """The answer that one command waits for; wakes a selector through an event descriptor."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.error: str | None = None
        self.ended = False
        """True when not the command but the whole sandbox ended."""
        self.done = threading.Event()
        self.wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lock = threading.Lock()
        self._closed = False

    def finish(self, *, code: int | None = None, error: str | None = None, ended: bool = False) -> None:
        """Deliver the end of the command once; later calls change nothing."""
        with self._lock:
            if self.done.is_set():
                return
            self.code, self.error, self.ended = code, error, ended
            self.done.set()
            if not self._closed:
                os.eventfd_write(self.wake, 1)

    def close(self) -> None:
        """Release the descriptor."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self.wake)


class Pipes:
    """stdin, stdout and stderr of one command, host ends and guest ends; a context manager.

    Args:
        stdin: bytes to feed, or an iterator that makes them as they are needed; None for an empty input.
        merge_stderr: send stderr to stdout.
        limit: bytes kept of each stream; the rest is read and thrown away.
        sink: gets stdout piece by piece instead of keeping it; what it raises ends `pump`.
    """

    def __init__(
        self,
        *,
        stdin: bytes | Iterator[bytes] | None,
        merge_stderr: bool,
        limit: int,
        sink: Sink | None = None,
    ) -> None:
        self.truncated = False
        self._limit = limit
        self._sink = sink
        self._kept: dict[int, bytearray] = {}
        self._source: Iterator[bytes] = iter(()) if isinstance(stdin, bytes) or stdin is None else stdin
        self._input = memoryview(stdin if isinstance(stdin, bytes) else b"")
        self._stdin = -1
        self._out, out_write = os.pipe()
        self._err, err_write = (-1, out_write) if merge_stderr else os.pipe()
        if stdin:
            in_read, self._stdin = os.pipe()
            os.set_blocking(self._stdin, False)
        else:
            in_read = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self.guest_ends: tuple[int, ...] = (in_read, out_write, err_write)
        self._open = {number for number in (self._out, self._err) if number >= 0}
        for number in self._open:
            os.set_blocking(number, False)
            self._kept[number] = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_guest_ends()
        for number in (*self._open, self._stdin):
            if number >= 0:
                os.close(number)
        self._open.clear()
        self._stdin = -1

    def close_guest_ends(self) -> None:
        """Close the ends that the command owns now."""
        for number in set(self.guest_ends):
            os.close(number)
        self.guest_ends = ()

    @property
    def stdout(self) -> bytes:
        """What was kept of standard output."""
        return bytes(self._kept[self._out])

    @property
    def stderr(self) -> bytes:
        """What was kept of standard error; empty when merged."""
        return bytes(self._kept[self._err]) if self._err >= 0 else b""

    def pump(self, pending: Pending, timeout_sec: float | None) -> bool:
        """Move bytes until the command has ended and its output is drained; True when the time ran out first."""
        end = None if timeout_sec is None else time.monotonic() + timeout_sec
        drain_end: float | None = None
        with selectors.DefaultSelector() as selector:
            for number in self._open:
                selector.register(number, selectors.EVENT_READ)
            if self._stdin >= 0:
                selector.register(self._stdin, selectors.EVENT_WRITE)
            if not pending.done.is_set():
                selector.register(pending.wake, selectors.EVENT_READ)
            while True:
                now = time.monotonic()
                if pending.done.is_set():
                    drain_end = drain_end or now + DRAIN_SEC
                    if not self._open or now >= drain_end:
                        return False
                elif end is not None and now >= end:
                    return True
                limit = drain_end if drain_end is not None else end
                for key, _ in selector.select(None if limit is None else max(0.0, limit - now)):
                    self._move(key.fd, selector, pending)

    def _move(self, number: int, selector: selectors.BaseSelector, pending: Pending) -> None:
        if number == pending.wake:
            selector.unregister(number)
        elif number == self._stdin:
            self._feed(selector)
        else:
            self._take(number, selector)

    def _take(self, number: int, selector: selectors.BaseSelector) -> None:
        try:
            data = os.read(number, CHUNK_BYTES)
        except BlockingIOError:
            return
        if not data:
            selector.unregister(number)
            os.close(number)
            self._open.discard(number)
        elif self._sink is not None and number == self._out:
            self._sink(memoryview(data))
        else:
            kept = self._kept[number]
            room = self._limit - len(kept)
            kept += data[: max(0, room)]
            self.truncated = self.truncated or len(data) > room

    def _feed(self, selector: selectors.BaseSelector) -> None:
        if not self._input:
            self._input = memoryview(next(self._source, b""))
        try:
            self._input = self._input[os.write(self._stdin, self._input[:CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._input, self._source = memoryview(b""), iter(())
        if not self._input:
            self._input = memoryview(next(self._source, b""))
        if not self._input:
            selector.unregister(self._stdin)
            os.close(self._stdin)
            self._stdin = -1
