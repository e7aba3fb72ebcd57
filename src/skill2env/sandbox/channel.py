"""The host's end of the control socket: requests out, answers in. Everything that comes back is untrusted."""

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Sequence

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.streams import Pending

_PACKET_BYTES = 60_000
"""A larger request travels in a memory file; the init's own buffer is a little larger."""
_SEND_TIMEOUT_SEC = 10
_ANSWER_BYTES = 1 << 14


class Channel:
    """Talks to process 1. Safe to use from several threads."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        # A process 1 that an attacker inside took over must not make the host wait for ever.
        control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_TIMEOUT_SEC, 0))
        self._lock = threading.Lock()
        self._send_lock = threading.Lock()
        self._waiting: dict[int, Pending] = {}
        self._next = 0
        self._ready = threading.Event()
        self.ended = threading.Event()
        """Set when process 1 is gone."""
        self._listener = threading.Thread(target=self._listen, name="sandbox-control", daemon=True)
        self._listener.start()

    def wait_ready(self, timeout_sec: float) -> bool:
        """True when process 1 said that it serves, within the time."""
        return self._ready.wait(timeout_sec) and not self.ended.is_set()

    def request(
        self, operation: str, fields: Sequence[bytes], files: Sequence[int] = ()
    ) -> tuple[int, Pending]:
        """Send a request; its answer arrives in what is returned beside its number. Call `forget` afterwards.

        Raises:
            InfraError: the sandbox is not running.
        """
        pending = Pending()
        with self._lock:
            self._next += 1
            ident = self._next
            self._waiting[ident] = pending
        try:
            self._send(operation, ident, fields, files)
        except InfraError:
            self.forget(ident)
            raise
        if self.ended.is_set():
            pending.finish(error="the sandbox ended", ended=True)
        return ident, pending

    def forget(self, ident: int) -> None:
        """Stop waiting for an answer."""
        with self._lock:
            pending = self._waiting.pop(ident, None)
        if pending is not None:
            pending.close()

    def kill(self, ident: int) -> None:
        """Kill a running command with its descendants; without effect when it has ended."""
        with contextlib.suppress(InfraError):
            self._send("K", ident, (), ())

    def kill_all(self, *, forbid_writes: bool = False) -> None:
        """Kill everything but process 1.

        Args:
            forbid_writes: also let nothing inside write to files any more; what is there stays readable.
        """
        with contextlib.suppress(InfraError):
            self._send("F" if forbid_writes else "A", 0, (), ())

    def close(self) -> None:
        """Hang up, which ends the sandbox."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        self._listener.join(5)
        with self._send_lock:
            self._control.close()

    def _send(self, operation: str, ident: int, fields: Sequence[bytes], files: Sequence[int]) -> None:
        packet = b"\0".join([operation.encode(), b"%d" % ident, *fields])
        if self.ended.is_set():
            raise InfraError(Boundary.SANDBOX, "the sandbox is not running")
        with contextlib.ExitStack() as stack:
            if len(packet) > _PACKET_BYTES:
                memory = os.memfd_create("request", os.MFD_CLOEXEC)
                stack.callback(os.close, memory)
                with open(memory, "wb", closefd=False) as file:
                    file.write(packet)
                os.lseek(memory, 0, os.SEEK_SET)
                packet, files = b"M", [*files, memory]
            try:
                with self._send_lock:
                    socket.send_fds(self._control, [packet], list(files))
            except OSError as error:
                raise InfraError(Boundary.SANDBOX, f"cannot talk to the sandbox: {error}") from error

    def _listen(self) -> None:
        while True:
            try:
                packet = self._control.recv(_ANSWER_BYTES)
            except OSError:
                packet = b""
            if not packet:
                break
            if packet == b"ready":
                self._ready.set()
            else:
                self._deliver(packet)
        self.ended.set()
        self._ready.set()
        with self._lock:
            for pending in self._waiting.values():
                pending.finish(error="the sandbox ended", ended=True)

    def _deliver(self, packet: bytes) -> None:
        name, _, told = packet.partition(b" ")
        if not name.isdigit() or len(name) > 18:
            return
        with self._lock:
            pending = self._waiting.get(int(name))
            if pending is None:
                return
            if told.startswith(b"!"):
                pending.finish(error=told[1:].decode(errors="replace"))
            elif told.isdigit() and len(told) < 5:
                pending.finish(code=int(told) & 255)
