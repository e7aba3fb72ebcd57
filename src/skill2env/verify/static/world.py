"""What the agent is shown: the instruction, and the files that its image is made from."""

import bz2
import gzip
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from skill2env.verify.gate import Subject
from skill2env.verify.reading import decode, read_file, read_text, walk

FILE_LIMIT = 8 * 1024 * 1024
"""Longer files are not read, and count as opaque; bytes."""
TOTAL_LIMIT = 64 * 1024 * 1024
_MEMBER_LIMIT = 500


@dataclass(frozen=True, slots=True)
class Shown:
    """One text that the agent can read."""

    path: str
    """Of the task; a member of an archive behind ``!``."""
    text: str


@dataclass(frozen=True, slots=True)
class World:
    """Everything of the task that the agent can read."""

    instruction: str
    texts: tuple[Shown, ...]
    """Files of environment/, the Dockerfile among them, archives unpacked."""
    paths: tuple[str, ...]
    """Relative paths of the files of environment/."""
    opaque: tuple[str, ...] = field(default=())
    """Files that hold more than can be read here."""

    @property
    def everything(self) -> str:
        """Instruction, texts and paths as one text."""
        return "\n".join([self.instruction, self.data])

    @property
    def data(self) -> str:
        """Texts and paths, without the instruction."""
        return "\n".join([*(shown.text for shown in self.texts), *self.paths])


def world_of(subject: Subject) -> World:
    """Read the instruction of every step and the files of environment/."""
    root = subject.task_dir
    places = [root / "instruction.md", *sorted((root / "steps").glob("*/instruction.md"))]
    instruction = "\n".join(text for text in map(read_text, places) if text)
    texts: list[Shown] = []
    paths: list[str] = []
    opaque: list[str] = []
    total = 0
    for path, _ in walk(root / "environment"):
        data = read_file(root / "environment" / path, FILE_LIMIT)
        if data is None:
            if (root / "environment" / path).is_file():
                paths.append(path)
                opaque.append(path)
            continue
        paths.append(path)
        total += len(data)
        if total > TOTAL_LIMIT:
            opaque.append(path)
            continue
        shown = list(_texts(f"environment/{path}", data))
        texts += shown
        if not shown and data:
            opaque.append(path)
    return World(instruction, tuple(texts), tuple(paths), tuple(opaque))


def _texts(path: str, data: bytes, depth: int = 0) -> Iterator[Shown]:
    text = decode(data)
    if text is not None:
        if text:
            yield Shown(path, text)
        return
    for name, member in members(path, data) if depth < 2 else ():
        yield from _texts(f"{path}!{name}", member, depth + 1)
    if depth == 0 and data[:16] == b"SQLite format 3\0":
        yield Shown(path, data.decode("utf-8", errors="replace"))
    elif b"\0" not in data[:1024]:  # another encoding
        yield Shown(path, data.decode("latin-1"))


def members(path: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and content of what an archive or a compressed file holds; bounded, and nothing for other data."""
    try:
        if zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for item in archive.infolist()[:_MEMBER_LIMIT]:
                    if not item.is_dir() and item.file_size <= FILE_LIMIT:
                        yield item.filename, archive.read(item)
            return
        plain = _inflated(data)
        if plain is not None:
            name = PurePosixPath(path).stem
            try:
                yield from _tar(plain)
            except tarfile.TarError:
                yield name, plain
        elif data[257:262] == b"ustar":
            yield from _tar(data)
    except (
        OSError,
        EOFError,
        ValueError,
        RuntimeError,
        zlib.error,
        lzma.LZMAError,
        zipfile.BadZipFile,
        tarfile.TarError,
    ):
        return


def _tar(data: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for number, item in enumerate(archive):
            stream = archive.extractfile(item) if item.isfile() and item.size <= FILE_LIMIT else None
            if stream is not None:
                yield item.name, stream.read(FILE_LIMIT)
            if number >= _MEMBER_LIMIT:
                return


def _inflated(data: bytes) -> bytes | None:
    """At most `FILE_LIMIT` bytes of what gzip, bzip2 or xz hold; None for other data."""
    if data[:2] == b"\x1f\x8b":
        with gzip.open(io.BytesIO(data)) as stream:
            return stream.read(FILE_LIMIT)
    if data[:3] == b"BZh":
        return bz2.BZ2Decompressor().decompress(data, FILE_LIMIT)
    if data[:6] == b"\xfd7zXZ\0":
        return lzma.LZMADecompressor().decompress(data, FILE_LIMIT)
    return None


def words_of(text: str) -> set[str]:
    """Lower-case words and numbers of a text, those of names like ``first_last`` and ``firstLast`` one by one."""
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text)
    return {word.lower() for word in re.findall(r"[^\W_]+", split)}
