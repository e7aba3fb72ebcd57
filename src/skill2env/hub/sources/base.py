"""What every kind of source can do."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from skill2env.hub.folder import Hub
from skill2env.hub.records import Fetched, SourceSpec


def _nothing(words: str) -> None:
    del words


@dataclass(frozen=True, slots=True)
class Place:
    """What a source may use while it works."""

    hub: Hub
    scratch: Path
    """An empty, private folder on the store's filesystem; removed afterwards."""
    offline: bool = False
    """Use what was downloaded before, and nothing else."""
    tell: Callable[[str], None] = field(default=_nothing)
    """Takes a few words about what is going on."""


class Source(Protocol):
    """One registered source. Fetching reads and unpacks; it never builds, installs or runs what it fetched."""

    @property
    def spec(self) -> SourceSpec:
        """Its registration."""
        ...

    def state(self) -> str:
        """A text that is equal exactly when `fetch` would bring the same; empty when only fetching can tell.

        Raises:
            UserError: the source is not there, or is not what its kind says.
            InfraError: boundary ``network`` or ``storage``.
        """
        ...

    def fetch(self, place: Place) -> Fetched:
        """Bring its files to rest, below `place.scratch` or where they are.

        Raises:
            UserError: the source is not there, is not what its kind says, or is not what its pin says.
            InfraError: boundary ``network`` or ``storage``; the message names the source.
        """
        ...
