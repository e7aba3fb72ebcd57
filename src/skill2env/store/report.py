"""Questions to the ledger: what a run consists of, where its items ended and why, what it cost. Nothing is stored."""

import json
from dataclasses import dataclass
from typing import Any

from skill2env.records import Attempt, AttemptStatus, canonical_json
from skill2env.store.ledger import Ledger


@dataclass(frozen=True, slots=True)
class RunRow:
    """One call of ``compile`` on a run folder."""

    run: int
    status: str
    """``running`` also stands for a run that was killed; `RunFolder.holder` tells them apart."""
    started_at: str
    ended_at: str
    version: str
    author: str
    dataset: str
    config: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """One line of the reasons table."""

    status: str
    """``published``, ``rejected``, ``skipped``, ``infra`` or ``pending``."""
    reason: str
    """Value of `Reason`, `SkipReason` or `Boundary`; empty for published and pending."""
    count: int
    example: str
    """Task or skill that ended so, the first in canonical order."""


@dataclass(frozen=True, slots=True)
class Spend:
    """What all sessions of a run folder cost together, failed ones included."""

    sessions: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    micro_dollars: int
    unpriced: int
    """Sessions whose price is unknown; they count 0 in `micro_dollars`."""


def runs(ledger: Ledger) -> list[RunRow]:
    """All runs, oldest first."""
    rows = ledger.query("SELECT * FROM runs ORDER BY id")
    return [
        RunRow(
            run=row["id"],
            status=row["status"],
            started_at=row["started_at"],
            ended_at=row["ended_at"] or "",
            version=row["version"],
            author=json.loads(row["author"])["name"],
            dataset=row["dataset"],
            config=json.loads(row["config"]),
        )
        for row in rows
    ]


def latest_run(ledger: Ledger) -> int | None:
    """Number of the latest run that got as far as naming its items, else of the latest run, else None."""
    rows = ledger.query("SELECT max(run) AS run FROM items")
    if rows[0]["run"] is None:
        rows = ledger.query("SELECT max(id) AS run FROM runs")
    return rows[0]["run"]


def attempts(ledger: Ledger, run: int) -> list[Attempt]:
    """Attempts that ended (an infra failure included), in canonical order of the run's items."""
    rows = ledger.query(
        "SELECT a.record FROM items i JOIN attempts a ON a.key = i.attempt_key WHERE i.run = ? ORDER BY i.position",
        (run,),
    )
    return [ledger.attempt_from(row["record"]) for row in rows]


def reasons(ledger: Ledger, run: int) -> list[ReasonRow]:
    """Where every skill and item of a run stands: published first, then by falling count."""
    rows = ledger.query(
        "SELECT coalesce(a.status, 'pending') AS status, coalesce(a.reason, '') AS reason,"
        " count(*) AS count, i.task_name AS example, min(i.position)"
        " FROM items i LEFT JOIN attempts a ON a.key = i.attempt_key WHERE i.run = ?"
        " GROUP BY 1, 2"
        " UNION ALL SELECT status, reason, count(*), name, min(position) FROM skills"
        " WHERE run = ? AND status != 'planned' GROUP BY 1, 2",
        (run, run),
    )
    merged: dict[tuple[str, str], ReasonRow] = {}
    for row in rows:
        key = (row["status"], row["reason"])
        before = merged.get(key)
        count = row["count"] + (before.count if before else 0)
        merged[key] = ReasonRow(*key, count, before.example if before else row["example"])
    order = [*AttemptStatus, "pending"]
    return sorted(merged.values(), key=lambda row: (order.index(row.status), -row.count, row.reason))


def unfinished(ledger: Ledger, run: int) -> int:
    """Skills and items of a run that are not final: never reached, or ended in an infra failure."""
    return sum(row.count for row in reasons(ledger, run) if row.status in ("pending", AttemptStatus.INFRA))


def spend(ledger: Ledger, subject: str = "") -> Spend:
    """Sum over all sessions of the run folder, or over those of one skill or task."""
    row = ledger.query(
        "SELECT count(*) AS sessions, coalesce(sum(input_tokens), 0) AS input_tokens,"
        " coalesce(sum(output_tokens), 0) AS output_tokens, coalesce(sum(cached_tokens), 0) AS cached_tokens,"
        " coalesce(sum(micro_dollars), 0) AS micro_dollars,"
        " coalesce(sum(micro_dollars IS NULL), 0) AS unpriced FROM sessions WHERE ? = '' OR subject = ?",
        (subject, subject),
    )[0]
    return Spend(**row)


def seconds(ledger: Ledger, run: int) -> dict[str, float]:
    """Where the time of a run went: wall seconds of all workers together by stage, ``author/PART`` and ``gate/NAME``.

    Parts and gates lie within ``plan``, ``create`` and ``verify``. A run that was killed has no stages; gates
    are those that its verdicts rest on, whichever run asked them.
    """
    found = ledger.query("SELECT what, seconds FROM spent WHERE run = ? ORDER BY what", (run,))
    gates = ledger.query(
        "SELECT 'gate/' || g.gate AS what, sum(g.seconds) AS seconds FROM items i JOIN gate_runs g"
        " ON g.attempt_key = i.attempt_key WHERE i.run = ? GROUP BY g.gate ORDER BY min(g.position)",
        (run,),
    )
    return {row["what"]: round(row["seconds"], 3) for row in (*found, *gates)}


def summary(ledger: Ledger, run: int) -> dict[str, Any]:
    """Everything a script wants to know about a run, as plain data."""
    listed = attempts(ledger, run)
    cost = spend(ledger)
    return {
        "run": run,
        "counts": {status.value: sum(a.status is status for a in listed) for status in AttemptStatus},
        "unfinished": unfinished(ledger, run),
        "reasons": [
            {"status": r.status, "reason": r.reason, "count": r.count, "example": r.example}
            for r in reasons(ledger, run)
        ],
        "attempts": [json.loads(canonical_json(attempt)) for attempt in listed],
        "skills": ledger.query(
            "SELECT name, digest, status, reason, detail, workflows, dropped FROM skills WHERE run = ?"
            " ORDER BY position",
            (run,),
        ),
        "seconds": seconds(ledger, run),
        "spend": {name: getattr(cost, name) for name in Spend.__slots__},
    }
