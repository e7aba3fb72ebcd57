"""A zip or tar file, of this machine or at an address."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from skill2env.errors import UserError
from skill2env.hub.folder import Hub, resolved
from skill2env.hub.records import Fetched, SourceSpec
from skill2env.hub.sources.archive_file import check_pin, file_sha256, unpacked
from skill2env.hub.sources.base import Place
from skill2env.hub.sources.download import DIGEST_NAME, client, held, keep, not_held, save

_OF_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class ArchiveSource:
    """Unpacks an archive into the scratch folder."""

    hub: Hub
    spec: SourceSpec

    @property
    def path(self) -> Path:
        """The file."""
        return resolved(self.hub, self.spec.location)

    def state(self) -> str:
        """See `Source.state`."""
        if not self.path.is_file():
            raise UserError(
                f"source {self.spec.id}: {self.path} is no file", hint="mend its location in hub.toml"
            )
        return f"sha256:{file_sha256(self.path)}"

    def fetch(self, place: Place) -> Fetched:
        """See `Source.fetch`."""
        self.state()
        return unpacked(self.spec, self.path, place, revision="", origin="")


@dataclass(frozen=True, slots=True)
class RemoteArchiveSource:
    """Downloads an archive once, keeps it, and unpacks it into the scratch folder.

    Pinned by sha256, or by what the first download brought: what the address holds later is not asked for again.
    """

    hub: Hub
    spec: SourceSpec

    def state(self) -> str:
        """See `Source.state`. What was brought from an address stays what it was, so the address is its state."""
        self._check()
        return f"{self.spec.location}#{self.spec.sha256}"

    def fetch(self, place: Place) -> Fetched:
        """See `Source.fetch`."""
        self._check()
        archive = held(self._folder, self.spec.sha256)
        if archive is not None:
            return self._unpacked(archive, place)
        if place.offline:
            raise not_held(self.spec, self._name)
        target = place.scratch / "download"
        target.mkdir()
        place.tell(f"downloading {self._name}")
        with client(self.spec, self._name) as http:
            sha256 = save(http, self.spec.location, target / self._name, self.spec)
        check_pin(self.spec, sha256, self._name)
        # What cannot be unpacked is not kept: a login page or half a file would be in the way of the next try.
        fetched = self._unpacked(target / self._name, place)
        keep(target, self._folder, sha256)
        return fetched

    def _unpacked(self, archive: Path, place: Place) -> Fetched:
        return unpacked(self.spec, archive, place, revision="", origin=self.spec.location)

    @property
    def _folder(self) -> Path:
        key = hashlib.sha256(self.spec.location.encode()).hexdigest()[:32]
        return self.hub.downloads / "archive" / key

    @property
    def _name(self) -> str:
        last = unquote(urlsplit(self.spec.location).path.rpartition("/")[2])
        name = re.sub(r"[^A-Za-z0-9._+-]+", "_", last)[-100:].lstrip("._-")
        return name if name not in ("", DIGEST_NAME) else "archive"

    def _check(self) -> None:
        parts = urlsplit(self.spec.location)
        if parts.scheme != "https" and not self.spec.sha256 and parts.hostname not in _OF_THIS_MACHINE:
            raise UserError(
                f"source {self.spec.id}: an address without https needs the sha256 of the file",
                hint="give an https:// address, or --sha256",
            )


def is_remote(location: str) -> bool:
    """Whether an archive's location is an address and no path."""
    return location.startswith(("https://", "http://"))
