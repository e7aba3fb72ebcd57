"""Files in and out of a sandbox: the host's side of the stream that `guest_files` describes.

What comes out is read with suspicion: nothing is written outside the target, through links or over devices; sizes,
numbers and names are bounded. Links are kept only when asked for and only when they cannot lead out of the target.
"""

import errno
import os
import stat
from collections.abc import Generator, Iterator
from pathlib import Path

from skill2env.sandbox.guest_files import DEPTH_LIMIT, HEAD

CHUNK_BYTES = 1 << 16
MAX_ENTRIES = 200_000
MAX_NAME_BYTES = 4096
MAX_PART_BYTES = 255
"""Of a name between two slashes: what file systems take."""
LIMIT_BYTES = 1 << 30
"""Default for the sum of sizes that may come out in one transfer."""
_READABLE = 0o400
_USABLE = 0o700


class TransferRefused(RuntimeError):
    """What comes out of a sandbox breaks a rule or a limit. Whoever ran inside is to blame, not the machine."""


# ---------------------------------------------------------------------------------------------------- in


def record(kind: bytes, name: str, mode: int, mtime: int, size: int) -> bytes:
    """Head and name of one entry of a stream."""
    raw = os.fsencode(name)
    numbers = (mode & 0o777).to_bytes(4, "big") + mtime.to_bytes(8, "big") + size.to_bytes(8, "big")
    return kind + numbers + len(raw).to_bytes(2, "big") + raw


def _head(kind: bytes, name: str, status: os.stat_result | None, size: int) -> bytes:
    mode = stat.S_IMODE(status.st_mode) if status else 0
    return record(kind, name, mode, max(0, int(status.st_mtime)) if status else 0, size)


def _file(path: Path, name: str) -> Iterator[bytes]:
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return
        left = status.st_size
        yield _head(b"f", name, status, left)
        while left:
            piece = file.read(min(CHUNK_BYTES, left)) or bytes(min(CHUNK_BYTES, left))  # shrank meanwhile
            left -= len(piece)
            yield piece


def _folder(path: Path, inner: str) -> Iterator[bytes]:
    for entry in sorted(os.scandir(path), key=lambda entry: os.fsencode(entry.name)):
        name = f"{inner}{entry.name}"
        if entry.is_symlink():
            link = os.fsencode(Path(entry.path).readlink())
            yield _head(b"l", name, entry.stat(follow_symlinks=False), len(link)) + link
        elif entry.is_dir(follow_symlinks=False):
            yield _head(b"d", name, entry.stat(follow_symlinks=False), 0)
            yield from _folder(Path(entry.path), f"{name}/")
        elif entry.is_file(follow_symlinks=False):
            yield from _file(Path(entry.path), name)


def pack(source: Path) -> Iterator[bytes]:
    """Stream of a file or of the content of a folder: files, folders and links; modes without set-id bits.

    Raises:
        OSError: something cannot be read.
    """
    waiting, size = list[bytes](), 0
    for piece in _entries(source):
        waiting.append(piece)
        size += len(piece)
        if size >= CHUNK_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


def _entries(source: Path) -> Iterator[bytes]:
    if source.is_dir():
        yield _head(b"d", "", source.stat(), 0)
        yield from _folder(source, "")
    else:
        yield from _file(source, "")
    yield _head(b"z", "", None, 0)


# ---------------------------------------------------------------------------------------------------- out


def stays_inside(name: str, link: str) -> bool:
    """True when a link called `name` cannot lead out of the tree that holds it, whatever else the tree holds.

    Upward steps count from the link's own folder and are allowed only at the start: after a name, they could start
    from wherever another link leads.
    """
    parts = link.split("/")
    if link.startswith("/") or not link or len(link) > MAX_NAME_BYTES:
        return False
    up = 0
    while up < len(parts) and parts[up] == "..":
        up += 1
    return ".." not in parts[up:] and up <= name.count("/")


class Unpacker:
    """Writes a stream below `target` as it arrives; a context manager that closes what it holds open.

    Args:
        target: a folder's content goes into it, a single file becomes it.
        limit_bytes: sum of sizes at most.
        links: keep symbolic links that stay inside.
    """

    def __init__(self, target: Path, *, limit_bytes: int = LIMIT_BYTES, links: bool = False) -> None:
        self.finished = False
        """True when the end of the stream was read."""
        self._target = target
        self._left = limit_bytes
        self._limit = limit_bytes
        self._links = links
        self._entries = 0
        self._single = False
        """True after a single file, which nothing may follow."""
        self._buffer = bytearray()
        self._root = -1
        self._open: tuple[str, int] = ("", -1)
        self._parser = self._parse()
        next(self._parser)

    def __enter__(self) -> "Unpacker":
        return self

    def __exit__(self, *_: object) -> None:
        self._parser.close()
        for number in (self._open[1], self._root):
            if number >= 0:
                os.close(number)
        self._open, self._root = ("", -1), -1

    def feed(self, data: memoryview) -> None:
        """Take the next bytes.

        Raises:
            TransferRefused: they break a rule.
            OSError: the host cannot write.
        """
        if self.finished:
            return
        self._buffer += data
        next(self._parser, None)

    def _take(self, size: int) -> Generator[None, None, bytes]:
        while len(self._buffer) < size:
            yield
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _parse(self) -> Generator[None]:
        while True:
            head = yield from self._take(HEAD)
            kind = head[:1]
            mode, mtime, size = (int.from_bytes(head[a:b], "big") for a, b in ((1, 5), (5, 13), (13, 21)))
            name = os.fsdecode((yield from self._take(int.from_bytes(head[21:23], "big"))))
            self._entries += 1
            if kind == b"z":
                self.finished = True
                self._buffer.clear()
                return
            self._check(kind, name, size)
            if kind == b"d":
                self._make_folder(name, mode)
            elif kind == b"l":
                link = os.fsdecode((yield from self._take(size)))
                if self._links and name and stays_inside(name, link):
                    self._make_link(name, link)
            else:
                yield from self._make_file(name, mode, mtime, size)

    def _check(self, kind: bytes, name: str, size: int) -> None:
        if self._entries > MAX_ENTRIES:
            raise TransferRefused(f"more than {MAX_ENTRIES} files came out of the sandbox")
        if kind not in (b"d", b"f", b"l") or (kind == b"l" and size > MAX_NAME_BYTES):
            raise TransferRefused("a damaged stream of files came out of the sandbox")
        if self._single or (not name and self._entries > 1):
            raise TransferRefused("more than the one file that was asked for came out of the sandbox")
        self._single = not name and kind == b"f"
        parts = name.split("/") if name else []
        if len(name) > MAX_NAME_BYTES or len(parts) > DEPTH_LIMIT + 1 or "\0" in name:
            raise TransferRefused(f"a name that is too long or deep came out of the sandbox: {name[:100]!r}")
        if any(len(os.fsencode(part)) > MAX_PART_BYTES for part in parts):
            raise TransferRefused(f"a name that is too long came out of the sandbox: {name[:100]!r}")
        if any(part in ("", ".", "..") for part in parts):
            raise TransferRefused(f"a name that leads elsewhere came out of the sandbox: {name[:100]!r}")
        self._left -= size if kind == b"f" else 0
        if self._left < 0:
            raise TransferRefused(f"more than {self._limit // 2**20} MiB came out of the sandbox")

    def _folder_of(self, name: str) -> tuple[int, str]:
        """(open folder that holds an entry, the entry's last name); never walks through a link."""
        folder, _, last = name.rpartition("/")
        if self._root < 0:
            self._target.mkdir(parents=True, exist_ok=True)
            self._root = os.open(self._target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if not folder:
            return self._root, last
        if self._open[0] == folder and self._open[1] >= 0:
            return self._open[1], last
        number = os.dup(self._root)
        try:
            for part in folder.split("/"):
                inner = self._enter(number, part)
                os.close(number)
                number = inner
        except BaseException:
            os.close(number)
            raise
        if self._open[1] >= 0:
            os.close(self._open[1])
        self._open = (folder, number)
        return number, last

    @staticmethod
    def _enter(folder: int, name: str) -> int:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(name, flags, dir_fd=folder)
        except FileNotFoundError:
            os.mkdir(name, 0o755, dir_fd=folder)
            return os.open(name, flags, dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                raise TransferRefused(
                    f"a file came out of the sandbox below what is no folder: {name!r}"
                ) from error
            raise

    def _make_folder(self, name: str, mode: int) -> None:
        if not name:
            self._folder_of("any")
            return
        folder, last = self._folder_of(name)
        number = self._enter(folder, last)
        os.fchmod(number, mode & 0o777 | _USABLE)
        os.close(number)

    def _make_link(self, name: str, link: str) -> None:
        folder, last = self._folder_of(name)
        _clear(last, folder)
        os.symlink(link, last, dir_fd=folder)

    def _make_file(self, name: str, mode: int, mtime: int, size: int) -> Generator[None]:
        if name:
            folder, last = self._folder_of(name)
        else:
            self._target.parent.mkdir(parents=True, exist_ok=True)
            folder, last = (
                os.open(self._target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC),
                self._target.name,
            )
            self._root = folder
        _clear(last, folder)
        file = os.open(last, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            while size:
                while not self._buffer:
                    yield
                piece = self._buffer[:size]
                del self._buffer[: len(piece)]
                size -= len(piece)
                view = memoryview(piece)
                while view:
                    view = view[os.write(file, view) :]
            os.fchmod(file, mode & 0o777 | _READABLE)
            os.utime(file, (mtime & 0xFFFFFFFF, mtime & 0xFFFFFFFF))
        finally:
            os.close(file)


def _clear(name: str, folder: int) -> None:
    """Take an older file or link out of the way."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except IsADirectoryError as error:
        raise TransferRefused(f"a file came out of the sandbox where a folder is: {name!r}") from error
