"""The SQLite file below the ledger: opening, reading, transactions, and what its failures mean.

Covers: kill -9 at any moment (WAL), threads (one connection behind one lock: a single writer), readers in other
processes while a run writes. Power loss never damages it, but may take the last facts, which are then found out again.
Does not cover: two writing processes (the run folder is locked), network filesystems without locks.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from skill2env.store.schema import MIGRATIONS, migrate, refuse_foreign
from skill2env.store.sqlite import SqliteFile, prepare


class Database(SqliteFile):
    """An open ledger file. Use as a context manager; every method may be called from any thread."""

    WHAT = "the ledger"
    DAMAGED = "the file is damaged: move it away to start afresh, or restore it from a backup"
    OTHERWISE = "finished work is kept; make room or free the folder, then run the same command again"

    @classmethod
    def open(cls, path: Path, migrations: Sequence[str] = MIGRATIONS) -> Self:
        """Open for writing; a missing file is made, an older schema is migrated.

        Raises:
            UserError: the file was written by a newer version.
            InfraError: boundary ``storage``; it cannot be opened, or is damaged.
        """
        with cls.guard("opening", path):
            connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
            try:
                refuse_foreign(connection, path)
                prepare(connection)
                migrate(connection, path, migrations)
            except BaseException:
                connection.close()
                raise
        return cls(connection, path)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Open for reading only, also while another process writes; an older schema is read through a copy in memory.

        Raises:
            UserError: the file was written by a newer version.
            InfraError: boundary ``storage``; it cannot be opened, or is damaged.
        """
        with cls.guard("reading", path):
            connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            try:
                _copy_into(connection, path)
                migrate(connection, path)
            except BaseException:
                connection.close()
                raise
        return cls(connection, path)


def _copy_into(memory: sqlite3.Connection, path: Path) -> None:
    """Copy a ledger file; on a read-only medium without a write-ahead log it is opened as immutable."""
    for option in ("mode=ro", "immutable=1"):
        source = sqlite3.connect(f"{path.absolute().as_uri()}?{option}", uri=True, timeout=30)
        try:
            source.backup(memory)
            return
        except sqlite3.OperationalError:
            if option == "immutable=1":
                raise
        finally:
            source.close()
