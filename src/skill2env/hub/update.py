"""`sync_hub` and `scan_hub`: the two verbs that write, each under the hub's lock and with its own worker processes."""

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skill2env.errors import UserError
from skill2env.hub.folder import Hub, register
from skill2env.hub.index import Index
from skill2env.hub.manifest import Manifest, differences, read_manifest, write_manifest
from skill2env.hub.pool import Workers, workers
from skill2env.hub.records import SourceSpec, SourceStatus
from skill2env.hub.scan import Scanner, ScanOutcome
from skill2env.hub.store import Store
from skill2env.hub.sync import SourceOutcome, Syncer, SyncOptions, open_index
from skill2env.interrupts import interruptible
from skill2env.progress import Progress, silent


@dataclass(frozen=True, slots=True)
class Updated:
    """What a sync came to."""

    sources: tuple[SourceOutcome, ...]
    scan: ScanOutcome
    new: int
    """Contents that were not in the index before."""
    removed: int
    """Contents that are found nowhere any more."""
    differences: tuple[str, ...] = ()
    """How the result differs from the manifest that was asked for."""

    @property
    def failed(self) -> bool:
        """Whether some source could not be had."""
        return any(source.status is SourceStatus.FAILED for source in self.sources)

    def document(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "sources": [
                {
                    "id": source.id,
                    "status": source.status.value,
                    "unchanged": source.unchanged,
                    "skills": source.skills,
                    "left_out": source.left_out,
                    "error": source.error,
                    "hint": source.hint,
                }
                for source in self.sources
            ],
            "contents": self.scan.skills,
            "new": self.new,
            "removed": self.removed,
            "examined": self.scan.examined,
            "differences": list(self.differences),
        }


def sync_hub(
    hub: Hub,
    *,
    only: Sequence[str] = (),
    locked: Path | None = None,
    offline: bool = False,
    again: bool = False,
    workers: int = 0,
    progress: Progress = silent,
) -> Updated:
    """Bring sources up to date and decide on what they hold.

    Args:
        hub: the hub.
        only: ids of sources; empty for all.
        locked: a manifest; exactly what it pins is brought, whatever ``hub.toml`` says.
        offline: use what was downloaded before, and nothing else.
        again: read everything again, also what did not change.
        workers: worker processes; 0 for one a core.
        progress: told what happens.

    Raises:
        UserError: no hub, an unknown id, or a manifest that cannot be read.
        InfraError: boundary ``storage``, or another process works here. Sources that fail are outcomes, not errors.
    """
    pinned = read_manifest(locked) if locked is not None else None
    if pinned is not None and not hub.config_file.is_file():
        register(hub, list(pinned.sources))
    config = hub.config()
    specs = config.source if pinned is None else pinned.sources
    chosen = _chosen(specs, only)
    with _working(hub, workers) as (index, pool):
        before = int(index.database.value("SELECT count(*) FROM skills"))
        options = SyncOptions(offline=offline, again=again)
        syncer = Syncer(hub, index, pool, options, progress)
        try:
            outcomes = syncer.run(chosen)
            index.drop_sources(spec.id for spec in specs)
            gone = index.remove_orphans()
            for digest in gone:
                Store(hub.store).remove(digest)
            scanned = Scanner(hub, index, config, pool, progress).run()
            told = _pin(hub, index, pinned)
        finally:
            syncer.tidy()
    return Updated(tuple(outcomes), scanned, scanned.skills + len(gone) - before, len(gone), told)


def scan_hub(hub: Hub, *, again: bool = False, workers: int = 0, progress: Progress = silent) -> ScanOutcome:
    """Decide anew on what is stored; what did not change is not worked out twice.

    Args:
        hub: the hub.
        again: examine everything once more.
        workers: worker processes; 0 for one a core.
        progress: told what happens.

    Raises:
        UserError: no hub.
        InfraError: boundary ``storage``, or another process works here.
    """
    config = hub.config()
    with _working(hub, workers) as (index, pool):
        return Scanner(hub, index, config, pool, progress).run(again=again)


@contextmanager
def _working(hub: Hub, count: int) -> Generator[tuple[Index, Callable[[], Workers]]]:
    """The hub's index and worker processes, which start when first asked for."""
    with interruptible(), hub.locked(), ExitStack() as stack:
        index = open_index(hub)
        stack.enter_context(index.database)
        started: list[Workers] = []

        def pool() -> Workers:
            if not started:
                started.append(stack.enter_context(workers(count)))
            return started[0]

        yield index, pool


def _chosen(specs: Sequence[SourceSpec], only: Sequence[str]) -> list[SourceSpec]:
    known = {spec.id for spec in specs}
    unknown = sorted(set(only) - known)
    if unknown:
        raise UserError(
            f"the hub has no source called {unknown[0]}",
            hint=f"it has {', '.join(sorted(known)) or 'none'}",
        )
    return [spec for spec in specs if not only or spec.id in only]


def _pin(hub: Hub, index: Index, pinned: Manifest | None) -> tuple[str, ...]:
    changes = str(index.changes())
    if index.meta("manifest") != changes or not hub.manifest.is_file():
        write_manifest(index.database, hub.manifest)
        index.remember("manifest", changes)
    return tuple(differences(pinned.pins, index.database)) if pinned is not None else ()
