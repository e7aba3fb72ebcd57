"""The SQLite file below the index: schema, opening, transactions, and what its failures mean.

Everything in it can be made again from the sources, so a file of another version is refused with that advice instead
of being migrated. Covers: kill -9 at any moment (WAL), readers in other processes while a sync writes.
"""

import sqlite3
from pathlib import Path
from typing import Self

from skill2env.errors import UserError
from skill2env.store.sqlite import SqliteFile, prepare

VERSION = 1
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;

CREATE TABLE sources (
    id TEXT PRIMARY KEY,
    spec TEXT NOT NULL,              -- JSON of SourceSpec
    state TEXT NOT NULL,             -- what was brought in: equal when nothing changed since
    revision TEXT NOT NULL,
    origin TEXT NOT NULL,
    sha256 TEXT NOT NULL,            -- of the archive, as hex; empty where there is none
    status TEXT NOT NULL,            -- SourceStatus
    error TEXT NOT NULL,
    diagnostics TEXT NOT NULL        -- JSON list of Diagnostic: what was left out
) STRICT;

CREATE TABLE skills (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    slug TEXT NOT NULL,
    description TEXT NOT NULL,
    body TEXT NOT NULL,
    language TEXT NOT NULL,
    entry TEXT NOT NULL,
    files INTEGER NOT NULL,
    size INTEGER NOT NULL,           -- bytes
    scripts INTEGER NOT NULL,
    missing INTEGER NOT NULL,
    diagnostics TEXT NOT NULL,       -- JSON list of Diagnostic, about the content alone
    exam TEXT NOT NULL DEFAULT '',   -- key of the examination; see hub.examine
    verdict TEXT NOT NULL DEFAULT '',
    domain TEXT NOT NULL DEFAULT '',
    confidence REAL NOT NULL DEFAULT 0,
    source TEXT NOT NULL DEFAULT '', -- the place that speaks for it
    path TEXT NOT NULL DEFAULT '',
    spdx TEXT NOT NULL DEFAULT '',
    evidence TEXT NOT NULL DEFAULT 'none',
    allowed INTEGER NOT NULL DEFAULT 0,
    licence_reason TEXT NOT NULL DEFAULT '',
    representative TEXT NOT NULL DEFAULT '', -- digest; its own when it stands for itself
    likeness TEXT NOT NULL DEFAULT '',
    jaccard REAL NOT NULL DEFAULT 1,
    chosen INTEGER NOT NULL DEFAULT 0 -- allowed, verdict compile, stands for itself
) STRICT;
CREATE INDEX skills_by_name ON skills (name);

CREATE TABLE flags (
    skill INTEGER NOT NULL REFERENCES skills (id) ON DELETE CASCADE,
    rule TEXT NOT NULL,
    topic TEXT NOT NULL,             -- group of the rule
    verdict TEXT NOT NULL,           -- what it leads to; compile for a note that changes nothing
    score REAL NOT NULL,
    file TEXT NOT NULL,
    start INTEGER NOT NULL,          -- span in the file's text, in characters
    stop INTEGER NOT NULL,
    excerpt TEXT NOT NULL
) STRICT;
CREATE INDEX flags_by_skill ON flags (skill, rule);

CREATE TABLE origins (
    source TEXT NOT NULL,
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    sync INTEGER NOT NULL,           -- number of the sync that saw it last
    record TEXT NOT NULL,            -- JSON of Origin
    PRIMARY KEY (source, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX origins_by_digest ON origins (digest);

CREATE VIRTUAL TABLE texts USING fts5(
    name, description, body, content='skills', content_rowid='id', tokenize='unicode61 remove_diacritics 2'
);
"""

_SEEN = """
CREATE TABLE IF NOT EXISTS seen (    -- places of sources that are read where they are
    source TEXT NOT NULL,
    path TEXT NOT NULL,
    state TEXT NOT NULL,             -- names, sizes and times before it was read; see hub.unchanged
    PRIMARY KEY (source, path)
) STRICT, WITHOUT ROWID
"""


class Database(SqliteFile):
    """An open index file. Use as a context manager, from one thread."""

    WHAT = "the index"
    DAMAGED = "the file is damaged: move it away, the next `skill2env hub sync` makes it again"
    OTHERWISE = "make room or free the folder, then run the same command again"

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open for writing; a missing file is made.

        Raises:
            UserError: the file is of another version, or somebody else's.
            InfraError: boundary ``storage``; it cannot be opened, or is damaged.
        """
        with cls.guard("opening", path):
            connection = sqlite3.connect(path, timeout=30, isolation_level=None)
            try:
                prepare(connection)
                connection.execute("PRAGMA cache_size = -65536")
                _check(connection, path, make=True)
                connection.execute(_SEEN)
            except BaseException:
                connection.close()
                raise
        return cls(connection, path)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Open for reading, also while another process writes.

        Raises:
            UserError: there is no index yet, or it is of another version.
            InfraError: boundary ``storage``; it cannot be opened, or is damaged.
        """
        if not path.is_file():
            raise UserError(f"nothing was synced yet: {path} is missing", hint="run `skill2env hub sync`")
        with cls.guard("opening", path):
            connection = _read_only(path)
            try:
                _check(connection, path, make=False)
            except BaseException:
                connection.close()
                raise
        return cls(connection, path)


def _read_only(path: Path) -> sqlite3.Connection:
    """A reading connection; on a read-only medium without a write-ahead log the file is opened as immutable."""
    address = path.absolute().as_uri()
    connection = sqlite3.connect(f"{address}?mode=ro", uri=True, timeout=30, isolation_level=None)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError:
        connection.close()
        connection = sqlite3.connect(f"{address}?immutable=1", uri=True, timeout=30, isolation_level=None)
    return connection


def _check(connection: sqlite3.Connection, path: Path, *, make: bool) -> None:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version == VERSION:
        return
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if make and version == 0 and not tables:
        connection.executescript(f"BEGIN IMMEDIATE;\n{_SCHEMA}\nPRAGMA user_version = {VERSION};\nCOMMIT;")
        return
    raise UserError(
        f"{path} is an index of another version, or none",
        hint="move it away; the next `skill2env hub sync` makes it again",
    )
