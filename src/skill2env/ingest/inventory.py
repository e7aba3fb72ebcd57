"""The files of a skill: sizes, digests and kinds, within limits, and without ever following a link out of the folder.

Covers: links that escape, loop or dangle, devices, sockets and pipes (never opened), names that cannot be stored
portably, folders and files beyond the limits, files that cannot be read. Every file is read once, in pieces.
Does not cover: a writer that changes the folder meanwhile; a bundle is at rest.
"""

import codecs
import hashlib
import os
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from skill2env.authors.workspace import name_problem
from skill2env.ingest.file_signs import Signs, is_leftover
from skill2env.ingest.limits import IngestLimits
from skill2env.ingest.links import follow
from skill2env.ingest.quirks import note
from skill2env.ingest.text import decode
from skill2env.records import SHA256_PREFIX, Diagnostic, FileKind, SkillFile, digest_bytes, digest_of

_CHUNK_BYTES = 1 << 20
_MAX_PATH_BYTES = 4096
_MANY_FILES = 100
_MANY_BYTES = 5 * 10**6


@dataclass(slots=True)
class Inventory:
    """What a folder holds."""

    files: tuple[SkillFile, ...] = ()
    """Sorted by path; refused entries included."""
    texts: dict[str, str] = field(default_factory=dict[str, str])
    """Path -> content of the text files that are small enough to be searched."""
    found: list[Diagnostic] = field(default_factory=list[Diagnostic])

    @property
    def digest(self) -> str:
        """Identity of the bundle: see `bundle_digest`."""
        return bundle_digest(self.files)


def bundle_digest(files: tuple[SkillFile, ...]) -> str:
    """Digest over path, kind (file or link) and content digest of everything that was taken, sorted by path.

    Equal on every machine: it depends neither on where the folder lies nor on times, owners or modes. The executable
    bit is left out, because wheels, zip files and Windows checkouts lose it and the same skill must keep its
    identity on the way through them. Paths are compared in Unicode's composed form, which macOS does not keep.
    Refused entries are not part of the bundle and so not of its identity.
    """
    taken = [item for item in files if item.kind is not FileKind.REFUSED]
    lines = [
        [
            unicodedata.normalize("NFC", item.path),
            "link" if item.kind is FileKind.SYMLINK else "file",
            item.sha256,
        ]
        for item in taken
    ]
    return digest_of(sorted(lines))


def take_inventory(root: Path, entry: str, limits: IngestLimits) -> Inventory:
    """List a skill's folder.

    Args:
        root: the folder, free of links.
        entry: name of the entry file; counted first, so that no limit can push it out.
        limits: sizes, counts and depth.
    """
    return _Taker(root, entry, limits).run()


class _Taker:
    """One walk: keeps the counters and the signs."""

    def __init__(self, root: Path, entry: str, limits: IngestLimits) -> None:
        self._root = root
        self._entry = entry
        self._limits = limits
        self._files: list[SkillFile] = []
        self._result = Inventory()
        self._signs = Signs()
        self._bytes = 0
        self._scanned = 0
        self._folders = 0
        self._full = False

    def run(self) -> Inventory:
        self._take(self._entry)
        for path in self._walk("", 0):
            if path == self._entry:
                continue
            if len(self._files) >= self._limits.files:
                self._full = True
                break
            self._take(path)
        if self._full:
            self._result.found.append(note("over-limit", f"more than {self._limits.files} files or folders"))
        self._files.sort(key=lambda item: item.path)
        self._result.files = tuple(self._files)
        self._summarise()
        return self._result

    def _walk(self, inside: str, depth: int) -> Iterator[str]:
        """Paths of everything but folders, sorted within each folder."""
        try:
            with os.scandir(self._root / inside) as listed:
                entries = sorted(listed, key=lambda item: os.fsencode(item.name))
        except OSError as error:
            self._result.found.append(note("unreadable", error.strerror or "", inside or "."))
            return
        for entry in entries:
            path = f"{inside}/{entry.name}" if inside else entry.name
            folder = entry.is_dir(follow_symlinks=False)
            if is_leftover(entry.name, folder=folder):
                self._signs.add("build-leftover", path)
            elif not folder:
                yield path
            elif depth >= self._limits.depth:
                self._result.found.append(
                    note("over-limit", f"folders deeper than {self._limits.depth}", path)
                )
            else:
                self._folders += 1
                if self._folders > self._limits.folders:
                    self._full = True
                    return
                yield from self._walk(path, depth + 1)

    def _take(self, path: str) -> None:
        problem = next((p for p in map(name_problem, path.split("/")) if p), "")
        if problem or len(os.fsencode(path)) > _MAX_PATH_BYTES:
            shown = os.fsencode(path).decode("utf-8", "backslashreplace")
            self._result.found.append(note("refused-file-name", problem or "path too long", shown[:300]))
            self._refuse(shown)
            return
        try:
            status = (self._root / path).lstat()
            if stat.S_ISLNK(status.st_mode):
                self._link(path)
            elif not stat.S_ISREG(status.st_mode):
                self._signs.add("special-file", path)
                self._refuse(path)
            else:
                self._file(path, status)
        except OSError as error:
            self._result.found.append(note("unreadable", error.strerror or "", path))
            self._refuse(path)

    def _refuse(self, path: str, size: int = 0) -> None:
        self._files.append(SkillFile(path=path, kind=FileKind.REFUSED, size=size, sha256=""))

    def _link(self, path: str) -> None:
        link = follow(self._root, path)
        self._signs.add(link.code, path)
        kind = FileKind.SYMLINK if link.inside else FileKind.REFUSED
        sha256 = digest_bytes(os.fsencode(link.target)) if link.inside else ""
        shown = os.fsencode(link.target).decode("utf-8", "backslashreplace")
        self._files.append(SkillFile(path=path, kind=kind, size=0, sha256=sha256, target=shown))

    def _file(self, path: str, status: os.stat_result) -> None:
        size = status.st_size
        if size > self._limits.file_bytes or self._bytes + size > self._limits.total_bytes:
            self._signs.add("over-limit", path)
            self._refuse(path, size)
            return
        keep = size <= self._limits.scanned_file_bytes and (
            path == self._entry or self._scanned + size <= self._limits.scanned_total_bytes
        )
        read = _read(self._root / path, self._limits.file_bytes, keep=keep)
        self._bytes += read.size
        executable = bool(status.st_mode & stat.S_IXUSR)
        self._signs.look(path, read.head, text=read.text, executable=executable)
        if read.text and keep and path != self._entry:
            self._scanned += read.size
            self._result.texts[path] = decode(read.data).text
        self._files.append(
            SkillFile(
                path=path,
                kind=FileKind.TEXT if read.text else FileKind.BINARY,
                size=read.size,
                sha256=read.sha256,
                executable=executable,
            )
        )

    def _summarise(self) -> None:
        self._result.found += self._signs.diagnostics()
        if self._bytes > _MANY_BYTES or len(self._files) > _MANY_FILES:
            self._result.found.append(note("huge-folder", f"{len(self._files)} files, {self._bytes:,} bytes"))
        seen: dict[str, str] = {}
        for item in self._files:
            twin = seen.setdefault(unicodedata.normalize("NFC", item.path).casefold(), item.path)
            if twin != item.path:
                self._result.found.append(note("colliding-file-names", f"{twin} and {item.path}", item.path))


@dataclass(frozen=True, slots=True)
class _Read:
    head: bytes
    data: bytes
    """The whole content when it was to be kept, else empty."""
    size: int
    sha256: str
    text: bool


def _read(path: Path, limit: int, *, keep: bool) -> _Read:
    """Read a regular file in pieces; opens neither a link nor a pipe that took its place.

    Raises:
        OSError: it cannot be read, is no regular file any more, or has grown beyond the limit.
    """
    digest = hashlib.sha256()
    decoder: codecs.IncrementalDecoder | None = codecs.getincrementaldecoder("utf-8")()
    head, kept, size = b"", bytearray(), 0
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(0, "changed while it was read")
        while piece := file.read(_CHUNK_BYTES):
            head = head or piece[:512]
            size += len(piece)
            if size > limit:
                raise OSError(0, "grew while it was read")
            digest.update(piece)
            if keep:
                kept += piece
            if decoder is not None and (b"\0" in piece or not _decodes(decoder, piece)):
                decoder = None
    text = decoder is not None and _decodes(decoder, b"", final=True)
    return _Read(head, bytes(kept), size, SHA256_PREFIX + digest.hexdigest(), text)


def _decodes(decoder: codecs.IncrementalDecoder, piece: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(piece, final)
    except UnicodeDecodeError:
        return False
    return True
