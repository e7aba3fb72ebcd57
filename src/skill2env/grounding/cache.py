"""Downloads kept by content: ``blobs/DIGEST``, and ``addresses/KEY.json`` which says what an address led to.

A damaged entry counts as none. Writers do not disturb each other: equal names have equal bytes.
"""

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from skill2env.grounding.download import Got
from skill2env.records import SHA256_PREFIX, Record, digest_bytes, digest_of
from skill2env.store.files import TEMPORARY_PREFIX, storage, write_json


class Kept(Record):
    """A file in the cache."""

    sha256: str
    size: int
    address: str
    """Where it was found, after redirects."""


@dataclass(frozen=True, slots=True)
class AssetCache:
    """One folder; made when first written to."""

    root: Path

    def find(self, url: str, revision: str, sha256: str = "") -> Kept | None:
        """What an address led to when it was downloaded; with a digest, also what has that digest from elsewhere."""
        entry = self._entry(url, revision)
        try:
            kept = Kept.model_validate_json(entry.read_bytes())
        except (OSError, ValidationError, ValueError):
            kept = None
        if kept is not None and self._is_whole(kept.sha256) and (not sha256 or kept.sha256 == sha256):
            return kept
        if sha256 and self._is_whole(sha256):
            return Kept(sha256=sha256, size=self.path(sha256).stat().st_size, address=url)
        return None

    def keep(self, url: str, revision: str, download: Callable[[BinaryIO], Got]) -> Kept:
        """Download and keep.

        Raises:
            NotHad: from `download`.
            InfraError: from `download`, or boundary ``storage``.
        """
        blobs = self.root / "blobs"
        with storage("making", blobs):
            blobs.mkdir(parents=True, exist_ok=True)
        with storage("writing below", blobs), _temporary(blobs) as stream:
            got = download(stream)
            stream.flush()
            part = Path(stream.name)
            part.chmod(0o644)
            part.replace(self.path(got.sha256))
        kept = Kept(sha256=got.sha256, size=got.size, address=got.address)
        with storage("writing below", self.root):
            self._entry(url, revision).parent.mkdir(exist_ok=True)
        write_json(self._entry(url, revision), json.loads(kept.model_dump_json()))
        return kept

    def path(self, sha256: str) -> Path:
        """Where the bytes of a digest lie."""
        return self.root / "blobs" / sha256.removeprefix(SHA256_PREFIX)

    def _entry(self, url: str, revision: str) -> Path:
        key = digest_of({"url": url, "revision": revision}).removeprefix(SHA256_PREFIX)
        return self.root / "addresses" / f"{key}.json"

    def _is_whole(self, sha256: str) -> bool:
        try:
            return digest_bytes(self.path(sha256).read_bytes()) == sha256
        except OSError:
            return False


class _temporary:  # noqa: N801  # reads as a function
    """A file that is gone when it was not moved away."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> BinaryIO:
        self._file = tempfile.NamedTemporaryFile(dir=self._folder, prefix=TEMPORARY_PREFIX, delete=False)
        return self._file  # pyright: ignore[reportReturnType]

    def __exit__(self, *_: object) -> None:
        self._file.close()
        Path(self._file.name).unlink(missing_ok=True)
