"""``skill2env doctor``: what this machine can run, and the command that mends the rest."""

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from skill2env import __version__
from skill2env.cli.output import ExitCode, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill2env.sandbox.doctor import Check

app = typer.Typer(add_completion=False)

_ENGINES = ("docker", "podman")
_REPLACED = {"sandbox", "bubblewrap", "tier", "limits"}
"""Checks that do not matter where an engine runs trials."""


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False) -> None:
    """Explain what this machine can run, and what would fix the rest.

    Looks and changes nothing. Exit codes: 0 tasks can be compiled here, 3 they cannot until something is mended.
    """
    from skill2env.sandbox.doctor import examine

    checks = examine()
    ready = is_ready(checks)
    if as_json:
        print_json(
            {
                "version": __version__,
                "ready": ready,
                "checks": [dataclasses.asdict(check) for check in checks],
            }
        )
    else:
        print(f"skill2env {__version__}")
        print_table(("check", "", "what was found"), [(c.name, c.status.value, c.told) for c in checks])
        fixes = [(check.name, check.fix) for check in checks if check.fix]
        if fixes:
            print()
            print_table(("to mend", "run"), fixes)
        print(
            "\nready: tasks can be compiled here"
            if ready
            else "\nnot ready: no sandbox or engine works here yet"
        )
    if not ready:
        raise typer.Exit(ExitCode.INFRA)


def is_ready(checks: "Sequence[Check]") -> bool:
    """Whether tasks can be compiled: everything works, or an engine stands in for the namespace sandbox."""
    failed = {check.name for check in checks if check.status.value == "fail"}
    if any(check.name in _ENGINES and check.status.value == "ok" for check in checks):
        failed -= _REPLACED
    return not failed
