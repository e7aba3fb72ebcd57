"""The ledger: what was decided, from which inputs, and what it cost. One SQLite file per run folder.

One transaction per fact; `store.database` says what that survives. Times in it are for people; no result depends on
them. Totals are queries (`store.report`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from skill2env.records import Attempt, AttemptStatus, AuthorIdentity, Usage, canonical_json, digest_of
from skill2env.store.database import Database

FINISHED = "finished"
"""Outcome of a session whose reply is final."""
LOST = "lost"
"""Outcome of a session whose process was killed; it counts as dear as it was allowed to be."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Answer of `Ledger.lookup`."""

    key: str
    """Content key of the inputs."""
    result: dict[str, Any] | None
    """The stored result, None when these inputs were never finished."""
    changed: tuple[str, ...] = ()
    """Dotted names of the inputs that differ from the latest stored result of the same subject; empty on a hit or
    when the subject is new."""


@dataclass(frozen=True, slots=True)
class SkillRow:
    """How one skill of a run was planned."""

    name: str
    digest: str
    status: str
    """``planned``, ``skipped`` or ``infra``."""
    reason: str = ""
    detail: str = ""
    workflows: int = 0
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One planned attempt of a run."""

    attempt_key: str
    task_name: str
    subject: str


def content_key(stage: str, inputs: Mapping[str, Any]) -> str:
    """Digest of a stage's name and all its inputs."""
    return digest_of({"stage": stage, "inputs": dict(inputs)})


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any], prefix: str = "") -> tuple[str, ...]:
    """Dotted names of the leaves that differ between two JSON objects, sorted."""
    found: list[str] = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            found += changed_fields(
                cast("dict[str, Any]", old), cast("dict[str, Any]", new), f"{prefix}{name}."
            )
        elif old != new:
            found.append(f"{prefix}{name}")
    return tuple(found)


class Ledger(Database):
    """An open ledger. Use as a context manager; every method may be called from any thread."""

    # ---------------------------------------------------------------------------------------- runs

    def begin_run(
        self,
        *,
        config: Mapping[str, Any],
        config_digest: str,
        author: AuthorIdentity,
        dataset: Path,
        version: str,
    ) -> int:
        """Note that a run starts; returns its number."""
        with self.transaction() as db:
            cursor = db.execute(
                "INSERT INTO runs (config, config_digest, author, dataset, version, status)"
                " VALUES (?, ?, ?, ?, ?, 'running')",
                (canonical_json(dict(config)), config_digest, canonical_json(author), str(dataset), version),
            )
            return int(cursor.lastrowid or 0)

    def end_run(self, run: int, status: str) -> None:
        """Note how a run ended: ``finished``, ``pending``, ``budget``, ``interrupted`` or ``failed``."""
        with self.transaction() as db:
            db.execute(
                "UPDATE runs SET status = ?, ended_at = strftime('%Y-%m-%dT%H:%M:%SZ', 'now') WHERE id = ?",
                (status, run),
            )

    def set_spent(self, run: int, seconds: Mapping[str, float]) -> None:
        """Note where the time of a run went, for people: name -> wall seconds of all workers together."""
        with self.transaction() as db:
            db.execute("DELETE FROM spent WHERE run = ?", (run,))
            db.executemany(
                "INSERT INTO spent VALUES (?, ?, ?)", [(run, what, sec) for what, sec in seconds.items()]
            )

    def set_skills(self, run: int, skills: Sequence[SkillRow]) -> None:
        """Note how each skill of a run was planned, in canonical order."""
        with self.transaction() as db:
            db.execute("DELETE FROM skills WHERE run = ?", (run,))
            db.executemany(
                "INSERT INTO skills VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        run,
                        at,
                        s.name,
                        s.digest,
                        s.status,
                        s.reason,
                        s.detail,
                        s.workflows,
                        json.dumps(s.dropped),
                    )
                    for at, s in enumerate(skills)
                ],
            )

    def set_items(self, run: int, items: Sequence[Item]) -> None:
        """Note which attempts a run consists of, in canonical order."""
        with self.transaction() as db:
            db.execute("DELETE FROM items WHERE run = ?", (run,))
            db.executemany(
                "INSERT INTO items VALUES (?, ?, ?, ?, ?)",
                [(run, at, i.attempt_key, i.task_name, i.subject) for at, i in enumerate(items)],
            )

    # ---------------------------------------------------------------------------------------- stage results

    def lookup(self, stage: str, subject: str, inputs: Mapping[str, Any]) -> Lookup:
        """Find the finished result of a stage for exactly these inputs, or say which of them changed.

        Args:
            stage: name of the stage.
            subject: what a person calls the thing worked on; stays the same when its inputs change.
            inputs: a JSON object with everything that determines the result.
        """
        key = content_key(stage, inputs)
        rows = self.query("SELECT result FROM stage_results WHERE key = ?", (key,))
        if rows:
            return Lookup(key, self._json(rows[0]["result"]))
        earlier = self.query(
            "SELECT inputs FROM stage_results WHERE stage = ? AND subject = ? ORDER BY rowid DESC LIMIT 1",
            (stage, subject),
        )
        if not earlier:
            return Lookup(key, None)
        now = json.loads(canonical_json(dict(inputs)))
        return Lookup(key, None, changed_fields(self._json(earlier[0]["inputs"]), now))

    def store(self, stage: str, subject: str, inputs: Mapping[str, Any], result: Mapping[str, Any]) -> str:
        """Keep a finished result under its content key; storing the same key again changes nothing.

        Returns:
            The key.
        """
        self.store_all(stage, [(subject, inputs, result)])
        return content_key(stage, inputs)

    def store_all(self, stage: str, rows: Sequence[tuple[str, Mapping[str, Any], Mapping[str, Any]]]) -> None:
        """Keep several results, given as (subject, inputs, result), in one transaction: all of them or none."""
        with self.transaction() as db:
            db.executemany(
                "INSERT OR IGNORE INTO stage_results (key, stage, subject, inputs, result) VALUES (?, ?, ?, ?, ?)",
                [
                    (
                        content_key(stage, inputs),
                        stage,
                        subject,
                        canonical_json(dict(inputs)),
                        canonical_json(dict(r)),
                    )
                    for subject, inputs, r in rows
                ],
            )

    def results(self, stage: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """All stored (inputs, result) of a stage, oldest first."""
        rows = self.query("SELECT inputs, result FROM stage_results WHERE stage = ? ORDER BY rowid", (stage,))
        return [(self._json(row["inputs"]), self._json(row["result"])) for row in rows]

    # ---------------------------------------------------------------------------------------- money

    def reserve(
        self,
        key: str,
        *,
        run: int,
        subject: str,
        phase: str,
        round_: int,
        author: AuthorIdentity,
        micro_dollars: int,
    ) -> None:
        """Set money aside for a session that is about to begin; `add_session` settles it."""
        with self.transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO reservations VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (key, run, subject, phase, round_, author.name, author.model, micro_dollars),
            )

    def reserved(self, subject: str = "") -> int:
        """Micro-dollars set aside for sessions under way, all or those of one skill or task."""
        rows = self.query(
            "SELECT coalesce(sum(micro_dollars), 0) AS held FROM reservations WHERE ? = '' OR subject = ?",
            (subject, subject),
        )
        return int(rows[0]["held"])

    def release(self, key: str) -> None:
        """Give back what was set aside for a session that never began."""
        with self.transaction() as db:
            db.execute("DELETE FROM reservations WHERE key = ?", (key,))

    def settle_lost(self) -> int:
        """Count what earlier processes had set aside when they were killed as spent: nobody knows what they used.

        Call it only while no other process works with this ledger.

        Returns:
            How many sessions were lost.
        """
        with self.transaction() as db:
            db.execute(
                "INSERT INTO sessions (key, run, subject, phase, round, outcome, author, model, input_tokens,"
                " output_tokens, cached_tokens, turns, micro_dollars)"
                " SELECT key, run, subject, phase, round, ?, author, model, 0, 0, 0, 0, micro_dollars"
                " FROM reservations",
                (LOST,),
            )
            return db.execute("DELETE FROM reservations").rowcount

    # ---------------------------------------------------------------------------------------- facts

    def add_session(
        self,
        key: str,
        *,
        run: int,
        subject: str,
        phase: str,
        round_: int,
        author: AuthorIdentity,
        usage: Usage,
        outcome: str = FINISHED,
        hosts: Sequence[str] = (),
    ) -> bool:
        """Note one authoring session and its cost, and settle what was set aside for it.

        Returns:
            False when the same finished session was noted before.
        """
        row = (key, run, subject, phase, round_, outcome, author.name, usage.model or author.model)
        tokens = (
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_tokens,
            usage.turns,
            usage.micro_dollars,
            json.dumps(list(hosts)),
            int(usage.estimated),
        )
        with self.transaction() as db:
            cursor = db.execute(
                "INSERT OR IGNORE INTO sessions (key, run, subject, phase, round, outcome, author, model,"
                " input_tokens, output_tokens, cached_tokens, turns, micro_dollars, hosts, estimated)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row + tokens,
            )
            db.execute("DELETE FROM reservations WHERE key = ?", (key,))
            return cursor.rowcount == 1

    def add_freeze(self, task_name: str, digest: str, files: Mapping[str, str]) -> None:
        """Seal a grading contract: from here on its digest stands, whatever happens to the files."""
        with self.transaction() as db:
            db.execute(
                "INSERT OR IGNORE INTO freezes (task_name, digest, files) VALUES (?, ?, ?)",
                (task_name, digest, canonical_json(dict(files))),
            )

    def put_attempt(
        self, run: int, attempt: Attempt, *, dataset: Path | None = None, folder: str = "", digest: str = ""
    ) -> None:
        """Note where an attempt ended, with its gates and, when published, its place; one transaction."""
        with self.transaction() as db:
            db.execute("DELETE FROM publications WHERE attempt_key = ?", (attempt.key,))
            db.execute("DELETE FROM gate_runs WHERE attempt_key = ?", (attempt.key,))
            db.execute(
                "INSERT INTO attempts (key, run, task_name, status, reason, record) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (key) DO UPDATE SET run = excluded.run, task_name = excluded.task_name,"
                " status = excluded.status, reason = excluded.reason, record = excluded.record",
                (
                    attempt.key,
                    run,
                    attempt.task_name,
                    attempt.status,
                    attempt.reason,
                    canonical_json(attempt),
                ),
            )
            db.executemany("INSERT INTO gate_runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", _gate_rows(attempt))
            if attempt.status is AttemptStatus.PUBLISHED:
                db.execute(
                    "INSERT INTO publications VALUES (?, ?, ?, ?)",
                    (attempt.key, str(dataset), folder, digest),
                )

    def publication(self, attempt_key: str) -> tuple[str, str] | None:
        """Folder and digest under which an attempt was published, if it was."""
        rows = self.query("SELECT folder, digest FROM publications WHERE attempt_key = ?", (attempt_key,))
        return (rows[0]["folder"], rows[0]["digest"]) if rows else None

    def attempt(self, key: str) -> Attempt | None:
        """The attempt with this key, if it ended before (an infra failure counts as ended but not final)."""
        rows = self.query("SELECT record FROM attempts WHERE key = ?", (key,))
        return self.attempt_from(rows[0]["record"]) if rows else None

    def attempt_from(self, record: str) -> Attempt:
        """Read a stored record.

        Raises:
            InfraError: boundary ``storage``; it is damaged.
        """
        try:
            return Attempt.model_validate_json(record)
        except ValueError as error:
            raise self.damaged("a record of an attempt does not hold what it must") from error

    def _json(self, text: str) -> dict[str, Any]:
        try:
            return json.loads(text)
        except ValueError as error:
            raise self.damaged(str(error)) from error


def _gate_rows(attempt: Attempt) -> Iterator[tuple[Any, ...]]:
    for position, gate in enumerate(attempt.verdict.gates if attempt.verdict else ()):
        digest = gate.evidence_digest()
        reason = gate.reason or ""
        yield (attempt.key, position, gate.gate, gate.outcome, reason, digest, gate.evidence, gate.seconds)
