"""What a run of the `code` author came to: by reason, by family, by axis, by skill, and where its time went.

    .venv/bin/python benchmarks/code_yield.py RUN [--json]

RUN is a run folder, also of a run that is under way: everything is read from its ledger, nothing is changed.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from ladder import family_of

from skill2env.store import report
from skill2env.store.ledger import Ledger

AXES = ("archetype", "complexity", "tone", "expertise")


def attempts(ledger: Ledger) -> list[dict[str, Any]]:
    """The last attempt of every task that any run of the folder made."""
    rows = ledger.query("SELECT record FROM attempts ORDER BY rowid")
    found = {item["task_name"]: item for item in (json.loads(row["record"]) for row in rows)}
    return [found[name] for name in sorted(found)]


def skills(ledger: Ledger) -> dict[str, tuple[str, str]]:
    """Name -> (status, reason) of every skill, as it was planned last."""
    rows = ledger.query("SELECT name, status, reason FROM skills ORDER BY run, position")
    return {row["name"]: (row["status"], row["reason"]) for row in rows}


def table(ledger: Ledger) -> dict[str, Any]:
    """All counts."""
    tried = attempts(ledger)
    accepted = [item for item in tried if item["status"] == "published"]
    planned = skills(ledger)
    runs = report.runs(ledger)
    seconds: Counter[str] = Counter()
    for run in runs:
        seconds.update(report.seconds(ledger, run.run))
    cases = {
        "killed": sum(
            g["values"].get("killed", 0) for i in tried for g in gates(i) if g["gate"] == "mutants"
        ),
        "survived": sum(
            g["values"].get("survived", 0) for i in tried for g in gates(i) if g["gate"] == "mutants"
        ),
    }
    return {
        "skills": {" ".join(key).strip(): n for key, n in sorted(Counter(planned.values()).items())},
        "tasks": {f"{s} {r}".strip(): n for (s, r), n in by(tried, "status", "reason")},
        "families": {
            f"{f} {s}": n for (f, s), n in sorted(Counter((family(i), i["status"]) for i in tried).items())
        },
        "axes": {axis: dict(sorted(Counter(i["axes"][axis] for i in accepted).items())) for axis in AXES},
        "accepted_from_skills": len({item["skill_slug"] for item in accepted}),
        "most_from_one_skill": max(Counter(item["skill_slug"] for item in accepted).values(), default=0),
        "mutants": cases,
        "micro_dollars": report.spend(ledger).micro_dollars,
        "seconds": {what: round(sec, 1) for what, sec in seconds.most_common()},
    }


def gates(item: dict[str, Any]) -> list[dict[str, Any]]:
    """Gate results of an attempt."""
    return (item["verdict"] or {}).get("gates", [])


def family(item: dict[str, Any]) -> str:
    """Family of an attempt."""
    return family_of(f"-{item['workflow']}-")


def by(items: list[dict[str, Any]], *names: str) -> list[tuple[tuple[str, ...], int]]:
    """Counts by some fields, most first."""
    counts = Counter(tuple(str(item[name]) for name in names) for item in items)
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def main() -> int:
    """Read, count, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with Ledger.read(options.run / "ledger.sqlite") as ledger:
        found = table(ledger)
    if options.json:
        print(json.dumps(found, indent=1))
        return 0
    for name, value in found.items():
        told = (
            ", ".join(f"{key}: {item}" for key, item in value.items()) if isinstance(value, dict) else value
        )
        print(f"{name:<22}{told}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
