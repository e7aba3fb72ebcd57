"""A fresh folder that takes files of strangers: every name is judged, every byte is counted, links come last.

Covers: absolute names, names that lead out, control characters and backslashes, links that lead out or would be written
through, duplicate names and names that differ only in letter case, bombs by number, size or ratio. One bad member costs
that member; what cannot be bounded costs the whole.
Does not cover: another process that changes the fresh folder meanwhile.
"""

import errno
import os
import posixpath
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from skill2env.authors.workspace import name_problem
from skill2env.hub.links import spelling_key, stays_inside
from skill2env.hub.tar_stream import BadArchive
from skill2env.records import Diagnostic, Severity
from skill2env.store.files import storage

CHUNK = 1 << 20
_MAX_PATH_BYTES = 1024
_MAX_DEPTH = 64
_MAX_TOLD = 200
_MAX_NAME_BYTES = 255
"""What Linux file systems take as one name."""
_MAX_LINKS = 20_000
_REFUSES = {
    errno.EEXIST,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.ENAMETOOLONG,
    errno.EINVAL,
    errno.EILSEQ,
    errno.ELOOP,
}
"""What a file system says about a name; anything else it says is about itself."""


@dataclass(frozen=True, slots=True)
class UnpackLimits:
    """Bounds of one archive or repository; more means that the whole of it is refused."""

    members: int = 400_000
    file_bytes: int = 256 * 2**20
    total_bytes: int = 4 * 2**30
    ratio: int = 400
    """Unpacked bytes per packed byte, beyond the first 64 MiB. Honest text packs to about a tenth."""


FREE_BYTES = 64 * 2**20
_MEMBER_BYTES = 2048
"""Headers and padding of a usual member of a tar file."""


class Readable(Protocol):
    """What is read of a member."""

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes; none at the end."""
        ...


class SafeTree:
    """Writes members below a fresh, private folder."""

    def __init__(self, root: Path, limits: UnpackLimits | None = None, *, packed_bytes: int = 0) -> None:
        """`root` must exist and be empty; `packed_bytes` bounds the ratio when positive."""
        self._root = str(root)
        self._place = Path(root)
        self._limits = limits or UnpackLimits()
        self._packed = packed_bytes
        self._folders = {""}
        self._seen: dict[str, str] = {}
        self._links: list[tuple[str, str]] = []
        self._members = 0
        self._bytes = 0
        self._passed = 0
        self._refused = 0
        self.found: list[Diagnostic] = []

    def refuse(self, name: str, why: str, code: str = "refused-member") -> None:
        """Note one member that is left out."""
        self._refused += 1
        if self._refused <= _MAX_TOLD:
            shown = name.encode("utf-8", "backslashreplace").decode()[:300]
            self.found.append(Diagnostic(code=code, severity=Severity.WARN, message=why, where=shown))

    def file(self, name: str, content: Readable, *, executable: bool = False) -> None:
        """Write one regular file; its size is what can really be read.

        Raises:
            BadArchive: the limits are reached.
            InfraError: boundary ``storage``.
        """
        path = self._accept(name)
        if not path or not self._enter(posixpath.dirname(path), name):
            return
        place = f"{self._root}/{path}"
        size = 0
        try:
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755 if executable else 0o644)
        except OSError as error:
            self._not_made(name, error)
            return
        with os.fdopen(handle, "wb", buffering=0) as out:
            # Reading may fail for the archive's sake and writing for the disk's, so only the second is "storage".
            while piece := content.read(CHUNK):
                size += len(piece)
                self._count(name, size, len(piece))
                with storage("unpacking", self._place):
                    out.write(piece)

    def link(self, name: str, target: str) -> None:
        """Remember a symbolic link; those that stay inside are made at the end, by `finish`."""
        path = self._accept(name)
        if not path:
            return
        if not target or not target.isprintable() or len(target.encode()) > _MAX_PATH_BYTES:
            self.refuse(name, "the link's target is empty, too long, or has odd characters")
        elif len(self._links) == _MAX_LINKS:
            self.refuse(name, f"more than {_MAX_LINKS:,} links")
        else:
            self._links.append((path, target))

    def finish(self) -> tuple[Diagnostic, ...]:
        """Make the links and return what was refused."""
        known = {spelling_key(path): target for path, target in self._links}
        for path, target in self._links:
            if not stays_inside(path, known):
                self.refuse(path, "the link leads out, or nowhere")
                continue
            # A folder of that name exists when other members were written below it: then the link is the odd one.
            if path in self._folders or not self._enter(posixpath.dirname(path), path):
                self.refuse(path, "files lie below the link's name")
                continue
            try:
                os.symlink(target, f"{self._root}/{path}")
            except OSError as error:
                self._not_made(path, error)
        if self._refused > _MAX_TOLD:
            more = f"{self._refused - _MAX_TOLD} more members were refused"
            self.found.append(Diagnostic(code="refused-member", severity=Severity.WARN, message=more))
        return tuple(self.found)

    def member(self) -> None:
        """Count a member, whatever becomes of it.

        Raises:
            BadArchive: there are too many.
        """
        self._members += 1
        if self._members > self._limits.members:
            raise BadArchive(f"it holds more than {self._limits.members:,} members")

    def passed(self, size: int) -> None:
        """Count bytes that had to be unpacked to come to the members, wanted or not; headers are among them.

        Raises:
            BadArchive: there are too many.
        """
        self._passed += size
        limits = self._limits
        if self._passed > limits.total_bytes + _MEMBER_BYTES * limits.members:
            raise BadArchive(f"it unpacks to more than {limits.total_bytes:,} bytes and their headers")
        self._check_ratio(self._passed)

    def _not_made(self, name: str, error: OSError) -> None:
        """Refuse one member for its name's sake, or pass on what is wrong with the disk."""
        if error.errno not in _REFUSES:
            with storage("unpacking", self._place):
                raise error
        self.refuse(name, f"it cannot be written: {error.strerror}")

    def _accept(self, name: str) -> str:
        """The member's path, or nothing when it is refused."""
        self.member()
        path = name
        while path.startswith("./"):
            path = path[2:].lstrip("/")
        if path.startswith("/"):
            self.refuse(name, "absolute name")
            return ""
        segments = path.split("/")
        if ".." in segments:
            self.refuse(name, "the name leads out")
            return ""
        problem = next((p for p in map(_segment_problem, segments) if p), "")
        if problem or len(segments) > _MAX_DEPTH or len(path.encode("utf-8", "replace")) > _MAX_PATH_BYTES:
            self.refuse(name, problem or "name too long or too deep")
            return ""
        key = spelling_key(path)
        twin = self._seen.get(key)
        if twin is not None:
            same = "the name occurs twice" if twin == path else f"differs from {twin} only in spelling"
            self.refuse(name, f"{same}; the first one is kept", "colliding-member")
            return ""
        self._seen[key] = path
        return path

    def _enter(self, folder: str, name: str) -> bool:
        if folder in self._folders:
            return True
        if not self._enter(posixpath.dirname(folder), name):
            return False
        try:
            os.mkdir(f"{self._root}/{folder}")
        except FileExistsError:  # a file of that name was written before
            self.refuse(name, "a file stands where its folder should be", "colliding-member")
            return False
        except OSError as error:
            self._not_made(name, error)
            return False
        self._folders.add(folder)
        return True

    def _count(self, name: str, size: int, piece: int) -> None:
        self._bytes += piece
        limits = self._limits
        if size > limits.file_bytes:
            raise BadArchive(f"{name!r} has more than {limits.file_bytes:,} bytes")
        if self._bytes > limits.total_bytes:
            raise BadArchive(f"it unpacks to more than {limits.total_bytes:,} bytes")
        self._check_ratio(self._bytes)

    def _check_ratio(self, size: int) -> None:
        if self._packed and size > FREE_BYTES and size > self._packed * self._limits.ratio:
            raise BadArchive(f"it unpacks to more than {self._limits.ratio} times its size: a bomb")


def _segment_problem(name: str) -> str:
    return name_problem(name) or ("name too long" if len(name.encode()) > _MAX_NAME_BYTES else "")
