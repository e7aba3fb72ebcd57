"""Tables of the ledger, as a list of migrations. Version N is reached by applying the first N of them.

A migration is never edited once released: a change is a new entry at the end. `PRAGMA user_version` holds the version
and is written in the same transaction, so a kill leaves either the old schema or the new one.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from skill2env.errors import UserError

_RUNS_TO_FREEZES = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    config TEXT NOT NULL,            -- JSON of RunConfig
    config_digest TEXT NOT NULL,
    author TEXT NOT NULL,            -- JSON of AuthorIdentity
    dataset TEXT NOT NULL,           -- folder that receives the tasks
    version TEXT NOT NULL,           -- of skill2env
    status TEXT NOT NULL,            -- running, finished, pending, budget, interrupted, failed
    started_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
    ended_at TEXT
) STRICT;

CREATE TABLE stage_results (
    key TEXT PRIMARY KEY,            -- digest of stage and inputs
    stage TEXT NOT NULL,
    subject TEXT NOT NULL,           -- what a person calls it; stable when an input changes
    inputs TEXT NOT NULL,            -- JSON object
    result TEXT NOT NULL,            -- JSON object
    stored_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
) STRICT;
CREATE INDEX stage_results_subject ON stage_results (stage, subject);

CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,               -- digest of everything the session was given
    run INTEGER REFERENCES runs (id),
    subject TEXT NOT NULL,
    phase TEXT NOT NULL,             -- plan, contract, solution, repair
    round INTEGER NOT NULL,
    outcome TEXT NOT NULL,           -- finished, or the boundary of an infra failure
    author TEXT NOT NULL,
    model TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    micro_dollars INTEGER,           -- NULL when the price is unknown
    ended_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
) STRICT;
CREATE UNIQUE INDEX sessions_once ON sessions (key) WHERE outcome = 'finished';

CREATE TABLE skills (
    run INTEGER NOT NULL REFERENCES runs (id),
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    status TEXT NOT NULL,            -- planned, skipped, infra
    reason TEXT NOT NULL,
    detail TEXT NOT NULL,
    workflows INTEGER NOT NULL,
    dropped TEXT NOT NULL,           -- JSON list of what the planner's answer lost, with reasons
    PRIMARY KEY (run, position)
) STRICT;

CREATE TABLE items (
    run INTEGER NOT NULL REFERENCES runs (id),
    position INTEGER NOT NULL,
    attempt_key TEXT NOT NULL,
    task_name TEXT NOT NULL,
    subject TEXT NOT NULL,
    PRIMARY KEY (run, position)
) STRICT;

CREATE TABLE attempts (
    key TEXT PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (id),
    task_name TEXT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    record TEXT NOT NULL             -- JSON of Attempt
) STRICT;

CREATE TABLE gate_runs (
    attempt_key TEXT NOT NULL REFERENCES attempts (key),
    position INTEGER NOT NULL,
    gate TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    evidence_digest TEXT NOT NULL,
    evidence TEXT NOT NULL,
    seconds REAL NOT NULL,
    PRIMARY KEY (attempt_key, position)
) STRICT;

CREATE TABLE freezes (
    task_name TEXT NOT NULL,
    digest TEXT NOT NULL,
    files TEXT NOT NULL,             -- JSON object: sealed path -> digest
    sealed_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
    PRIMARY KEY (task_name, digest)
) STRICT;
"""

_PUBLICATIONS = """
CREATE TABLE publications (
    attempt_key TEXT PRIMARY KEY REFERENCES attempts (key),
    dataset TEXT NOT NULL,           -- folder
    folder TEXT NOT NULL,            -- name of the task's folder inside it
    digest TEXT NOT NULL             -- Harbor's digest of the published task
) STRICT;
"""

_RESERVATIONS = """
CREATE TABLE reservations (
    key TEXT PRIMARY KEY,            -- of the session
    run INTEGER NOT NULL REFERENCES runs (id),
    subject TEXT NOT NULL,
    phase TEXT NOT NULL,
    round INTEGER NOT NULL,
    author TEXT NOT NULL,
    model TEXT NOT NULL,
    micro_dollars INTEGER NOT NULL   -- what the session may cost at most
) STRICT;
"""

_HOSTS = """
ALTER TABLE sessions ADD COLUMN hosts TEXT NOT NULL DEFAULT '[]';  -- JSON list: what was asked for through the proxy
ALTER TABLE sessions ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0;  -- 1: some tokens were estimated
"""

_SPENT = """
CREATE TABLE spent (
    run INTEGER NOT NULL REFERENCES runs (id),
    what TEXT NOT NULL,              -- a stage, or author/PART
    seconds REAL NOT NULL,           -- wall time of all workers together
    PRIMARY KEY (run, what)
) STRICT;
"""

MIGRATIONS: tuple[str, ...] = (_RUNS_TO_FREEZES, _PUBLICATIONS, _RESERVATIONS, _HOSTS, _SPENT)
"""Scripts that lead from each version to the next."""


def schema_version(connection: sqlite3.Connection) -> int:
    """Version of an open ledger; 0 for an empty file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    """Touch no database that somebody else made.

    Raises:
        UserError: it has tables and none of our schema versions.
    """
    if (
        schema_version(connection) == 0
        and connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    ):
        raise UserError(f"{path} is a database, but no ledger of skill2env", hint="use another --run folder")


def migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[str] = MIGRATIONS) -> int:
    """Bring an open ledger (autocommit mode) to the newest version; each step is one transaction.

    Returns:
        The version it had before.

    Raises:
        UserError: the ledger was written by a newer skill2env, or is somebody else's database.
    """
    refuse_foreign(connection, path)
    before = schema_version(connection)
    if before > len(migrations):
        raise UserError(
            f"{path} has schema version {before}; this skill2env knows {len(migrations)}",
            hint="upgrade skill2env, or use another --run folder",
        )
    for number in range(before, len(migrations)):
        connection.executescript(
            f"BEGIN IMMEDIATE;\n{migrations[number]}\nPRAGMA user_version = {number + 1};\nCOMMIT;"
        )
    return before
