"""Files in and out of a container of an engine, as tar streams that the container's own tar makes and reads.

What comes out passes the same checks as with the namespace sandbox (`transfer.Unpacker`): only files, folders and
links that stay inside, with limits on sizes, numbers and names, whatever the tar inside sends.
"""

import io
import os
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from skill2env.sandbox import transfer

NOT_FOUND = 44
"""Exit code of `SEND` when there is nothing at the path."""
_OVERHEAD_BYTES = 2048
_IN_MEMORY_BYTES = 4 * 2**20

# $1 is the folder that receives, $2 empty for a folder or the name of a single file that must not be a folder.
RECEIVE = r"""
[ -d "$1" ] || mkdir -p -- "$1" || exit 1
[ -z "$2" ] || [ ! -d "$1/$2" ] || [ -L "$1/$2" ] || rm -rf -- "$1/$2"
exec tar -xpf - -C "$1"
"""
# Hard links come as files of their own; only GNU tar has to be told.
SEND = r"""
case $(tar --version 2>/dev/null) in *GNU*) more=--hard-dereference ;; *) more= ;; esac
if [ -d "$1" ]; then exec tar $more -cf - -C "$1" .
elif [ -f "$1" ]; then
  folder=${1%/*}; exec tar $more -chf - -C "${folder:-/}" "./${1##*/}"
else exit 44; fi
"""


# ---------------------------------------------------------------------------------------------------- in


class _Chunks(io.RawIOBase):
    """Collects what tarfile writes, until somebody takes it."""

    def __init__(self) -> None:
        self.waiting = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        view = memoryview(data)  # pyright: ignore[reportArgumentType]
        self.waiting += view
        return view.nbytes

    def tell(self) -> int:
        return 0

    def take(self) -> bytes:
        """Everything since the last call."""
        data = bytes(self.waiting)
        self.waiting.clear()
        return data


def pack(source: Path, *, name: str = "", owner: str | None = None) -> Iterator[bytes]:
    """Tar stream of a file under a name, or of the content of a folder: files, folders and links.

    Args:
        source: a regular file or a folder of the host.
        name: of the single file in the archive; unused for a folder.
        owner: user name for everything; root when None.

    Raises:
        OSError: something cannot be read.
    """
    target = _Chunks()
    with tarfile.open(
        fileobj=cast("BinaryIO", target),
        mode="w",
        format=tarfile.GNU_FORMAT,
        encoding="utf-8",
        errors="surrogateescape",
        dereference=not source.is_dir(),
    ) as tar:
        for path, inner in _walk(source, name):
            yield from _add(tar, target, path, inner, owner or "root")
    yield target.take()


def _walk(source: Path, name: str) -> Iterator[tuple[Path, str]]:
    if not source.is_dir():
        yield source, name
        return
    waiting = [(source, "")]
    while waiting:
        folder, inner = waiting.pop()
        for entry in sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name)):
            yield Path(entry.path), f"{inner}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                waiting.append((Path(entry.path), f"{inner}{entry.name}/"))


def _add(tar: tarfile.TarFile, target: _Chunks, path: Path, name: str, owner: str) -> Iterator[bytes]:
    info = tar.gettarinfo(path, name)
    # A file of a single transfer may be reached through a link; links inside a folder are copied as links.
    if info is None or not (  # pyright: ignore[reportUnnecessaryComparison]
        info.isreg() or info.isdir() or info.issym() or info.islnk()
    ):
        return
    info.uid = info.gid = 0
    info.uname, info.gname = owner, ""
    info.mode &= 0o777
    info.mtime = max(0, int(info.mtime))
    if info.issym() or info.isdir():
        tar.addfile(info)
        yield target.take()
        return
    with path.open("rb") as file:
        info.type, info.linkname, info.size = tarfile.REGTYPE, "", os.fstat(file.fileno()).st_size
        tar.addfile(info)
        yield target.take()
        left = info.size
        while left:
            piece = file.read(min(transfer.CHUNK_BYTES, left)) or bytes(min(transfer.CHUNK_BYTES, left))
            left -= len(piece)
            yield piece
        tar.offset += info.size
        if info.size % tarfile.BLOCKSIZE:
            rest = tarfile.BLOCKSIZE - info.size % tarfile.BLOCKSIZE
            tar.offset += rest
            yield bytes(rest)


# ---------------------------------------------------------------------------------------------------- out


class Download:
    """Takes a tar stream, then writes what it holds below a target; a context manager.

    Args:
        limit_bytes: sum of sizes at most.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._size = 0
        # A spool, because tarfile pulls while the bytes arrive in pieces.
        self._spool = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES, prefix="skill2env-out-")  # noqa: SIM115

    def __enter__(self) -> "Download":
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def feed(self, data: memoryview) -> None:
        """Take the next bytes.

        Raises:
            TransferRefused: more than the limit can need.
            OSError: the host's disk is full.
        """
        self._size += len(data)
        if self._size > self._limit + transfer.MAX_ENTRIES * _OVERHEAD_BYTES:
            raise transfer.TransferRefused(f"more than {self._limit // 2**20} MiB came out of the container")
        self._spool.write(data)

    def write(self, target: Path, *, links: bool) -> None:
        """Unpack it: a folder's content when its first entry is the folder itself, else one file.

        Args:
            target: a folder, or the name of the single file.
            links: keep symbolic links that stay inside.

        Raises:
            TransferRefused: it breaks a rule.
            OSError: the host cannot write.
        """
        self._spool.seek(0)
        with transfer.Unpacker(target, limit_bytes=self._limit, links=links) as unpacker:
            try:
                with tarfile.open(
                    fileobj=cast("BinaryIO", self._spool),
                    mode="r|",
                    encoding="utf-8",
                    errors="surrogateescape",
                ) as tar:
                    first = tar.next()
                    if first is not None and first.isdir():
                        unpacker.feed(memoryview(transfer.record(b"d", "", 0o755, 0, 0)))
                        for member in tar:
                            name = member.name.removeprefix("./").rstrip("/")
                            if name not in ("", "."):
                                _hand_on(tar, member, unpacker, name)
                    elif first is not None and first.isreg():
                        _hand_on(tar, first, unpacker, "")
                    else:
                        raise transfer.TransferRefused(
                            "neither a file nor a folder came out of the container"
                        )
            except (tarfile.TarError, UnicodeError, ValueError, EOFError) as error:
                raise transfer.TransferRefused(
                    f"a damaged archive came out of the container: {error}"
                ) from error


def _hand_on(tar: tarfile.TarFile, member: tarfile.TarInfo, unpacker: transfer.Unpacker, name: str) -> None:
    mtime = max(0, int(member.mtime))
    if member.isdir():
        unpacker.feed(memoryview(transfer.record(b"d", name, member.mode, mtime, 0)))
    elif member.issym():
        link = os.fsencode(member.linkname)
        if link:
            unpacker.feed(memoryview(transfer.record(b"l", name, member.mode, mtime, len(link)) + link))
    elif member.isreg():
        file = tar.extractfile(member)
        assert file is not None
        unpacker.feed(memoryview(transfer.record(b"f", name, member.mode, mtime, member.size)))
        left = member.size
        while left:
            piece = file.read(min(transfer.CHUNK_BYTES, left))
            if not piece:
                raise transfer.TransferRefused("a damaged archive came out of the container: it is cut short")
            left -= len(piece)
            unpacker.feed(memoryview(piece))


def split(target: str) -> tuple[str, str]:
    """(folder, name) of an absolute path inside."""
    folder, _, name = target.rstrip("/").rpartition("/")
    return folder or "/", name
