"""`hub sync`: bring every registered source up to date, one after the other, and go on when one of them fails."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import batched
from pathlib import Path
from tempfile import mkdtemp

from skill2env import __version__
from skill2env.errors import InfraError, UserError
from skill2env.hub.database import Database
from skill2env.hub.folder import Hub
from skill2env.hub.index import Index, SourceState
from skill2env.hub.pool import Workers
from skill2env.hub.records import Fetched, SourceKind, SourceSpec, SourceStatus
from skill2env.hub.sources import Place, open_source
from skill2env.hub.store import Store
from skill2env.hub.take import Job, Taken, Work, take_many
from skill2env.hub.unchanged import Sorted, sort_out
from skill2env.ingest import DiscoveryLimits, find_skills
from skill2env.progress import Event, EventKind, Progress, silent
from skill2env.records import Diagnostic, Severity, digest_of
from skill2env.store.files import storage

_BATCH = 500
"""Skills written to the index at once: the most that a killed process has to do again."""
_LIMITS = DiscoveryLimits(folders=2_000_000, skills=1_000_000)
_BOUNDED = {kind: kind is not SourceKind.FOLDER for kind in SourceKind}


@dataclass(frozen=True, slots=True)
class SourceOutcome:
    """What a sync came to for one source."""

    id: str
    status: SourceStatus
    skills: int = 0
    """Found this time; 0 when nothing had changed."""
    unchanged: bool = False
    left_out: int = 0
    """Folders that hold a skill and could not be taken."""
    error: str = ""
    hint: str = ""


@dataclass(slots=True)
class SyncOptions:
    """How to sync."""

    only: Sequence[str] = ()
    """Ids of sources; empty for all."""
    offline: bool = False
    again: bool = False
    """Read sources again that say that nothing changed."""


@dataclass(slots=True)
class Syncer:
    """One sync; with the hub's lock held."""

    hub: Hub
    index: Index
    pool: Callable[[], Workers]
    """Gives the worker processes, which are started when first needed."""
    options: SyncOptions = field(default_factory=SyncOptions)
    progress: Progress = silent
    _leftovers: list[tuple[Path, Callable[[], None]]] = field(
        default_factory=list[tuple[Path, Callable[[], None]]]
    )

    def run(self, specs: Sequence[SourceSpec]) -> list[SourceOutcome]:
        """Bring sources up to date.

        Returns:
            One outcome a source, in the order of `specs`.

        Raises:
            InfraError: boundary ``storage``; nothing else ends a sync.
        """
        Store(self.hub.store).prepare()
        outcomes: list[SourceOutcome] = []
        for spec in specs:
            try:
                outcomes.append(self._source(spec))
            except (UserError, InfraError) as error:
                if isinstance(error, InfraError) and error.boundary.value == "storage":
                    raise
                self.index.fail_source(spec, error.message)
                self.progress(Event(EventKind.NOTE, spec.id, f"failed: {error.message}"))
                outcomes.append(
                    SourceOutcome(spec.id, SourceStatus.FAILED, error=error.message, hint=error.hint)
                )
        return outcomes

    def _source(self, spec: SourceSpec) -> SourceOutcome:
        before = self.index.source(spec.id)
        source = open_source(
            self.hub, spec, offline=self.options.offline, stored=_stored(before, spec) if before else ""
        )
        state = digest_of([source.state(), spec.model_dump(mode="json"), __version__])
        if (
            before is not None
            and before.state == state
            and before.status is SourceStatus.FRESH
            and not self.options.again
        ):
            return SourceOutcome(spec.id, SourceStatus.FRESH, unchanged=True)
        with storage("making a folder in", self.hub.work):
            scratch = Path(mkdtemp(dir=self.hub.work))
        tell = partial(_note, self.progress, spec.id)
        self.pool()
        try:
            fetched = source.fetch(Place(self.hub, scratch, offline=self.options.offline, tell=tell))
            return self._take(
                spec, state, fetched, in_place=not fetched.root.is_relative_to(scratch.resolve())
            )
        finally:
            self._leftovers.append((scratch, self.pool().submit(_remove, scratch)))

    def tidy(self) -> None:
        """Wait until the folders that sources were unpacked into are gone; workers remove them meanwhile."""
        for scratch, removed in self._leftovers:
            with suppress(InfraError):
                removed()
            _remove(scratch)
        self._leftovers.clear()

    def _take(self, spec: SourceSpec, state: str, fetched: Fetched, *, in_place: bool) -> SourceOutcome:
        found, noticed = jobs_of(spec, fetched)
        left_out = [*fetched.diagnostics, *noticed]
        self.index.set_source(spec, state, fetched, SourceStatus.PARTIAL)
        number = self.index.next_sync()
        sorted_out = Sorted((), tuple(found), {})
        if in_place:
            sorted_out = sort_out(self.index, Store(self.hub.store), spec, fetched, found)
        if self.options.again:
            sorted_out = replace(sorted_out, same=(), changed=tuple(found))
        jobs = sorted_out.changed
        self.index.confirm(spec.id, sorted_out.same, number, fetched.revision)
        self.progress(Event(EventKind.PHASE, spec.id, total=len(jobs)))
        work = Work(
            store=self.hub.store,
            source=spec.id,
            root=fetched.root,
            revision=fetched.revision,
            origin=fetched.origin,
            bounded=_BOUNDED[spec.kind],
            collection=spec.collection,
        )
        count = len(sorted_out.same)
        for batch in batched(self._taken(work, jobs), _BATCH):
            self.index.add(batch, number, sorted_out.states)
            refused = [taken.failed for taken in batch if taken.failed is not None]
            left_out += refused
            count += len(batch) - len(refused)
            self.progress(Event(EventKind.COUNT, spec.id, total=len(batch)))
        self.index.retire(spec.id, number)
        self.index.set_source(spec, state, fetched, SourceStatus.FRESH, left_out)
        return SourceOutcome(spec.id, SourceStatus.FRESH, skills=count, left_out=len(found) - count)

    def _taken(self, work: Work, jobs: Sequence[Job]) -> Iterator[Taken]:
        if not jobs:
            return iter(())
        return self.pool().map(partial(take_many, work), jobs)


def _stored(before: SourceState, spec: SourceSpec) -> str:
    """The revision that was brought, if what is registered now is what was registered then."""
    told = json.loads(before.spec)
    same = all(told.get(key) == getattr(spec, key) for key in ("kind", "location", "revision"))
    return before.revision if same else ""


def _note(progress: Progress, source: str, words: str) -> None:
    progress(Event(EventKind.NOTE, source, words))


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


def jobs_of(spec: SourceSpec, fetched: Fetched) -> tuple[list[Job], list[Diagnostic]]:
    """The skills of a source, and what only looks like one or was left out on purpose."""
    try:
        found = find_skills(fetched.root, limits=_LIMITS)
    except UserError:
        empty = Diagnostic(code="no-skill", severity=Severity.WARN, message="the source holds no skill")
        return [], [empty]
    cut = len(f"{fetched.root}/")
    paths = [str(folder)[cut:] or "." for folder in found.folders]
    chosen = [path for path in paths if _wanted(path, spec)]
    nested = _nested(paths)
    jobs = [Job(path, path in nested, fetched.index.get(path)) for path in chosen]
    noticed = [item for item in found.diagnostics if item.code != "nested-skill"]
    gone = sorted(path for path in fetched.index if path not in set(paths) and _wanted(path, spec))
    noticed += [
        Diagnostic(code="not-there", severity=Severity.WARN, message="only the index knows it", where=path)
        for path in gone[:100]
    ]
    return jobs, noticed


def _wanted(path: str, spec: SourceSpec) -> bool:
    inside = not spec.include or any(_below(path, folder) for folder in spec.include)
    return inside and not any(_below(path, folder) for folder in spec.exclude)


def _below(path: str, folder: str) -> bool:
    folder = folder.strip("/")
    return folder in ("", ".") or path == folder or path.startswith(folder + "/")


def _nested(paths: Sequence[str]) -> set[str]:
    """Those of sorted paths that lie inside another one."""
    known = set(paths)
    found: set[str] = set()
    for path in paths:
        parts = path.split("/")
        above = {"/".join(parts[:count]) for count in range(1, len(parts))} | ({"."} - {path})
        if known & above:
            found.add(path)
    return found


def open_index(hub: Hub) -> Index:
    """The hub's index, for writing; with the hub's lock held.

    Raises:
        UserError: it is of another version.
        InfraError: boundary ``storage``.
    """
    return Index(Database.open(hub.index))
