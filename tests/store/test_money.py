"""Money that is set aside for sessions: settled, given back, or lost to a kill."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from skill2env.records import AuthorIdentity, Usage
from skill2env.store import report
from skill2env.store.ledger import LOST, Ledger

AUTHOR = AuthorIdentity(name="builtin", model="m")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.sqlite") as opened:
        opened.begin_run(config={}, config_digest="d", author=AUTHOR, dataset=tmp_path / "out", version="1")
        yield opened


def reserve(ledger: Ledger, key: str, subject: str = "t", amount: int = 500) -> None:
    ledger.reserve(
        key, run=1, subject=subject, phase="contract", round_=0, author=AUTHOR, micro_dollars=amount
    )


def settle(ledger: Ledger, key: str, cost: int, outcome: str = "finished") -> None:
    usage = Usage(model="m", micro_dollars=cost)
    ledger.add_session(
        key, run=1, subject="t", phase="contract", round_=0, author=AUTHOR, usage=usage, outcome=outcome
    )


def test_settling_replaces_what_was_set_aside(ledger: Ledger) -> None:
    reserve(ledger, "a")
    reserve(ledger, "b", "other", 70)
    assert (ledger.reserved(), ledger.reserved("t"), report.spend(ledger).micro_dollars) == (570, 500, 0)
    settle(ledger, "a", 120)
    assert (ledger.reserved(), report.spend(ledger).micro_dollars) == (70, 120)
    ledger.release("b")
    assert ledger.reserved() == 0


def test_a_failed_session_settles_too(ledger: Ledger) -> None:
    reserve(ledger, "a")
    settle(ledger, "a", 30, outcome="provider")
    assert (ledger.reserved(), report.spend(ledger).micro_dollars) == (0, 30)


def test_what_a_kill_leaves_counts_as_spent(ledger: Ledger) -> None:
    reserve(ledger, "a")
    reserve(ledger, "b", amount=7)
    assert ledger.settle_lost() == 2
    assert ledger.settle_lost() == 0
    assert (ledger.reserved(), report.spend(ledger).micro_dollars) == (0, 507)
    assert {row["outcome"] for row in ledger.query("SELECT outcome FROM sessions")} == {LOST}
    settle(ledger, "a", 100)
    assert report.spend(ledger).micro_dollars == 607, "held again, and paid again"


def test_an_older_ledger_gets_the_table(tmp_path: Path) -> None:
    import sqlite3

    from skill2env.store.schema import MIGRATIONS, migrate

    path = tmp_path / "old.sqlite"
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection, path, MIGRATIONS[:2])
    connection.close()
    with Ledger.open(path) as opened:
        assert opened.reserved() == 0
