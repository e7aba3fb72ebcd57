"""What archives and compressed files hold, bounded, read in memory and never unpacked to a disk.

Covers: zip (and what is one inside: office documents, wheels), tar, gzip, bzip2 and xz; damaged, encrypted and enormous
members, each of which leaves the others readable. Does not cover: other formats, archives within archives (the caller
asks again).
"""

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

MEMBER_LIMIT_BYTES = 8 * 1024 * 1024
"""Longer members are not read."""
MEMBERS_LIMIT = 500
_PIECE = 1024
"""Bytes of damaged data that are unpacked at once, so that little is lost with the damage."""
_BROKEN = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,  # encrypted, and packed in a way that nobody here knows
    struct.error,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    tarfile.TarError,
)
_DAMAGED = "is damaged, encrypted, or packed in a way that cannot be read here"
_LARGE = f"has more than {MEMBER_LIMIT_BYTES:,} bytes"
_MANY = f"has more than {MEMBERS_LIMIT} members"


@dataclass(frozen=True, slots=True)
class Member:
    """One file in an archive, or what a compressed file holds."""

    name: str
    """Empty for the archive as a whole, when nothing more can be read from it."""
    data: bytes
    """As much as can be read."""
    problem: str = ""
    """Why there is more than `data`, as the end of a sentence; empty when that is all."""


def members(path: str, data: bytes) -> Iterator[Member]:
    """What an archive or a compressed file holds; nothing for other data.

    Args:
        path: of the file; names what a compressed file holds.
        data: the file.
    """
    if zipfile.is_zipfile(io.BytesIO(data)):
        yield from _zip(data)
        return
    for magic, opened in _COMPRESSED:
        if data.startswith(magic):
            plain, problem = _read_on(opened(io.BytesIO(data)))
            if _is_tar(plain):
                yield from _tar(plain, problem)
            else:
                yield Member(PurePosixPath(path).stem, plain, problem)
            return
    if _is_tar(data):
        yield from _tar(data, "")


def _zip(data: bytes) -> Iterator[Member]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            items = archive.infolist()
            for item in items[:MEMBERS_LIMIT]:
                if item.file_size > MEMBER_LIMIT_BYTES:
                    yield Member(item.filename, b"", _LARGE)
                elif item.file_size or not item.is_dir():
                    yield _zipped(archive, item, data)
            if len(items) > MEMBERS_LIMIT:
                yield Member("", b"", _MANY)
    except _BROKEN:
        yield Member("", b"", _DAMAGED)


def _zipped(archive: zipfile.ZipFile, item: zipfile.ZipInfo, data: bytes) -> Member:
    try:
        return Member(item.filename, archive.read(item))
    except _BROKEN:
        return Member(item.filename, _before_damage(item, data), _DAMAGED)


def _before_damage(item: zipfile.ZipInfo, data: bytes) -> bytes:
    """What a damaged member of a zip holds up to the damage; all of it when only its check sum is wrong."""
    try:
        named, more = struct.unpack_from("<HH", data, item.header_offset + 26)
    except struct.error:
        return b""
    start = item.header_offset + 30 + named + more
    raw = data[start : start + item.compress_size]
    if item.compress_type != zipfile.ZIP_DEFLATED:
        return raw[:MEMBER_LIMIT_BYTES]
    unpacker, found = zlib.decompressobj(-zlib.MAX_WBITS), bytearray()
    with suppress(zlib.error):
        for at in range(0, len(raw), _PIECE):
            found += unpacker.decompress(raw[at : at + _PIECE], MEMBER_LIMIT_BYTES)
            if len(found) > MEMBER_LIMIT_BYTES:
                break
    return bytes(found[:MEMBER_LIMIT_BYTES])


def _is_tar(data: bytes) -> bool:
    return data[257:262] == b"ustar"


def _tar(data: bytes, problem: str) -> Iterator[Member]:
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for number, item in enumerate(archive):
                if number >= MEMBERS_LIMIT:
                    problem = _MANY
                    break
                if item.isfile() and item.size > MEMBER_LIMIT_BYTES:
                    yield Member(item.name, b"", _LARGE)
                elif item.isfile() and (stream := archive.extractfile(item)) is not None:
                    yield Member(item.name, stream.read(MEMBER_LIMIT_BYTES))
    except _BROKEN:
        problem = _DAMAGED
    if problem:
        yield Member("", b"", problem)


def _read_on(stream: Any) -> tuple[bytes, str]:
    """At most `MEMBER_LIMIT_BYTES` of a compressed file up to its damage, and why there is more."""
    found = bytearray()
    try:
        with stream:
            while piece := stream.read1(_PIECE):
                found += piece
                if len(found) > MEMBER_LIMIT_BYTES:
                    return bytes(found[:MEMBER_LIMIT_BYTES]), _LARGE
    except _BROKEN:
        return bytes(found), _DAMAGED
    return bytes(found), ""


_COMPRESSED: tuple[tuple[bytes, Any], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ\0", lzma.open),
)
