"""Is a run folder, with its dataset, what the ledger says? Every problem is a sentence; nothing is mended here.

Checked: the ledger's own structure; every item ends once; every kept candidate still has the digest of its seal and the
seal is in the ledger; gates, records and published provenance name the same evidence; everything published lies in the
dataset under the digest that was noted; nothing lies in either folder that nobody knows of.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from skill2env.create.freeze import freeze_digest
from skill2env.errors import UserError
from skill2env.publish.dataset import INDEX_NAME, read_state
from skill2env.publish.entry import TaskEntry
from skill2env.publish.integrity import problems as dataset_problems
from skill2env.records import Attempt, AttemptStatus, GateOutcome
from skill2env.store import report
from skill2env.store.files import TEMPORARY_PREFIX
from skill2env.store.ledger import FINISHED, Ledger
from skill2env.store.run_folder import RunFolder


@dataclass(slots=True)
class AuditReport:
    """What was looked at, and what is wrong."""

    checked: Counter[str] = field(default_factory=Counter[str])
    """What -> how many."""
    problems: list[str] = field(default_factory=list[str])
    """Sorted sentences; empty when everything agrees."""


def audit(run: Path, dataset: Path | None = None) -> AuditReport:
    """Compare a run folder and its dataset with the ledger.

    Args:
        run: the run folder. Nobody should be working in it meanwhile.
        dataset: the dataset folder; None takes the one that the latest run named.

    Raises:
        UserError: it is no run folder, or holds no run.
        InfraError: boundary ``storage``; the ledger cannot be read.
    """
    folder = RunFolder(run)
    folder.require()
    found = AuditReport()
    with Ledger.read(folder.ledger) as ledger:
        listed = report.runs(ledger)
        if not listed:
            raise UserError(f"{run} holds no run yet", hint="skill2env compile PATH --run DIR")
        place = dataset or Path(listed[-1].dataset)
        attempts = [
            ledger.attempt_from(row["record"])
            for row in ledger.query("SELECT record FROM attempts ORDER BY task_name, key")
        ]
        found.checked["attempts"] = len(attempts)
        for check in (
            _ledger(ledger),
            _items(ledger, listed[-1].run),
            _candidates(ledger, folder, attempts, found),
            _gates(ledger, attempts),
            _sessions(ledger, folder, found),
            _orphans(ledger, folder, attempts),
            _published(ledger, attempts, place, found),
        ):
            found.problems += check
    found.problems = sorted(set(found.problems))
    return found


def _ledger(ledger: Ledger) -> Iterator[str]:
    for row in ledger.query("PRAGMA integrity_check"):
        if row["integrity_check"] != "ok":
            yield f"ledger: {row['integrity_check']}"
    for row in ledger.query("PRAGMA foreign_key_check"):
        yield f"ledger: a row of {row['table']} points to nothing"


def _items(ledger: Ledger, run: int) -> Iterator[str]:
    rows = ledger.query("SELECT attempt_key, task_name FROM items WHERE run = ?", (run,))
    for column in ("attempt_key", "task_name"):
        for value, count in Counter(row[column] for row in rows).items():
            if count > 1:
                yield f"{value}: planned {count} times in one run"
    for row in ledger.query(
        "SELECT a.task_name FROM attempts a LEFT JOIN items i ON i.attempt_key = a.key WHERE i.run IS NULL"
    ):
        yield f"{row['task_name']}: ended without having been planned"


def _candidates(
    ledger: Ledger, folder: RunFolder, attempts: list[Attempt], found: AuditReport
) -> Iterator[str]:
    """Every kept candidate lies where the record says, as it was sealed."""
    seals = {
        (row["task_name"], row["digest"]) for row in ledger.query("SELECT task_name, digest FROM freezes")
    }
    made = {result["path"]: result for _, result in ledger.results("create")}
    for attempt in attempts:
        if not attempt.candidate:
            if attempt.status is AttemptStatus.PUBLISHED:
                yield f"{attempt.task_name}: published without a kept candidate"
            continue
        path = folder.path / attempt.candidate
        if not path.is_dir():
            yield f"{attempt.task_name}: the kept candidate {attempt.candidate} is missing"
            continue
        found.checked["candidates"] += 1
        if attempt.candidate not in made:
            continue  # rejected before its seal, or by it
        digest = made[attempt.candidate]["freeze_digest"]
        if (attempt.task_name, digest) not in seals:
            yield f"{attempt.task_name}: its seal is not in the ledger"
        if _digest_of(path) != digest:
            yield f"{attempt.task_name}: the kept candidate differs from its seal"


def _digest_of(path: Path) -> str:
    try:
        return freeze_digest(path)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError):
        return ""


def _gates(ledger: Ledger, attempts: list[Attempt]) -> Iterator[str]:
    rows = ledger.query(
        "SELECT attempt_key, gate, evidence_digest FROM gate_runs ORDER BY attempt_key, position"
    )
    noted: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        noted.setdefault(row["attempt_key"], []).append((row["gate"], row["evidence_digest"]))
    for attempt in attempts:
        gates = attempt.verdict.gates if attempt.verdict else ()
        if noted.get(attempt.key, []) != [(gate.gate, gate.evidence_digest()) for gate in gates]:
            yield f"{attempt.task_name}: the gates in the ledger and in its record differ"


def _sessions(ledger: Ledger, folder: RunFolder, found: AuditReport) -> Iterator[str]:
    """Finished create sessions lie in the run folder; planning sessions live in the ledger alone."""
    rows = ledger.query("SELECT key, subject, phase FROM sessions WHERE outcome = ?", (FINISHED,))
    found.checked["sessions"] = len(rows)
    for row in rows:
        if row["phase"] != "plan" and not (folder.sessions / row["key"].removeprefix("sha256:")).is_dir():
            yield f"{row['subject']}: the {row['phase']} session it was made by is missing"
    known = {row["key"].removeprefix("sha256:") for row in rows}
    for path in _entries(folder.sessions):
        if path.name not in known:
            yield f"{path.name}: a session that the ledger does not know; the next run notes it"


def _orphans(ledger: Ledger, folder: RunFolder, attempts: list[Attempt]) -> Iterator[str]:
    known = {attempt.candidate for attempt in attempts} | {r["path"] for _, r in ledger.results("create")}
    for path in _entries(folder.candidates):
        if path.relative_to(folder.path).as_posix() not in known:
            yield f"{path.name}: a candidate that the ledger does not know; the next run takes it up"


def _entries(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if not path.name.startswith(TEMPORARY_PREFIX))


def _published(ledger: Ledger, attempts: list[Attempt], dataset: Path, found: AuditReport) -> Iterator[str]:
    """What the ledger calls published lies in the dataset, with the same digest and the same evidence."""
    published = [attempt for attempt in attempts if attempt.status is AttemptStatus.PUBLISHED]
    rows = {row["attempt_key"]: row for row in ledger.query("SELECT * FROM publications")}
    if not (dataset / INDEX_NAME).is_file():
        if published:
            yield f"{dataset}: holds no dataset, though {len(published)} tasks were published"
        return
    yield from dataset_problems(dataset)
    state = read_state(dataset)
    entries = {entry.name: entry for entry in state.entries}
    found.checked["tasks in the dataset"] = len(entries)
    current: dict[str, list[Attempt]] = {}
    for attempt in published:
        current.setdefault(attempt.task_name, []).append(attempt)
        if attempt.key not in rows:
            yield f"{attempt.task_name}: published, but the ledger does not say where"
    for name, candidates in sorted(current.items()):
        entry = entries.get(name)
        if entry is None:
            if not state.taken_down:
                yield f"{name}: published, but not in the dataset"
            continue
        # An earlier version of a task stays in the ledger; the dataset holds one of them.
        match = [a for a in candidates if a.key in rows and rows[a.key]["digest"] == entry.digest]
        if not match:
            yield f"{name}: the dataset holds another digest than the one that was published"
            continue
        yield from _same_evidence(match[-1], entry, dataset)


def _same_evidence(attempt: Attempt, entry: TaskEntry, dataset: Path) -> Iterator[str]:
    gates = attempt.verdict.gates if attempt.verdict else ()
    evidence = {
        gate.gate: gate.evidence_digest() for gate in gates if gate.outcome is not GateOutcome.NOT_RUN
    }
    if entry.gates != evidence:
        yield f"{entry.name}: the manifest names other evidence than the ledger"
    try:
        tree = tomllib.loads((dataset / entry.folder / "task.toml").read_text(encoding="utf-8"))
        named = {gate["gate"]: gate["evidence"] for gate in tree["metadata"]["skill2env"]["gates"]}
        sealed = tree["metadata"]["skill2env"]["freeze_digest"]
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        yield f"{entry.name}: its task.toml cannot be read: {error}"
        return
    if {name: digest for name, digest in named.items() if name in evidence} != evidence:
        yield f"{entry.name}: task.toml names other evidence than the ledger"
    if not sealed == entry.freeze_digest == _digest_of(dataset / entry.folder):
        yield f"{entry.name}: the published task differs from its seal"
