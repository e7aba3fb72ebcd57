"""One SQLite file: transactions, reading, and what its failures mean. The ledger and the hub's index stand on it."""

import sqlite3
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

from skill2env.errors import Boundary, InfraError


class SqliteFile:
    """An open file. Use as a context manager; methods may be called from any thread the connection allows."""

    WHAT: ClassVar[str]
    """What people call it, with its article."""
    DAMAGED: ClassVar[str]
    """What to do when it is damaged."""
    OTHERWISE: ClassVar[str]
    """What to do when it cannot be read or written for another reason."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._lock = threading.RLock()
        self.path = path

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
        with self._lock, self.guard("writing", self.path):
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
        with self._lock:
            return list(self.rows(sql, parameters))

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> Iterable[dict[str, Any]]:
        """As `query`, one row after the other; not for several threads.

        Raises:
            InfraError: boundary ``storage``.
        """
        with self.guard("reading", self.path):
            cursor = self._connection.execute(sql, parameters)
            names = [column[0] for column in cursor.description]
            for row in cursor:
                yield dict(zip(names, row, strict=True))

    def value(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """First column of the first row; None when there is none.

        Raises:
            InfraError: boundary ``storage``.
        """
        with self._lock, self.guard("reading", self.path):
            row = self._connection.execute(sql, parameters).fetchone()
        return row[0] if row else None

    def damaged(self, what: str) -> InfraError:
        """The error to raise when what was read cannot be what was written."""
        return InfraError(
            Boundary.STORAGE, f"{self.path} is damaged: {what}", hint=self.DAMAGED, transient=False
        )

    @classmethod
    @contextmanager
    def guard(cls, doing: str, path: Path) -> Generator[None]:
        """Say of a failure of the database what was being done, and what to do now.

        Raises:
            InfraError: boundary ``storage``.
        """
        try:
            yield
        except sqlite3.DatabaseError as error:
            text = str(error)
            damaged = "malformed" in text or "not a database" in text
            raise InfraError(
                Boundary.STORAGE,
                f"{doing} {cls.WHAT} failed: {path}: {text}",
                hint=cls.DAMAGED if damaged else cls.OTHERWISE,
                transient=False,
            ) from error


def prepare(connection: sqlite3.Connection) -> None:
    """Settings of a connection that writes: kill -9 at any moment, readers in other processes, foreign keys."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")
