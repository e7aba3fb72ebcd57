"""``skill2env run``: list, show and audit runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skill2env.cli.output import ExitCode, dollars, print_json, print_table
from skill2env.errors import Skill2EnvError, UserError

if TYPE_CHECKING:
    from skill2env.store.run_folder import RunFolder

app = typer.Typer(no_args_is_help=True, add_completion=False, help="List, show and audit runs.")

Folder = Annotated[Path, typer.Argument(help="Run folder.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command("list")
def list_runs(
    root: Annotated[Path, typer.Argument(help="Where to look, three folders deep.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """List run folders with their latest state."""
    from skill2env.store.run_folder import find_runs

    if not root.is_dir():
        raise UserError(f"no such folder: {root}", hint="give a folder to look in")
    rows = [_row(folder) for folder in find_runs(root)]
    if as_json:
        print_json(rows)
        return
    if not rows:
        print(f"no runs below {root}")
        return
    columns = ("run", "status", "started", "published", "rejected", "skipped", "unfinished")
    print_table((*columns, "spent"), [(*(r[c] for c in columns), dollars(r["micro_dollars"])) for r in rows])


def _row(folder: "RunFolder") -> dict[str, Any]:
    """How a run stands; a ledger that cannot be read is told as such, and the other runs are still listed."""
    from skill2env.store import report
    from skill2env.store.ledger import Ledger

    counts = {"published": 0, "rejected": 0, "skipped": 0, "unfinished": 0}
    row = {"run": str(folder.path), "status": "empty", "started": "", **counts, "micro_dollars": 0}
    try:
        with Ledger.read(folder.ledger) as ledger:
            listed = report.runs(ledger)
            latest = report.latest_run(ledger)
            for line in report.reasons(ledger, latest) if latest is not None else ():
                counts[line.status if line.status in counts else "unfinished"] += line.count
            row["micro_dollars"] = report.spend(ledger).micro_dollars
    except Skill2EnvError:
        return {**row, "status": "unreadable"}
    if listed:
        stopped = listed[-1].status == "running" and folder.holder() is None
        row |= {"status": "stopped" if stopped else listed[-1].status, "started": listed[-1].started_at}
    return {**row, **counts}


@app.command()
def show(folder: Folder, as_json: AsJson = False) -> None:
    """Show where every skill and task of a run stands, why, and what it cost."""
    from skill2env.cli.summary import print_reasons, print_seconds, print_spend
    from skill2env.store import report
    from skill2env.store.ledger import Ledger
    from skill2env.store.run_folder import RunFolder

    run = RunFolder(folder)
    run.require()
    with Ledger.read(run.ledger) as ledger:
        latest = report.latest_run(ledger)
        if latest is None:
            raise UserError(f"{folder} holds no run yet", hint="skill2env compile PATH --run DIR")
        summary = report.summary(ledger, latest)
        if as_json:
            print_json(summary)
            return
        attempts = report.attempts(ledger, latest)
        rows = [
            (a.task_name, a.status.value, a.reason, a.workflow, a.axes.archetype, a.repairs) for a in attempts
        ]
        print_table(("task", "status", "reason", "workflow", "archetype", "repairs"), rows)
        print()
        print_reasons(report.reasons(ledger, latest))
        print_spend(report.spend(ledger))
        print_seconds(report.seconds(ledger, latest))
    for attempt in attempts:
        if attempt.detail:
            print(f"{attempt.task_name}: {attempt.detail}")


@app.command()
def audit(
    folder: Folder,
    dataset: Annotated[
        Path | None, typer.Option(help="Dataset folder; default: the one of the latest run.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Prove that a run folder and its dataset agree with the ledger: digests, freezes, no orphan, no double."""
    from skill2env.audit import audit as audit_run

    report = audit_run(folder, dataset)
    if as_json:
        print_json({"checked": report.checked, "problems": report.problems})
    else:
        print(", ".join(f"{count} {what}" for what, count in sorted(report.checked.items())) + " checked")
        for problem in report.problems:
            print(f"problem: {problem}")
        print("consistent" if not report.problems else f"{len(report.problems)} problem(s)")
    if report.problems:
        raise typer.Exit(ExitCode.REJECTED)
