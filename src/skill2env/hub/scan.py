"""`hub scan`: what the policy, the rules, the classifier and the copies say of everything stored.

Nothing is worked out twice: licences are decided anew when places or the policy changed, a content is examined anew
when the rules changed or another of its places speaks for it, and copies are looked for anew when contents changed.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import batched, groupby
from typing import cast

from skill2env.hub.duplicates import rank
from skill2env.hub.examine import Examination, exam_key, rules_digest
from skill2env.hub.folder import Hub, HubConfig
from skill2env.hub.index import Index
from skill2env.hub.policy import LicenceDecision, LicencePolicy
from skill2env.hub.policy import decide as decide_cached
from skill2env.hub.pool import Workers
from skill2env.hub.records import EVIDENCE_RANK, Origin, understood
from skill2env.hub.take import again_many
from skill2env.near import DEFAULT_THRESHOLD, Document, Rank, cluster
from skill2env.progress import Event, EventKind, Progress, silent
from skill2env.records import Licence, LicenceEvidence, digest_of

_BATCH = 500
# A frozen record can be hashed, which the type checker does not know.
_decide = cast("Callable[[Licence, LicencePolicy], LicenceDecision]", decide_cached)


@dataclass(frozen=True, slots=True)
class ScanOutcome:
    """What a scan had to do."""

    skills: int
    decided: bool
    """False when everything was as the last scan left it."""
    examined: int = 0
    """Contents that were examined anew."""
    clustered: bool = False
    """Copies were looked for anew."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place that speaks for a content."""

    origin: Origin
    decision: LicenceDecision
    places: int
    """How many there are."""


@dataclass(slots=True)
class Scanner:
    """One scan; with the hub's lock held."""

    hub: Hub
    index: Index
    config: HubConfig
    pool: Callable[[], Workers]
    progress: Progress = silent

    def run(self, *, again: bool = False) -> ScanOutcome:
        """Bring every decision up to date.

        Args:
            again: examine everything once more, whether something changed or not.

        Raises:
            InfraError: boundary ``storage``.
        """
        count = int(self.index.database.value("SELECT count(*) FROM skills"))
        key = digest_of(
            [
                self.index.changes(),
                self.config.policy.model_dump(mode="json"),
                rules_digest(),
                DEFAULT_THRESHOLD,
            ]
        )
        if not again and self.index.meta("decided") == key:
            return ScanOutcome(count, decided=False)
        places = {place.origin.digest: place for place in self._places()}
        self.progress(Event(EventKind.PHASE, "licences", total=len(places)))
        for batch in batched(places.values(), _BATCH):
            self.index.set_licences(map(_licence_row, batch))
            self.progress(Event(EventKind.COUNT, "licences", total=len(batch)))
        examined = self._examine(places, again=again)
        clustered = self._cluster(places)
        self.index.choose(key)
        return ScanOutcome(count, decided=True, examined=examined, clustered=clustered)

    def _places(self) -> Iterator[Place]:
        collections = {spec.id for spec in self.config.source if spec.collection}
        for _, group in groupby(self.index.origins(), key=lambda origin: origin.digest):
            yield speaking(list(group), self.config.policy, collections)

    def _examine(self, places: dict[str, Place], *, again: bool) -> int:
        known = {
            row["digest"]: row["exam"] for row in self.index.database.rows("SELECT digest, exam FROM skills")
        }
        stale = [
            place.origin
            for digest, place in places.items()
            if again or known.get(digest) != exam_key(name=place.origin.name, fixture=place.origin.fixture)
        ]
        if not stale:
            return 0
        self.progress(Event(EventKind.PHASE, "examining", total=len(stale)))
        results = self.pool().map(partial(again_many, self.hub.store), stale)
        for batch in batched(zip(stale, results, strict=True), _BATCH):
            done: list[tuple[str, str, Examination]] = []
            for origin, taken in batch:
                if taken.exam is not None:
                    done.append((origin.digest, taken.exam_key, taken.exam))
                elif taken.failed is not None:
                    self.progress(Event(EventKind.NOTE, origin.path, f"not examined: {taken.failed.message}"))
            self.index.set_examinations(done)
            self.progress(Event(EventKind.COUNT, "examining", total=len(batch)))
        return len(stale)

    def _cluster(self, places: dict[str, Place]) -> bool:
        facts = self.index.database.rows(
            "SELECT digest, files, missing, length(body) AS chars FROM skills ORDER BY digest"
        )
        collections = {spec.id for spec in self.config.source if spec.collection}
        ranks = {row["digest"]: rank_at(places[row["digest"]].origin, row, collections) for row in facts}
        key = digest_of([list(ranks.items()), DEFAULT_THRESHOLD])
        if self.index.meta("clusters") == key:
            return False
        self.progress(Event(EventKind.PHASE, "copies"))
        texts = self.index.database.rows("SELECT digest, description, body FROM skills ORDER BY digest")
        documents = (
            Document(
                row["digest"],
                row["body"] if row["body"].strip() else row["description"],
                ranks[row["digest"]],
            )
            for row in texts
        )
        rows: list[tuple[str, str, float, str]] = []
        for group in cluster(documents):
            rows.append((group.representative, "", 1.0, group.representative))
            rows += [(group.representative, m.likeness.value, m.jaccard, m.key) for m in group.members]
        self.index.set_duplicates(rows)
        self.index.remember("clusters", key)
        return True


def speaking(origins: list[Origin], policy: LicencePolicy, collections: Iterable[str] = ()) -> Place:
    """The place that speaks for a content that was found at several.

    Stronger licence evidence first; where it is equal, a refusal before a permission; then the author's own source
    before a collection, a real place before a test fixture, a skill of its own before one inside another, and by name.
    """
    gathered = set(collections)

    def order(origin: Origin) -> tuple[int, bool, bool, bool, bool, str, str]:
        allowed = _decide(origin.licence, policy).allowed
        mirrored = origin.source in gathered
        return (
            EVIDENCE_RANK[understood(origin.licence)],
            allowed,
            mirrored,
            origin.fixture,
            origin.nested,
            origin.source,
            origin.path,
        )

    best = min(origins, key=order)
    return Place(best, _decide(best.licence, policy), len(origins))


def rank_at(origin: Origin, facts: dict[str, int], collections: Iterable[str]) -> Rank:
    """Rank of a content among its copies, as the place that speaks for it tells; see `duplicates.rank`."""
    mirror = origin.source in set(collections) or understood(origin.licence) is LicenceEvidence.AGGREGATOR
    return rank(
        origin.licence, missing=facts["missing"], mirror=mirror, files=facts["files"], chars=facts["chars"]
    )


def _licence_row(place: Place) -> tuple[str, str, str, str, int, str, str]:
    origin, decision = place.origin, place.decision
    return (
        origin.source,
        origin.path,
        origin.licence.spdx,
        origin.licence.evidence.value,
        int(decision.allowed),
        decision.reason,
        origin.digest,
    )
