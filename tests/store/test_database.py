"""The ledger's file: schemas, damage, full and read-only disks, kill -9."""

import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.store.ledger import Ledger
from skill2env.store.schema import MIGRATIONS


def test_every_version_leads_to_the_same_schema(tmp_path: Path) -> None:
    def tables(path: Path) -> list[Any]:
        db = sqlite3.connect(path)
        try:
            return db.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()
        finally:
            db.close()

    Ledger.open(tmp_path / "new").close()
    for start in range(len(MIGRATIONS)):
        path = tmp_path / f"from-{start}"
        Ledger.open(path, MIGRATIONS[:start]).close()
        Ledger.open(path).close()
        assert tables(path) == tables(tmp_path / "new")


def test_a_failing_migration_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    Ledger.open(path).close()
    broken = (*MIGRATIONS, "CREATE TABLE extra (a); INSERT INTO nowhere VALUES (1);")
    with pytest.raises(InfraError, match="nowhere"):
        Ledger.open(path, broken)
    with Ledger.open(path) as ledger:
        assert ledger.query("SELECT name FROM sqlite_master WHERE name = 'extra'") == []


def test_a_newer_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    Ledger.open(path, (*MIGRATIONS, "CREATE TABLE future (a);")).close()
    for opener in (Ledger.open, Ledger.read):
        with pytest.raises(UserError, match="schema version") as caught:
            opener(path)
        assert "upgrade" in caught.value.hint


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(UserError, match="no ledger of skill2env"):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"not a database at all" * 100)
    for opener in (Ledger.open, Ledger.read):
        with pytest.raises(InfraError) as caught:
            opener(path)
        assert caught.value.boundary is Boundary.STORAGE
        assert "damaged" in caught.value.hint


# ------------------------------------------------------------------------------------------------ disk and kill


def test_full_disk_is_a_storage_failure_and_keeps_what_was_stored(small_disk: Callable[[str], Path]) -> None:
    path = small_disk("size=1m") / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        stored: list[int] = []

        def fill() -> None:
            for number in range(1000):
                ledger.store("s", "s", {"n": number}, {"blob": "x" * 20_000})
                stored.append(number)

        with pytest.raises(InfraError) as caught:
            fill()
        assert caught.value.boundary is Boundary.STORAGE
        assert "full" in caught.value.message
        assert len(stored) > 1
        for number in stored:
            assert ledger.lookup("s", "s", {"n": number}).result is not None
        assert ledger.lookup("s", "s", {"n": len(stored)}).result is None


def test_reading_from_a_read_only_disk(small_disk: Callable[[str], Path]) -> None:
    folder = small_disk("size=4m")
    with Ledger.open(folder / "ledger.sqlite") as ledger:
        ledger.store("s", "s", {"n": 1}, {"n": 1})
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    with Ledger.read(folder / "ledger.sqlite") as reader:
        assert reader.lookup("s", "s", {"n": 1}).result == {"n": 1}


WRITER = """
import sys
from pathlib import Path
from skill2env.store.ledger import Ledger
with Ledger.open(Path(sys.argv[1])) as ledger:
    number = int(sys.argv[2])
    while True:
        ledger.store("s", "s", {"n": number}, {"n": number})
        print(number, flush=True)
        number += 1
"""


def test_kill_loses_nothing_that_was_reported(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    rng = random.Random(2)
    reached = -1
    for _ in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(reached + 1)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(rng.uniform(0.0, 0.1))
        child.send_signal(signal.SIGKILL)
        out, _ = child.communicate()
        lines = [int(line) for line in out.split()]
        reached = max([reached + 1, *lines])
    with Ledger.open(path) as ledger:
        assert ledger.query("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
        for number in range(reached + 1):
            assert ledger.lookup("s", "s", {"n": number}).result == {"n": number}
