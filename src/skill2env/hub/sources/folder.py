"""A folder of this machine."""

from dataclasses import dataclass
from pathlib import Path

from skill2env.errors import UserError
from skill2env.hub.folder import Hub, resolved
from skill2env.hub.records import Fetched, SourceSpec
from skill2env.hub.sources.base import Place
from skill2env.hub.tree import folder_state


@dataclass(frozen=True, slots=True)
class FolderSource:
    """Reads a folder where it is. What lies around it counts as its surroundings, as for `skill2env skill show`."""

    hub: Hub
    spec: SourceSpec

    @property
    def root(self) -> Path:
        """The folder, free of links."""
        return resolved(self.hub, self.spec.location).resolve()

    def state(self) -> str:
        """See `Source.state`."""
        if not self.root.is_dir():
            raise UserError(
                f"source {self.spec.id}: {self.root} is no folder", hint="mend its location in hub.toml"
            )
        return folder_state(self.root)

    def fetch(self, place: Place) -> Fetched:  # noqa: ARG002
        """See `Source.fetch`."""
        return Fetched(self.root, self.state(), "")
