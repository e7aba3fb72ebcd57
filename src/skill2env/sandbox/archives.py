"""Archives on their way into an image: read on the host as data, never unpacked there, written anew as plain tar."""

import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

from skill2env.sandbox.context import CONTEXT_LIMIT_BYTES
from skill2env.sandbox.instructions import BuildFailed, NeedsDocker, Place

_ZSTANDARD = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of the members of an archive."""

    name: str = ""
    """New name of a single file; empty to keep names."""
    owner: tuple[int, int] | None = None
    """(uid, gid) of everything; None to keep the archive's own."""
    mode: int | None = None
    """Mode of everything; None to keep the archive's own."""


def repack(data: io.IOBase, change: Change, place: Place) -> bytes:
    """A plain tar of what an archive holds (plain, gzip, bzip2 or xz).

    Raises:
        BuildFailed: it is damaged, or holds more than `CONTEXT_LIMIT_BYTES`.
    """
    out, total = io.BytesIO(), 0
    try:
        with (
            tarfile.open(fileobj=data, mode="r|*") as source,  # pyright: ignore[reportArgumentType, reportCallIssue]
            tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as target,
        ):
            for member in source:
                total += member.size if member.isreg() else 512
                if total > CONTEXT_LIMIT_BYTES:
                    raise BuildFailed(str(place), f"more than {CONTEXT_LIMIT_BYTES} bytes are copied")
                if member.name in (".", "./", ""):
                    continue  # the folder itself, which is made anew where it goes
                _apply(member, change)
                target.addfile(member, source.extractfile(member) if member.isreg() else None)
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise BuildFailed(str(place), f"the archive is damaged: {error}") from error
    return out.getvalue()


def _apply(member: tarfile.TarInfo, change: Change) -> None:
    if change.name:
        member.name = change.name
    if change.owner is not None:
        member.uid, member.gid = change.owner
    member.uname = member.gname = ""
    if change.mode is not None and not member.issym():
        # A folder that nobody can enter helps nobody.
        member.mode = change.mode | (change.mode & 0o444) >> 2 if member.isdir() else change.mode


def is_archive(path: Path, place: Place) -> bool:
    """True for what ADD unpacks: a tar, alone or within gzip, bzip2 or xz.

    Raises:
        NeedsDocker: it is compressed in a way that engines know and Python does not.
    """
    with path.open("rb") as file:
        if file.read(4) == _ZSTANDARD:
            raise NeedsDocker(place, "ADD of a zstd archive", hint="COPY it and unpack it in a RUN.")
    try:
        with tarfile.open(path, mode="r:*") as archive:
            return archive.next() is not None
    except (tarfile.TarError, EOFError, OSError, ValueError):
        return False
