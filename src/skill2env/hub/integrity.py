"""`hub verify`: read everything stored again, and compare it with its digests and with the index."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import batched
from pathlib import Path
from typing import Any

from skill2env.hub.folder import Hub
from skill2env.hub.pool import workers as worker_pool
from skill2env.hub.records import Origin, SourceStatus
from skill2env.hub.store import Damage, Store
from skill2env.hub.sync import open_index
from skill2env.interrupts import interruptible
from skill2env.progress import Event, EventKind, Progress, silent

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as it was stored."""

    what: str
    """``skill`` or ``notice``."""
    digest: str
    why: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found."""

    skills: int
    notices: int
    problems: tuple[Problem, ...]

    def document(self) -> dict[str, Any]:
        """Everything as plain data."""
        listed = [{"what": item.what, "digest": item.digest, "why": item.why} for item in self.problems]
        return {"skills": self.skills, "notices": self.notices, "problems": listed}


def verify_hub(hub: Hub, *, repair: bool = False, workers: int = 0, progress: Progress = silent) -> Checked:
    """Check the store of a hub; with `repair`, remove what is damaged and have the next sync bring it again.

    Raises:
        UserError: nothing was synced yet.
        InfraError: boundary ``storage``, or another process works here.
    """
    store = Store(hub.store)
    with interruptible(), hub.locked(), open_index(hub).database as database, worker_pool(workers) as pool:
        known = {row["digest"] for row in database.rows("SELECT digest FROM skills")}
        stored = set(store.digests())
        problems = [Problem("skill", digest, "it is not in the store") for digest in sorted(known - stored)]
        digests = sorted(stored)
        progress(Event(EventKind.PHASE, "reading", total=len(digests)))
        for batch in batched(pool.map(partial(_check, hub.store), digests), _BATCH):
            problems += [Problem("skill", item.digest, item.why) for item in batch if item is not None]
            progress(Event(EventKind.COUNT, "reading", total=len(batch)))
        notices = sorted({*store.notices(), *_wanted_notices(database.rows("SELECT record FROM origins"))})
        told = [store.check_notice(digest) for digest in notices]
        problems += [Problem("notice", item.digest, item.why) for item in told if item is not None]
        if repair and problems:
            _repair(store, problems)
            with database.transaction() as db:
                # What a source gave is read again when the source does not count as finished.
                db.execute("UPDATE sources SET status = ?", (SourceStatus.PARTIAL.value,))
    return Checked(len(digests), len(notices), tuple(problems))


def _check(store: Path, digests: Sequence[str]) -> list[Damage | None]:
    return [Store(store).check(digest) for digest in digests]


def _wanted_notices(rows: Any) -> set[str]:
    return {digest for row in rows for _, digest in Origin.model_validate_json(row["record"]).notices}


def _repair(store: Store, problems: Sequence[Problem]) -> None:
    for item in problems:
        if item.what == "skill":
            store.remove(item.digest)
        else:
            store.notice(item.digest).unlink(missing_ok=True)
