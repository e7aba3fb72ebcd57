import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.errors import Boundary, InfraError
from skill2env.records import (
    Attempt,
    AttemptStatus,
    AuthorIdentity,
    Axes,
    GateOutcome,
    GateResult,
    Usage,
    Verdict,
    VerdictStatus,
)
from skill2env.store import report
from skill2env.store.ledger import Item, Ledger, SkillRow, changed_fields, content_key
from skill2env.store.schema import MIGRATIONS, schema_version

AUTHOR = AuthorIdentity(name="recorded", digest="sha256:aa")
AXES = Axes(archetype="a", verifier_pattern="v", complexity="c", persona="p", tone="t", expertise="e")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.sqlite") as opened:
        yield opened


def begin(ledger: Ledger) -> int:
    return ledger.begin_run(
        config={"seed": 1}, config_digest="sha256:cc", author=AUTHOR, dataset=Path("out"), version="0"
    )


def attempt(key: str, status: AttemptStatus, reason: str = "", gates: tuple[GateResult, ...] = ()) -> Attempt:
    return Attempt(
        key=key,
        task_name=f"org/{key}",
        skill_slug="s",
        skill_digest="sha256:dd",
        workflow="w",
        axes=AXES,
        author=AUTHOR,
        status=status,
        reason=reason,
        verdict=Verdict(status=VerdictStatus.ACCEPTED, gates=gates) if gates else None,
    )


def test_lookup_hits_the_same_inputs_and_names_the_changed_one(ledger: Ledger) -> None:
    inputs = {"skill": "sha256:1", "author": {"name": "code", "model": ""}, "prompt": "sha256:2"}
    assert ledger.lookup("plan", "csv", inputs).result is None
    key = ledger.store("plan", "csv", inputs, {"workflows": [1]})
    hit = ledger.lookup("plan", "csv", inputs)
    assert (hit.key, hit.result, hit.changed) == (key, {"workflows": [1]}, ())
    other = {**inputs, "author": {"name": "code", "model": "m"}, "prompt": "sha256:3"}
    miss = ledger.lookup("plan", "csv", other)
    assert miss.result is None
    assert miss.changed == ("author.model", "prompt")
    assert ledger.lookup("create", "csv", inputs).changed == ()
    assert ledger.lookup("plan", "other", other).changed == ()


def test_a_finished_result_is_never_replaced(ledger: Ledger) -> None:
    ledger.store("plan", "s", {"a": 1}, {"first": True})
    ledger.store("plan", "s", {"a": 1}, {"first": False})
    assert ledger.lookup("plan", "s", {"a": 1}).result == {"first": True}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda kids: st.lists(kids, max_size=3) | st.dictionaries(st.text(max_size=4), kids, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=4), json_values, max_size=4))
def test_keys_are_stable_and_nothing_changed_against_itself(inputs: dict[str, Any]) -> None:
    assert content_key("s", inputs) == content_key("s", dict(reversed(inputs.items())))
    assert changed_fields(inputs, inputs) == ()


@given(st.dictionaries(st.text(max_size=4), json_values, max_size=4), json_values)
def test_every_difference_is_named(inputs: dict[str, Any], value: Any) -> None:
    changed = {**inputs, "new-key": value}
    assert bool(changed_fields(inputs, changed)) == (value is not None)


def test_sessions_count_once_and_totals_are_queries(ledger: Ledger) -> None:
    run = begin(ledger)
    usage = Usage(model="m", input_tokens=10, output_tokens=5, cached_tokens=2, micro_dollars=1_500, turns=3)

    def add(key: str, usage: Usage, outcome: str = "finished") -> bool:
        return ledger.add_session(
            key, run=run, subject="t", phase="contract", round_=0, author=AUTHOR, usage=usage, outcome=outcome
        )

    assert add("k1", usage)
    assert not add("k1", usage)
    assert add("k2", usage.model_copy(update={"micro_dollars": None}))
    assert add("k3", usage, "provider")
    assert add("k3", usage, "provider"), "each failed call was paid for"
    assert add("k3", usage)
    spent = report.spend(ledger)
    assert (spent.sessions, spent.micro_dollars, spent.unpriced) == (5, 6_000, 1)
    assert (spent.input_tokens, spent.output_tokens, spent.cached_tokens) == (50, 25, 10)


def test_attempts_reasons_and_gates(ledger: Ledger) -> None:
    run = begin(ledger)
    ledger.set_skills(
        run,
        [SkillRow("s", "sha256:dd", "planned", workflows=4), SkillRow("k", "sha256:ee", "skipped", "unsafe")],
    )
    ledger.set_items(run, [Item(k, f"org/{k}", f"s/{k}") for k in ("a", "b", "c", "d", "e")])
    gates = (GateResult(gate="nop", outcome=GateOutcome.PASSED, values={"m": 0.0}, seconds=1.0),)
    published = attempt("b", AttemptStatus.PUBLISHED, gates=gates)
    ledger.put_attempt(run, published, dataset=Path("out"), folder="b", digest="sha256:ff")
    ledger.put_attempt(run, attempt("a", AttemptStatus.REJECTED, "lint"))
    ledger.put_attempt(run, attempt("c", AttemptStatus.REJECTED, "lint"))
    ledger.put_attempt(run, attempt("d", AttemptStatus.INFRA, "sandbox"))
    assert ledger.attempt("b") == published
    assert [a.key for a in report.attempts(ledger, run)] == ["a", "b", "c", "d"]
    table = [(r.status, r.reason, r.count, r.example) for r in report.reasons(ledger, run)]
    assert table == [
        ("published", "", 1, "org/b"),
        ("rejected", "lint", 2, "org/a"),
        ("skipped", "unsafe", 1, "k"),
        ("infra", "sandbox", 1, "org/d"),
        ("pending", "", 1, "org/e"),
    ]
    assert report.unfinished(ledger, run) == 2
    assert ledger.query("SELECT gate, evidence_digest FROM gate_runs") == [
        {"gate": "nop", "evidence_digest": gates[0].evidence_digest()}
    ]
    assert report.latest_run(ledger) == run
    ledger.put_attempt(
        run, attempt("d", AttemptStatus.PUBLISHED), dataset=Path("out"), folder="d", digest="x"
    )
    assert report.unfinished(ledger, run) == 1
    ledger.set_spent(run, {"verify": 2.5, "author/draft": 1.0004})
    ledger.set_spent(run, {"verify": 3.5, "author/draft": 1.0004})
    summary = report.summary(ledger, run)
    assert summary["seconds"] == {"author/draft": 1.0, "verify": 3.5, "gate/nop": 1.0}
    assert summary["counts"] == {"published": 2, "rejected": 2, "skipped": 0, "infra": 0}
    assert [s["status"] for s in summary["skills"]] == ["planned", "skipped"]


def test_runs_are_listed_with_their_end(ledger: Ledger) -> None:
    assert report.latest_run(ledger) is None
    first, second = begin(ledger), begin(ledger)
    ledger.end_run(first, "interrupted")
    listed = report.runs(ledger)
    assert [(r.run, r.status, r.author) for r in listed] == [
        (first, "interrupted", "recorded"),
        (second, "running", "recorded"),
    ]
    assert listed[0].ended_at
    assert not listed[1].ended_at
    assert report.latest_run(ledger) == second


def test_a_failed_transaction_keeps_nothing(ledger: Ledger) -> None:
    run = begin(ledger)
    with pytest.raises(InfraError, match="FOREIGN KEY"):
        ledger.put_attempt(run + 7, attempt("a", AttemptStatus.REJECTED, "lint"))
    assert ledger.attempt("a") is None
    ledger.put_attempt(run, attempt("a", AttemptStatus.REJECTED, "lint"))


def test_many_threads_one_ledger(ledger: Ledger) -> None:
    run = begin(ledger)

    def work(number: int) -> None:
        for turn in range(20):
            ledger.store("s", f"{number}", {"n": number, "t": turn}, {"t": turn})
            ledger.put_attempt(run, attempt(f"{number}-{turn}", AttemptStatus.REJECTED, "lint"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.query("SELECT count(*) AS n FROM stage_results") == [{"n": 120}]
    assert ledger.query("SELECT count(*) AS n FROM attempts") == [{"n": 120}]


def test_reading_while_another_connection_writes(ledger: Ledger) -> None:
    run = begin(ledger)
    with ledger.transaction() as db:
        db.execute("UPDATE runs SET status = 'finished' WHERE id = ?", (run,))
        with Ledger.read(ledger.path) as reader:
            assert [row.status for row in report.runs(reader)] == ["running"]
    with Ledger.read(ledger.path) as reader:
        assert [row.status for row in report.runs(reader)] == ["finished"]


# ------------------------------------------------------------------------------------------------ schema


def old_ledger(path: Path) -> None:
    """A ledger as version 1 left it, with one run and one attempt."""
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript(MIGRATIONS[0])
    db.execute("PRAGMA user_version = 1")
    db.execute(
        "INSERT INTO runs (config, config_digest, author, dataset, version, status)"
        """ VALUES ('{"seed":1}', 'sha256:cc', '{"name":"recorded"}', 'out', '0.0.1', 'finished')"""
    )
    record = attempt("a", AttemptStatus.REJECTED, "lint").model_dump_json()
    db.execute("INSERT INTO attempts VALUES ('a', 1, 'org/a', 'rejected', 'lint', ?)", (record,))
    db.close()


def test_an_old_ledger_is_migrated_with_its_content(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    old_ledger(path)
    with Ledger.read(path) as reader:
        assert reader.query("SELECT * FROM publications") == []
    with sqlite3.connect(path) as db:
        assert schema_version(db) == 1, "reading must not migrate the file"
    db.close()
    with Ledger.open(path) as ledger:
        assert ledger.attempt("a") == attempt("a", AttemptStatus.REJECTED, "lint")
        assert [row.version for row in report.runs(ledger)] == ["0.0.1"]
        ledger.put_attempt(
            1, attempt("b", AttemptStatus.PUBLISHED), dataset=Path("o"), folder="b", digest="d"
        )
    db = sqlite3.connect(path)
    assert schema_version(db) == len(MIGRATIONS)
    db.close()


@pytest.mark.parametrize(
    ("damage", "read"),
    [
        ("UPDATE attempts SET record = '{}'", lambda ledger: ledger.attempt("k")),
        ("UPDATE attempts SET record = '{}'", lambda ledger: report.attempts(ledger, 1)),
        ("UPDATE stage_results SET result = '['", lambda ledger: ledger.results("plan")),
        ("UPDATE stage_results SET result = '['", lambda ledger: ledger.lookup("plan", "s", {"a": 1})),
        ("UPDATE stage_results SET inputs = '['", lambda ledger: ledger.lookup("plan", "s", {"a": 2})),
    ],
)
def test_a_damaged_record_is_no_bug(ledger: Ledger, damage: str, read: Callable[[Ledger], object]) -> None:
    run = begin(ledger)
    ledger.set_items(run, [Item("k", "org/k", "s")])
    ledger.put_attempt(run, attempt("k", AttemptStatus.REJECTED, "malformed"))
    ledger.store("plan", "s", {"a": 1}, {})
    with ledger.transaction() as db:
        db.execute(damage)
    with pytest.raises(InfraError, match="is damaged") as caught:
        read(ledger)
    assert caught.value.boundary is Boundary.STORAGE
