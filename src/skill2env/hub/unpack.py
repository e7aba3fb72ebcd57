"""Archives into a fresh folder, by `safe_tree`; zip and tar, whatever they claim to be.

Covers: devices and hard links, encrypted and damaged archives, headers that are bombs. What becomes of names, links and
sizes is told in `safe_tree`.
"""

import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, cast

from skill2env.hub.safe_tree import CHUNK, FREE_BYTES, SafeTree, UnpackLimits
from skill2env.hub.tar_stream import HEADER_BYTES, BadArchive, TarStream
from skill2env.records import Diagnostic
from skill2env.store.files import storage

_MAX_GLOBAL_HEADERS = 1_000
_ZSTANDARD = b"\x28\xb5\x2f\xfd"


def unpack(archive: Path, root: Path, limits: UnpackLimits | None = None) -> tuple[Diagnostic, ...]:
    """Unpack a zip or tar file (plain, gzip, bzip2, xz) into an empty folder.

    Returns:
        What was refused, member by member.

    Raises:
        BadArchive: it is no archive, damaged, encrypted, or exceeds the limits.
        InfraError: boundary ``storage``.
    """
    with storage("reading", archive):
        packed = archive.stat().st_size
        with archive.open("rb") as file:
            head = file.read(4)
    if head == _ZSTANDARD:
        raise BadArchive(
            f"{archive.name} is packed with zstd, which is not read", hint="pack it as tar.xz or zip"
        )
    tree = SafeTree(root, limits, packed_bytes=packed)
    try:
        if head in (b"PK\x03\x04", b"PK\x05\x06"):
            _unpack_zip(archive, tree)
        else:
            _unpack_tar(archive, head, tree)
    except BadArchive as error:
        raise BadArchive(f"{archive.name} is refused: {error.message}", hint=error.hint) from None
    except _DAMAGE as error:
        raise BadArchive(
            f"{archive.name} is refused: no archive, or a damaged one ({error})",
            hint="fetch or pack it again",
        ) from None
    return tree.finish()


# What the readers raise on odd bytes; errors of the disk arrive as InfraError.
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, OSError,
           NotImplementedError, RuntimeError, OverflowError, MemoryError)  # fmt: skip


def _unpack_zip(path: Path, tree: SafeTree) -> None:
    with zipfile.ZipFile(path) as archive:
        for item in archive.infolist():
            mode = item.external_attr >> 16
            if item.is_dir():
                tree.member()
            elif item.flag_bits & 1:
                tree.member()
                tree.refuse(item.filename, "encrypted")
            elif stat.S_ISLNK(mode):
                with archive.open(item) as content:
                    tree.link(item.filename, content.read(4096).decode("utf-8", "replace"))
            elif stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                tree.member()
                tree.refuse(item.filename, "a device, pipe or socket")
            else:
                with archive.open(item) as content:
                    tree.file(item.filename, content, executable=bool(mode & stat.S_IXUSR))


def _unpack_tar(path: Path, head: bytes, tree: SafeTree) -> None:
    stream = TarStream(path, head, tree.passed)
    with closing(stream), tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r:") as archive:
        for item in _members(archive, stream):
            if item.isreg():
                content = archive.extractfile(item)
                assert content is not None  # it is a regular file
                tree.file(item.name, content, executable=bool(item.mode & stat.S_IXUSR))
            elif item.issym():
                tree.link(item.name, item.linkname)
            else:
                tree.member()
                if not item.isdir():
                    tree.refuse(item.name, "a hard link" if item.islnk() else "a device, pipe or socket")
        _check_rest(stream)


def _check_rest(stream: TarStream) -> None:
    """Read what follows the last member, because only at its end a compressed stream is compared with its checksum."""
    size = 0
    stream.expect_content()
    while piece := stream.read(CHUNK):
        size += len(piece)
        if size > FREE_BYTES:
            raise BadArchive("much follows its last member")


def _members(archive: tarfile.TarFile, stream: TarStream) -> Iterator[tarfile.TarInfo]:
    """One after the other, forgetting each, so that a million members need no memory."""
    while (item := archive.next()) is not None:
        archive.members = []  # pyright: ignore[reportAttributeAccessIssue]
        shared = archive.pax_headers
        if len(shared) > _MAX_GLOBAL_HEADERS or sum(map(len, shared.values())) > HEADER_BYTES:
            raise BadArchive("its global headers are too large")
        stream.expect_content()
        yield item
        stream.expect_header()
