"""Writing the index: sources, places and contents as they come in, and what the scan decides about them."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill2env.hub.database import Database
from skill2env.hub.examine import Examination
from skill2env.hub.records import Fetched, Origin, SeenPlace, SkillRow, SourceSpec, SourceStatus, storable
from skill2env.hub.take import Taken
from skill2env.records import Diagnostic, canonical_json

_SKILL_COLUMNS = (
    "digest name slug description body language entry files size scripts missing diagnostics exam verdict domain "
    "confidence"
).split()
_INSERT_SKILL = (
    f"INSERT INTO skills ({', '.join(_SKILL_COLUMNS)}) VALUES ({', '.join('?' * len(_SKILL_COLUMNS))})"
)
_DIAGNOSTICS_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class SourceState:
    """What is known of one registered source."""

    id: str
    spec: str
    state: str
    revision: str
    origin: str
    sha256: str
    status: SourceStatus
    error: str
    diagnostics: tuple[Diagnostic, ...]


class Index:
    """The writing side of one hub's index; with the hub's lock held."""

    def __init__(self, database: Database) -> None:
        self.database = database

    # -------------------------------------------------------------------------------------------- meta

    def meta(self, key: str) -> str:
        """A remembered text; empty when there is none."""
        return str(self.database.value("SELECT value FROM meta WHERE key = ?", (key,)) or "")

    def remember(self, key: str, value: str) -> None:
        """Remember a text."""
        with self.database.transaction() as db:
            _remember(db, key, value)

    def changes(self) -> int:
        """A number that grows with every change of places or contents."""
        return int(self.meta("changes") or 0)

    # -------------------------------------------------------------------------------------------- sources

    def source(self, name: str) -> SourceState | None:
        """What is known of a source; None when it was never synced."""
        for row in self.database.rows("SELECT * FROM sources WHERE id = ?", (name,)):
            told = [Diagnostic.model_validate(item) for item in json.loads(row.pop("diagnostics"))]
            return SourceState(**{**row, "status": SourceStatus(row["status"])}, diagnostics=tuple(told))
        return None

    def set_source(
        self,
        spec: SourceSpec,
        state: str,
        fetched: Fetched | None,
        status: SourceStatus,
        diagnostics: Sequence[Diagnostic] = (),
    ) -> None:
        """Write what a sync came to; see `fail_source` for failures."""
        values = (
            spec.id,
            canonical_json(spec),
            state,
            fetched.revision if fetched else "",
            fetched.origin if fetched else "",
            fetched.sha256 if fetched else "",
            status.value,
            canonical_json([item.model_dump(mode="json") for item in diagnostics[:_DIAGNOSTICS_KEPT]]),
        )
        with self.database.transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO sources (id, spec, state, revision, origin, sha256, status, error, diagnostics)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, '', ?)",
                values,
            )

    def fail_source(self, spec: SourceSpec, error: str) -> None:
        """Note that a source could not be had; what an earlier sync brought is kept."""
        with self.database.transaction() as db:
            db.execute(
                "INSERT INTO sources (id, spec, state, revision, origin, sha256, status, error, diagnostics)"
                " VALUES (?, ?, '', '', '', '', ?, ?, '[]')"
                " ON CONFLICT (id) DO UPDATE SET status = excluded.status, error = excluded.error",
                (spec.id, canonical_json(spec), SourceStatus.FAILED.value, error),
            )

    def drop_sources(self, keep: Iterable[str]) -> None:
        """Forget sources that are registered no more, and their places."""
        kept = set(keep)
        gone = [row["id"] for row in self.database.rows("SELECT id FROM sources") if row["id"] not in kept]
        if not gone:
            return
        with self.database.transaction() as db:
            for name in gone:
                db.execute("DELETE FROM sources WHERE id = ?", (name,))
                db.execute("DELETE FROM origins WHERE source = ?", (name,))
                db.execute("DELETE FROM seen WHERE source = ?", (name,))
            _changed(db)

    # -------------------------------------------------------------------------------------------- contents and places

    def next_sync(self) -> int:
        """Number of a new sync."""
        number = int(self.meta("sync") or 0) + 1
        self.remember("sync", str(number))
        return number

    def seen(self, source: str) -> dict[str, SeenPlace]:
        """Path -> what the last sync saw there, of a source that is read where it is."""
        rows = self.database.rows(
            "SELECT path, state, digest, record FROM origins JOIN seen USING (source, path)"
            " WHERE source = ? AND EXISTS (SELECT 1 FROM skills WHERE skills.digest = origins.digest)",
            (source,),
        )
        return {
            row["path"]: SeenPlace(
                row["state"],
                row["digest"],
                tuple(digest for _, digest in json.loads(row["record"])["notices"]),
            )
            for row in rows
        }

    def confirm(self, source: str, paths: Iterable[str], sync: int, revision: str) -> None:
        """Note of places that they are as they were."""
        with self.database.transaction() as db:
            db.executemany(
                "UPDATE origins SET sync = ?, record = json_set(record, '$.revision', ?) WHERE source = ? AND path = ?",
                [(sync, revision, source, path) for path in paths],
            )

    def add(self, batch: Sequence[Taken], sync: int, states: Mapping[str, str] | None = None) -> None:
        """Write contents and places; what is known already stays as it is.

        Args:
            batch: what was read.
            sync: number of this sync.
            states: path -> state of the place before it was read, where that is worth noting.
        """
        with self.database.transaction() as db:
            for taken in batch:
                if taken.row is not None:
                    _add_skill(db, taken.row, taken.exam, taken.exam_key)
            db.executemany(
                "INSERT OR REPLACE INTO origins (source, path, digest, sync, record) VALUES (?, ?, ?, ?, ?)",
                [
                    (o.source, o.path, o.digest, sync, o.model_dump_json())
                    for o in (taken.origin for taken in batch)
                    if o is not None
                ],
            )
            db.executemany(
                "INSERT OR REPLACE INTO seen (source, path, state) VALUES (?, ?, ?)",
                [
                    (taken.origin.source, taken.path, states[taken.path])
                    for taken in batch
                    if states and taken.origin is not None
                ],
            )
            _changed(db)

    def retire(self, source: str, sync: int) -> None:
        """Forget the places of a source that a finished sync did not see."""
        with self.database.transaction() as db:
            done = db.execute("DELETE FROM origins WHERE source = ? AND sync <> ?", (source, sync))
            db.execute(
                "DELETE FROM seen WHERE source = ? AND path NOT IN (SELECT path FROM origins WHERE source = ?)",
                (source, source),
            )
            if done.rowcount:
                _changed(db)

    def remove_orphans(self) -> list[str]:
        """Forget contents that are found nowhere any more; returns their digests, sorted."""
        wanted = "NOT EXISTS (SELECT 1 FROM origins WHERE origins.digest = skills.digest)"
        gone = list(
            self.database.rows(f"SELECT id, digest, name, description, body FROM skills WHERE {wanted}")
        )
        if gone:
            with self.database.transaction() as db:
                db.executemany(
                    "INSERT INTO texts (texts, rowid, name, description, body) VALUES ('delete', ?, ?, ?, ?)",
                    [(row["id"], row["name"], row["description"], row["body"]) for row in gone],
                )
                db.executemany("DELETE FROM skills WHERE id = ?", [(row["id"],) for row in gone])
                _changed(db)
        return sorted(row["digest"] for row in gone)

    def origins(self) -> Iterator[Origin]:
        """Every place, by content, source and path."""
        for row in self.database.rows("SELECT record FROM origins ORDER BY digest, source, path"):
            yield Origin.model_validate_json(row["record"])

    # -------------------------------------------------------------------------------------------- decisions

    def set_examinations(self, batch: Iterable[tuple[str, str, Examination]]) -> None:
        """Replace examinations: digest, key, what was found."""
        with self.database.transaction() as db:
            for digest, key, exam in batch:
                row = db.execute("SELECT id FROM skills WHERE digest = ?", (digest,)).fetchone()
                if row is None:
                    continue
                db.execute(
                    "UPDATE skills SET exam = ?, verdict = ?, domain = ?, confidence = ? WHERE id = ?",
                    (key, exam.verdict, exam.domain, exam.confidence, row[0]),
                )
                db.execute("DELETE FROM flags WHERE skill = ?", (row[0],))
                _add_flags(db, row[0], exam)

    def set_licences(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write of each content its place and terms: source, path, spdx, evidence, allowed, reason, digest."""
        with self.database.transaction() as db:
            db.executemany(
                "UPDATE skills SET source = ?, path = ?, spdx = ?, evidence = ?, allowed = ?, licence_reason = ?"
                " WHERE digest = ?",
                rows,
            )

    def set_duplicates(self, rows: Iterable[tuple[str, str, float, str]]) -> None:
        """Write of each content what it is a copy of: representative, likeness, Jaccard measure, digest."""
        with self.database.transaction() as db:
            db.executemany(
                "UPDATE skills SET representative = ?, likeness = ?, jaccard = ? WHERE digest = ?", rows
            )

    def choose(self, key: str) -> None:
        """Settle which skills are chosen, and remember what that was decided from."""
        with self.database.transaction() as db:
            db.execute(
                "UPDATE skills SET chosen = (allowed = 1 AND verdict = 'compile' AND representative = digest)"
            )
            _remember(db, "decided", key)


def _add_skill(db: sqlite3.Connection, row: SkillRow, exam: Examination | None, key: str) -> None:
    if db.execute("SELECT 1 FROM skills WHERE digest = ?", (row.digest,)).fetchone():
        return
    exam = exam or Examination("", (), "", 0.0)
    values = (
        row.digest, row.name, row.slug, row.description, row.body, row.language, row.entry, row.files, row.size,
        row.scripts, row.missing, canonical_json([item.model_dump(mode="json") for item in row.diagnostics]), key,
        exam.verdict, exam.domain, exam.confidence,
    )  # fmt: skip
    number = db.execute(_INSERT_SKILL, tuple(map(storable, values))).lastrowid
    db.execute(
        "INSERT INTO texts (rowid, name, description, body) VALUES (?, ?, ?, ?)",
        (number, *map(storable, (row.name, row.description, row.body))),
    )
    assert number is not None  # an INSERT has one
    _add_flags(db, number, exam)


def _add_flags(db: sqlite3.Connection, number: int, exam: Examination) -> None:
    db.executemany(
        "INSERT INTO flags (skill, rule, topic, verdict, score, file, start, stop, excerpt)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                number,
                f.rule,
                f.group.value,
                f.verdict.value,
                f.score,
                storable(f.where),
                *f.span,
                storable(f.excerpt),
            )
            for f in exam.flags
        ],
    )


def _remember(db: sqlite3.Connection, key: str, value: str) -> None:
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))


def _changed(db: sqlite3.Connection) -> None:
    row = db.execute("SELECT value FROM meta WHERE key = 'changes'").fetchone()
    _remember(db, "changes", str(int(row[0] if row else 0) + 1))
