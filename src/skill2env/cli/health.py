"""`skill2env health`: what the history file of `skill2env verify --history` says of each task."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from skill2env.cli.output import ExitCode, print_json, print_table

app = typer.Typer()


@app.command()
def health(
    file: Annotated[Path, typer.Argument(help="A history file.", show_default=False)],
    drift: Annotated[bool, typer.Option("--drift", help="Show only tasks whose verdict changed.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show when each task was first seen and last verified, and whether its verdict changed though it did not.

    With --drift the exit code is 1 when there is such a task.
    """
    from skill2env.verify.history import health as read

    tasks = [task for task in read(file) if task.drift or not drift]
    if json:
        print_json([asdict(task) for task in tasks])
    else:
        print_table(
            ("TASK", "FIRST SEEN", "LAST VERIFIED", "RUNS", "VERDICT", "REASON", "DRIFT"),
            (
                (t.task, t.first_seen[:10], t.last_verified[:10], t.runs, t.verdict, t.reason, t.drift)
                for t in tasks
            ),
        )
    raise typer.Exit(ExitCode.REJECTED if drift and tasks else ExitCode.OK)
