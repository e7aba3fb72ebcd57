"""Bytes in and out of a sandbox: the pipes of one command, and tar archives read with suspicion."""

import io
import os
import selectors
import shutil
import stat
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Self

from skill2env.errors import Boundary, InfraError

CHUNK_BYTES = 1 << 16
DRAIN_SEC = 0.25
"""How long output is still read after the command ended while a background child keeps the pipe open."""
MAX_MEMBERS = 100_000


class Pending:
    """The answer that one command waits for; wakes a selector through a pipe."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.error: str | None = None
        self.ended = False
        self.done = threading.Event()
        self.wake_read, self._wake_write = os.pipe()
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
                os.write(self._wake_write, b"1")

    def close(self) -> None:
        """Release the wake-up pipe."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self.wake_read)
                os.close(self._wake_write)


class Pipes:
    """stdin, stdout and stderr of one command, host ends and guest ends."""

    def __init__(self, *, stdin: bytes | None, merge_stderr: bool, limit: int) -> None:
        self._limit = limit
        self._kept: dict[int, bytearray] = {}
        self.truncated = False
        self._pending: Pending | None = None
        self._input = memoryview(stdin or b"")
        self._stdin = -1
        out_read, out_write = os.pipe()
        err_read, err_write = (-1, out_write) if merge_stderr else os.pipe()
        if stdin:
            in_read, self._stdin = os.pipe()
            os.set_blocking(self._stdin, False)
        else:
            in_read = os.open(os.devnull, os.O_RDONLY)
        self._out, self._err = out_read, err_read
        self.guest_ends: tuple[int, ...] = (in_read, out_write, err_write)
        self._open = {out_read, err_read} - {-1}
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
        if self._pending is not None:
            self._pending.close()

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
        self._pending = pending
        end = None if timeout_sec is None else time.monotonic() + timeout_sec
        drain_end: float | None = None
        with selectors.DefaultSelector() as selector:
            for number in self._open:
                selector.register(number, selectors.EVENT_READ)
            if self._stdin >= 0:
                selector.register(self._stdin, selectors.EVENT_WRITE)
            if not pending.done.is_set():
                selector.register(pending.wake_read, selectors.EVENT_READ)
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
        if number == pending.wake_read:
            selector.unregister(number)
        elif number == self._stdin:
            self._feed(selector)
        else:
            try:
                data = os.read(number, CHUNK_BYTES)
            except BlockingIOError:
                return
            if data:
                kept = self._kept[number]
                room = self._limit - len(kept)
                kept += data[: max(0, room)]
                self.truncated = self.truncated or len(data) > room
            else:
                selector.unregister(number)
                os.close(number)
                self._open.discard(number)

    def _feed(self, selector: selectors.BaseSelector) -> None:
        try:
            self._input = self._input[os.write(self._stdin, self._input[:CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._input = memoryview(b"")
        if not self._input:
            selector.unregister(self._stdin)
            os.close(self._stdin)
            self._stdin = -1


def _members(source: Path) -> Iterator[tuple[Path, PurePosixPath]]:
    for path in sorted(source.rglob("*")):
        yield path, PurePosixPath(path.relative_to(source).as_posix())


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    status = path.lstat()
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) or stat.S_ISLNK(status.st_mode)):
        return
    info = archive.gettarinfo(path, arcname=name)
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mode &= 0o777
    if info.islnk():  # a second name of a file already packed: pack the content again
        info.type, info.size = tarfile.REGTYPE, status.st_size
    if info.isreg():
        with path.open("rb") as file:
            archive.addfile(info, file)
    else:
        archive.addfile(info)


def pack(source: Path, name: str = "") -> bytes:
    """Tar of a file (under `name`) or of the content of a folder: files, folders and links only, owned by root."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        if name:
            _add(archive, source, name)
        else:
            for path, inner in _members(source):
                _add(archive, path, str(inner))
    return buffer.getvalue()


def unpack(data: bytes, target: Path) -> None:
    """Unpack an archive that came out of a sandbox: regular files and folders only, nothing outside `target`.

    An archive of a single file named like ``./NAME`` is written to `target` itself when `target` is no folder.

    Raises:
        InfraError: the archive is damaged or has too many members.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            members = [m for _, m in zip(range(MAX_MEMBERS + 1), archive, strict=False)]
            if len(members) > MAX_MEMBERS:
                raise InfraError(
                    Boundary.SANDBOX,
                    f"more than {MAX_MEMBERS} files came out of the sandbox",
                    transient=False,
                )
            single = len(members) == 1 and members[0].isreg() and members[0].name not in (".", "./")
            if single and not target.is_dir():
                _write(archive, members[0], target)
                return
            target.mkdir(parents=True, exist_ok=True)
            for member in members:
                inner = PurePosixPath(member.name)
                if inner.is_absolute() or ".." in inner.parts or "\0" in member.name:
                    continue
                if member.isdir():
                    target.joinpath(*inner.parts).mkdir(parents=True, exist_ok=True)
                elif member.isreg():
                    _write(archive, member, target.joinpath(*inner.parts))
    except tarfile.TarError as error:
        raise InfraError(Boundary.SANDBOX, f"a damaged archive came out of the sandbox: {error}") from error


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    source = archive.extractfile(member)
    if source is None:
        return
    if path.is_symlink() or path.is_file():
        path.unlink()
    with path.open("wb") as file:
        shutil.copyfileobj(source, file)
    path.chmod(0o755 if member.mode & 0o100 else 0o644)
