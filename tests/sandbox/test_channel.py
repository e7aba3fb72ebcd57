"""The host's end of the control socket against a process 1 that lies."""

import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from skill2env.errors import InfraError
from skill2env.sandbox.channel import Channel


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket]]:
    host, guest = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel = Channel(host)
    yield channel, guest
    guest.close()
    channel.close()


def answered(channel: Channel, guest: socket.socket, *packets: bytes) -> tuple[int | None, str | None]:
    ident, pending = channel.request("E", [b"x"])
    assert guest.recv(1 << 16) == b"E\0%d\0x" % ident
    for packet in packets:
        guest.send(packet.replace(b"ID", b"%d" % ident))
    guest.send(b"%d 7" % ident)
    assert pending.done.wait(5)
    channel.forget(ident)
    return pending.code, pending.error


@pytest.mark.parametrize(
    "lie",
    [
        b"nonsense",
        b"999 3",
        b"-1 3",
        b"ID",
        b"ID ",
        b"ID x",
        b"ID -3",
        b"ID 99999",
        b"1e3 5",
        b"\xff\xfe \xff",
        b"9" * 30 + b" 1",
        b"ready" * 3,
        "\u0661 1".encode(),
        b"x" * 16000,
    ],
)
def test_nonsense_is_ignored(ends: tuple[Channel, socket.socket], lie: bytes) -> None:
    assert answered(*ends, lie) == (7, None)


def test_the_first_answer_counts(ends: tuple[Channel, socket.socket]) -> None:
    assert answered(*ends, b"ID 3", b"ID !later", b"ID 4") == (3, None)
    assert answered(*ends, b"ID 0300")[0] == 300 & 255
    assert answered(*ends, b"ID !\xffbroken") == (None, "\ufffdbroken")


def test_a_flood_of_answers(ends: tuple[Channel, socket.socket]) -> None:
    channel, guest = ends
    stop = threading.Event()

    def flood() -> None:
        while not stop.is_set():
            guest.send(b"12345 6")

    threads = [threading.Thread(target=flood) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        assert answered(channel, guest) == (7, None)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_one_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skill2env.sandbox.channel._SEND_TIMEOUT_SEC", 1)
    host, guest = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel = Channel(host)
    began = time.monotonic()

    def ask_for_ever() -> None:
        while True:
            channel.request("E", [b"x" * 50_000])

    with pytest.raises(InfraError, match="cannot talk"):
        ask_for_ever()
    assert time.monotonic() - began < 5
    guest.close()
    channel.close()


def test_the_end_reaches_everybody(ends: tuple[Channel, socket.socket]) -> None:
    channel, guest = ends
    waiting = [channel.request("E", [b"x"])[1] for _ in range(3)]
    guest.shutdown(socket.SHUT_RDWR)
    for pending in waiting:
        assert pending.done.wait(5)
        assert pending.ended
    with pytest.raises(InfraError, match="not running"):
        channel.request("E", [b"x"])
    assert not channel.wait_ready(1)


def test_long_requests_travel_in_memory(ends: tuple[Channel, socket.socket]) -> None:
    channel, guest = ends
    reader, writer = os.pipe()
    ident, _ = channel.request("E", [b"x" * 1_000_000], [reader])
    packet, files, _, _ = socket.recv_fds(guest, 1 << 16, 5)
    assert (packet, len(files)) == (b"M", 2)
    with open(files[1], "rb") as memory:  # noqa: PTH123 (a descriptor)
        assert memory.read() == b"E\0%d\0" % ident + b"x" * 1_000_000
    for number in (files[0], reader, writer):
        os.close(number)
    channel.forget(ident)
