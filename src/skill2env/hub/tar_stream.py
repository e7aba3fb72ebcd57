"""A tar file's bytes, unpacked on the way: every one is counted, whether somebody wanted it or not.

`tarfile` reads what headers announce in one piece, and passes over payloads uncounted. Both are bounded here, before
memory or hours are spent.
"""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from skill2env.errors import UserError

_CHUNK = 1 << 20
HEADER_BYTES = 4 * 2**20
"""The most that the headers of one member may take; the longest honest names and attributes have some kilobytes."""
_XZ_MEMORY_BYTES = 256 * 2**20
"""What unpacking xz may use; `xz -9` needs 65 MiB, and a forged head could ask for 4 GiB."""


class BadArchive(UserError):
    """The whole archive is refused: damaged, encrypted, or without bounds."""


class _Bytes(Protocol):
    def read(self, size: int, /) -> bytes: ...
    def close(self) -> None: ...


class TarStream:
    """What `tarfile` reads from; goes forward only."""

    def __init__(self, path: Path, head: bytes, count: Callable[[int], None]) -> None:
        """`head` are the first bytes of `path`; `count` is told of every piece and may raise `BadArchive`."""
        self._inner = _opened(path, head)
        self._count = count
        self._at = 0
        self._header_left = HEADER_BYTES
        self._in_header = True

    def expect_header(self) -> None:
        """The next bytes are headers, of one member."""
        self._header_left, self._in_header = HEADER_BYTES, True

    def expect_content(self) -> None:
        """The next bytes are a member's content."""
        self._in_header = False

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes, less only at the end."""
        if self._in_header:
            self._header_left -= size
            if size < 0 or self._header_left < 0:
                raise BadArchive(f"a header has more than {HEADER_BYTES:,} bytes")
        pieces: list[bytes] = []
        left = size if size >= 0 else _CHUNK
        while left and (piece := self._inner.read(min(left, _CHUNK))):
            self._at += len(piece)
            self._count(len(piece))
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def tell(self) -> int:
        """Bytes passed so far."""
        return self._at

    def seek(self, position: int, whence: int = 0) -> int:
        """Pass over everything up to `position`."""
        if whence or position < self._at:
            raise ValueError("it leads back")
        while self._at < position:
            piece = self._inner.read(min(position - self._at, _CHUNK))
            if not piece:
                break
            self._at += len(piece)
            self._count(len(piece))
        return self._at

    def seekable(self) -> bool:
        """It can pass over bytes."""
        return True

    def close(self) -> None:
        """Close the file."""
        self._inner.close()


def _opened(path: Path, head: bytes) -> _Bytes:
    if head.startswith(b"\x1f\x8b"):
        return gzip.open(path, "rb")
    if head.startswith(b"BZh"):
        return bz2.open(path, "rb")
    if head.startswith((b"\xfd7zX", b"\x5d\x00\x00")):
        return _Xz(path)
    return cast("_Bytes", path.open("rb"))


class _Xz:
    """As `lzma.LZMAFile`, with a bound on memory, which that one lacks."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("rb")
        self._make: Callable[[], lzma.LZMADecompressor] = lambda: lzma.LZMADecompressor(
            lzma.FORMAT_AUTO, memlimit=_XZ_MEMORY_BYTES
        )
        self._unpacker = self._make()

    def read(self, size: int, /) -> bytes:
        while True:
            packed = b""
            if self._unpacker.eof:
                packed = (self._unpacker.unused_data or self._file.read(_CHUNK)).lstrip(b"\0")
                while not packed:  # streams may be padded
                    more = self._file.read(_CHUNK)
                    if not more:
                        return b""
                    packed = more.lstrip(b"\0")
                self._unpacker = self._make()
            elif self._unpacker.needs_input:
                packed = self._file.read(_CHUNK)
                if not packed:
                    raise EOFError("it ends too early")
            if data := self._unpacker.decompress(packed, size):
                return data

    def close(self) -> None:
        self._file.close()
