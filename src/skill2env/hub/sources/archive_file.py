"""A zip or tar file as it lies there: digest, pin, unpacking. What all kinds of archives have in common."""

import hashlib
from pathlib import Path

from skill2env.errors import UserError
from skill2env.hub.records import Fetched, SourceSpec
from skill2env.hub.sources.base import Place
from skill2env.hub.tar_stream import BadArchive
from skill2env.hub.unpack import unpack
from skill2env.store.files import storage


def file_sha256(path: Path) -> str:
    """Digest of a file as hex.

    Raises:
        InfraError: boundary ``storage``.
    """
    with storage("reading", path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_pin(spec: SourceSpec, found: str, what: str) -> None:
    """Refuse a file that is not the pinned one.

    Raises:
        UserError: both digests are in the message.
    """
    if spec.sha256 and found != spec.sha256:
        raise UserError(
            f"source {spec.id}: {what} has sha256 {found}, not the pinned {spec.sha256}",
            hint="find out why it changed; to accept it, change sha256 in hub.toml",
        )


def unpacked(spec: SourceSpec, archive: Path, place: Place, *, revision: str, origin: str) -> Fetched:
    """Unpack an archive that was checked.

    Raises:
        UserError: it is refused; the message names the source.
        InfraError: boundary ``storage``.
    """
    root = place.scratch / "tree"
    root.mkdir()
    sha256 = file_sha256(archive)
    check_pin(spec, sha256, archive.name)
    place.tell(f"unpacking {archive.name}")
    try:
        found = unpack(archive, root)
    except BadArchive as error:
        raise UserError(f"source {spec.id}: {error.message}", hint=error.hint) from None
    return Fetched(root.resolve(), revision or f"sha256:{sha256}", origin, sha256, found)
