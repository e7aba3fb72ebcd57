"""Which skills of a source that is read in place are as the last sync saw them, from names, sizes and times alone.

One changed file of a folder with thousands of skills costs one skill. `hub sync --again` reads everything instead, and
compares digests.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from skill2env import __version__
from skill2env.hub.index import Index
from skill2env.hub.records import Fetched, SeenPlace, SourceSpec
from skill2env.hub.store import Store
from skill2env.hub.take import Job
from skill2env.hub.tree import entry_facts, folder_state
from skill2env.ingest.package import MAX_LEVELS, telling_names
from skill2env.records import digest_of


@dataclass(frozen=True, slots=True)
class Sorted:
    """Jobs of a source by whether they have to be done."""

    same: tuple[str, ...]
    """Paths of skills that are as they were, in the store and in the index."""
    changed: tuple[Job, ...]
    states: dict[str, str]
    """Path -> state, as it was before anything was read; for the index."""


def sort_out(index: Index, store: Store, spec: SourceSpec, fetched: Fetched, jobs: Sequence[Job]) -> Sorted:
    """Compare what lies in a source with what the last sync noted.

    Args:
        index: knows what was seen.
        store: must hold what need not be read again.
        spec: the source.
        fetched: its files; `Fetched.root` is where they stay.
        jobs: its skills.

    Raises:
        InfraError: boundary ``storage``.
    """
    seen = index.seen(spec.id)
    basis = digest_of([spec.model_dump(mode="json"), __version__])
    around = cache(_around)

    @cache
    def held(digest: str) -> bool:
        return store.notice(digest).is_file()

    same: list[str] = []
    changed: list[Job] = []
    states: dict[str, str] = {}
    for job in jobs:
        states[job.path] = state = _state(fetched.root, job, basis, around)
        before = seen.get(job.path)
        if before is not None and before.state == state and _whole(before, store, held):
            same.append(job.path)
        else:
            changed.append(job)
    return Sorted(tuple(same), tuple(changed), states)


def _whole(place: SeenPlace, store: Store, held: Callable[[str], bool]) -> bool:
    return store.skill(place.digest).is_dir() and all(map(held, place.notices))


def _state(root: Path, job: Job, basis: str, around: Callable[[Path], str]) -> str:
    """Equal when nothing changed that reading a skill looks at: its folder, and what lies around it."""
    folder = root if job.path == "." else root / job.path
    above = [around(place) for place in (folder, *folder.parents)[: MAX_LEVELS + 1]]
    told = job.entry
    notices = [[name, entry_facts(root / path)] for name, path in told.notices] if told else []
    entry = (
        [told.origin, told.licence and told.licence.model_dump(mode="json"), told.sha256] if told else None
    )
    return digest_of([basis, job.nested, folder_state(folder), above, entry, notices])


def _around(folder: Path) -> str:
    """State of what a folder says about the licence and the package of skills below it."""
    try:
        names = sorted(telling_names(folder))
        mode = folder.stat().st_mode
    except OSError as error:
        return f"unreadable {error.errno}"
    facts = [
        [ascii(name), _of_one(folder / name)]
        for name in names
        if name != ".git"  # only whether it is there counts, and git writes to it all the time
    ]
    return digest_of([mode, ".git" in names, facts])


def _of_one(path: Path) -> str:
    """A file or link by itself, a folder of metadata by all that it holds; a link is not followed, it may lead to /."""
    inside = (
        folder_state(path) if path.suffix == ".dist-info" and path.is_dir() and not path.is_symlink() else ""
    )
    return entry_facts(path) + inside
