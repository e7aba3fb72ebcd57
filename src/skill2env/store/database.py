"""The SQLite file below the ledger: opening, reading, transactions, and what its failures mean.

Covers: kill -9 at any moment (WAL), threads (one connection behind one lock: a single writer), readers in other
processes while a run writes. Power loss never damages it, but may take the last facts, which are then found out again.
Does not cover: two writing processes (the run folder is locked), network filesystems without locks.
"""

import sqlite3
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from skill2env.errors import Boundary, InfraError
from skill2env.store.schema import MIGRATIONS, migrate, refuse_foreign

_DAMAGED_HINT = "the file is damaged: move it away to start afresh, or restore it from a backup"


class Database:
    """An open ledger file. Use as a context manager; every method may be called from any thread."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._lock = threading.RLock()
        self.path = path

    @classmethod
    def open(cls, path: Path, migrations: Sequence[str] = MIGRATIONS) -> Self:
        """Open for writing; a missing file is made, an older schema is migrated.

        Raises:
            UserError: the file was written by a newer version.
            InfraError: boundary ``storage``; it cannot be opened, or is damaged.
        """
        with _guard("opening the ledger", path):
            connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
            try:
                refuse_foreign(connection, path)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("PRAGMA foreign_keys = ON")
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
        with _guard("reading the ledger", path):
            connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            try:
                _copy_into(connection, path)
                migrate(connection, path)
            except BaseException:
                connection.close()
                raise
        return cls(connection, path)

    def close(self) -> None:
        """Close the file. Idempotent."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """One all-or-nothing write; other threads wait.

        Raises:
            InfraError: boundary ``storage``; nothing of the transaction is kept.
        """
        with self._lock, _guard("writing the ledger", self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Rows of a SELECT as dictionaries.

        Raises:
            InfraError: boundary ``storage``.
        """
        with self._lock, _guard("reading the ledger", self.path):
            cursor = self._connection.execute(sql, parameters)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def damaged(self, what: str) -> InfraError:
        """The error to raise when what was read cannot be what was written."""
        return InfraError(
            Boundary.STORAGE, f"{self.path} is damaged: {what}", hint=_DAMAGED_HINT, transient=False
        )


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


@contextmanager
def _guard(doing: str, path: Path) -> Generator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        damaged = "malformed" in text or "not a database" in text
        hint = (
            _DAMAGED_HINT
            if damaged
            else "finished work is kept; make room or free the folder, then run the same command again"
        )
        raise InfraError(
            Boundary.STORAGE, f"{doing} failed: {path}: {text}", hint=hint, transient=False
        ) from error
