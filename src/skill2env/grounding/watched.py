"""Connections that outlive neither their time nor a wish to stop, whatever the other side does.

Covers: a server that sends its headers, its file or its TLS handshake byte by byte, one that says nothing, a name
service that does not answer, and Ctrl-C meanwhile. Reading waits in short slices. What cannot be sliced (looking a name
up, connecting, the handshake) is done on a thread of its own, which is left behind when it takes too long and then
closes what it gets. Does not cover: sending, because requests are shorter than what a kernel takes at once.
"""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any, override

import httpcore

from skill2env.errors import Boundary, InfraError
from skill2env.grounding.faults import AssetFault, NotHad

_SLICE_SEC = 0.2
"""Longest time between two looks at the clock and at the wish to stop."""

type Connect = Callable[[str, int, float | None], httpcore.NetworkStream]
"""(host, port, longest silence in seconds) -> an open connection."""


@dataclass(frozen=True, slots=True)
class Watch:
    """When one download has to end."""

    address: str
    """What is downloaded, for messages."""
    end: float
    """By the monotonic clock, seconds."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set by whoever wants everything to end."""

    def left(self) -> float:
        """Seconds until the end.

        Raises:
            NotHad: with `AssetFault.SLOW`; the time is over.
            InfraError: boundary ``network``; somebody wants to stop.
        """
        if self.stop.is_set():
            raise InfraError(Boundary.NETWORK, f"the download of {self.address} was stopped")
        left = self.end - time.monotonic()
        if left <= 0:
            raise NotHad(AssetFault.SLOW, f"{self.address} takes longer than its time limit")
        return left

    def pause(self, seconds: float) -> None:
        """Wait, but not beyond the end.

        Raises:
            NotHad: as for `left`.
            InfraError: as for `left`.
        """
        self.stop.wait(min(seconds, self.left()))
        self.left()

    def apart(self, work: Callable[[], httpcore.NetworkStream]) -> httpcore.NetworkStream:
        """Do `work` on a thread of its own, and leave it behind when the time is over first.

        Raises:
            NotHad: as for `left`, or from `work`.
            InfraError: as for `left`, or from `work`.
        """
        found: Future[httpcore.NetworkStream] = Future()
        threading.Thread(target=_do, args=(work, found), name="download", daemon=True).start()
        try:
            while not found.done():
                wait([found], min(_SLICE_SEC, self.left()))
        except BaseException:
            if not found.cancel() and found.exception() is None:
                found.result().close()
            raise
        return found.result()


def _do(work: Callable[[], httpcore.NetworkStream], found: "Future[httpcore.NetworkStream]") -> None:
    try:
        stream = work()
    except BaseException as error:  # raised again by whoever waits
        with suppress(InvalidStateError):
            found.set_exception(error)
        return
    try:
        found.set_result(stream)
    except InvalidStateError:  # nobody waits any more
        stream.close()


class WatchedBackend(httpcore.NetworkBackend):
    """Opens watched connections."""

    def __init__(self, watch: Watch, connect: Connect) -> None:
        self._watch = watch
        self._connect = connect

    @override
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """See httpcore."""
        return _Stream(self._watch.apart(lambda: self._connect(host, port, timeout)), self._watch)


class _Stream(httpcore.NetworkStream):
    """A connection that waits in slices."""

    def __init__(self, inner: httpcore.NetworkStream, watch: Watch) -> None:
        self._inner = inner
        self._watch = watch

    @override
    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        silent_until = time.monotonic() + (timeout if timeout is not None else self._watch.left())
        while True:
            patience = max(0.01, silent_until - time.monotonic())
            try:
                return self._inner.read(max_bytes, min(_SLICE_SEC, self._watch.left(), patience))
            except httpcore.ReadTimeout:
                if time.monotonic() >= silent_until:
                    self._watch.left()
                    raise

    @override
    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        left = self._watch.left()
        self._inner.write(buffer, left if timeout is None else min(timeout, left))

    @override
    def close(self) -> None:
        self._inner.close()

    @override
    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        inner = self._inner
        return _Stream(
            self._watch.apart(lambda: inner.start_tls(ssl_context, server_hostname, timeout)), self._watch
        )

    @override
    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
