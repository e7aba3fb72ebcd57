"""`skill2env verify`: the gates, on Harbor tasks of anybody.

Exit codes: 0 all accepted, 1 some rejected (or with warnings under ``--fail-on warn``), 2 wrong usage, 3 some could
not be decided because the surroundings failed (this one wins over 1), 130 interrupted. With ``--baseline`` only what is
new counts.
"""

import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skill2env.cli.progress import shown
from skill2env.cli.verdicts import Printer, Wanted, exit_code_of, print_report, summary
from skill2env.errors import UserError
from skill2env.store import folders

if TYPE_CHECKING:
    from skill2env.verify.many import Verified

app = typer.Typer()

SANDBOX_HELP = (
    "Where trials run: auto, namespace, docker, podman, or another environment of Harbor by its name."
)


class ProfileOption(StrEnum):
    """Values of ``--profile``."""

    AUTO = "auto"
    OURS = "ours"
    FOREIGN = "foreign"


class LevelOption(StrEnum):
    """Values of ``--level``."""

    PAPER = "paper"
    STANDARD = "standard"
    STRICT = "strict"


class FailOn(StrEnum):
    """Values of ``--fail-on``."""

    REJECT = "reject"
    WARN = "warn"


@app.command()
def verify(
    paths: Annotated[
        list[Path], typer.Argument(help="Task directories, or folders of them.", show_default=False)
    ],
    profile: Annotated[
        ProfileOption,
        typer.Option(
            help="Whose rules count: ours, those for tasks of others, or by each task's own provenance."
        ),
    ] = ProfileOption.AUTO,
    sandbox: Annotated[str, typer.Option(help=SANDBOX_HELP)] = "auto",
    base: Annotated[
        list[str] | None,
        typer.Option(
            "--base", "--image-map", help="Run a foreign image as one of our bases.", metavar="REF=NAME"
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Tasks verified at once.")] = 2,
    level: Annotated[
        LevelOption, typer.Option(help="Nop and Oracle only, every gate, or every gate with every probe.")
    ] = LevelOption.STANDARD,
    repeats: Annotated[int, typer.Option(min=1, max=20, help="Oracle runs in the task's own mode.")] = 2,
    today: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"],
            metavar="YYYY-MM-DD",
            help="Warn of dates close to this day; the clock is never asked.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Go on after a rejection, to see everything at once.")
    ] = False,
    fail_on: Annotated[FailOn, typer.Option(help="What makes the exit code 1.")] = FailOn.REJECT,
    evidence: Annotated[
        Path | None, typer.Option(help="Keep logs and trials here.", show_default="removed at the end")
    ] = None,
    allow_unlimited: Annotated[
        bool, typer.Option(help="Run even where this machine cannot enforce a requested limit.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Give no task a network, also where it asks for one.")
    ] = False,
    twins: Annotated[
        bool, typer.Option("--twins/--no-twins", help="Reject near-duplicates of other tasks given.")
    ] = True,
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Take verdicts on unchanged tasks from earlier runs.")
    ] = True,
    baseline: Annotated[
        Path | None, typer.Option(help="Output of an earlier --json: only findings that it lacks count.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file.")] = None,
    sarif: Annotated[Path | None, typer.Option(help="Write SARIF 2.1.0 to this file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write pages for reviewers to this folder.")] = None,
    skills: Annotated[
        Path | None, typer.Option(help="Show these skills beside the tasks made from them, in --html.")
    ] = None,
    history: Annotated[
        Path | None, typer.Option(help="Append the verdicts to this file; `skill2env health` reads it.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON record a task, one a line.")] = False,
) -> None:
    """Run the gates on tasks and say what they find."""
    image_map = parse_image_map(base or [])
    from skill2env.interrupts import interruptible
    from skill2env.progress import Event, EventKind
    from skill2env.verify.cache import VerdictCache
    from skill2env.verify.gate import GateContext, Level
    from skill2env.verify.many import find_tasks, verify_many
    from skill2env.verify.report.baseline import Baseline
    from skill2env.verify.rules import Profile

    tasks = find_tasks(paths)
    wanted = Wanted(junit, sarif, html, history, skills)
    wanted.require()
    printer = Printer(tasks, Baseline.read(baseline) if baseline else None, json)
    depth = Level(level.value)
    with interruptible(), shown(quiet=json) as progress, _evidence_folder(evidence, tasks) as folder:
        progress(Event(EventKind.PHASE, "verify", total=len(tasks)))
        choice = _choose(sandbox, image_map, allow_unlimited=allow_unlimited)
        context = GateContext(
            choice,
            folder,
            image_map=image_map,
            oracle_repeats=repeats,
            network=not offline,
            today=today.date() if today else None,
        )

        def done(verified: "Verified") -> None:
            progress(Event(EventKind.DONE, verified.path.name, detail=summary(verified.verdict)))
            printer.add(verified)

        verify_many(
            tasks,
            profile=None if profile is ProfileOption.AUTO else Profile(profile.value),
            context=context,
            workers=workers,
            level=depth,
            all_gates=every,
            twins=twins,
            cache=VerdictCache(folders.verdicts_home(), context, depth, every=every) if cache else None,
            keep_evidence=evidence is not None,
            on_done=done,
        )
    outcomes = printer.ordered()
    if not json:
        print_report(outcomes, kept=evidence)
    wanted.write(outcomes, context, depth)
    raise typer.Exit(exit_code_of(outcomes, warnings_fail=fail_on is FailOn.WARN))


def parse_image_map(items: Sequence[str]) -> dict[str, str]:
    """Pairs ``REF=NAME`` as a mapping.

    Raises:
        UserError: a pair has no ``=``, an empty half, or contradicts an earlier one.
    """
    found: dict[str, str] = {}
    for item in items:
        # A reference may hold "=" nowhere, so the last one divides.
        reference, _, name = item.rpartition("=")
        if not reference or not name:
            raise UserError(
                f"--base {item!r} is not REF=NAME", hint="for example --base python:3.12=debian-bookworm"
            )
        if found.get(reference, name) != name:
            raise UserError(f"--base names two images for {reference!r}", hint="give each reference once")
        found[reference] = name
    return found


def _choose(kind: str, image_map: Mapping[str, str], *, allow_unlimited: bool) -> Any:
    from skill2env.harbor.sandboxes import choose_sandbox

    return choose_sandbox(kind, image_map=image_map, allow_unlimited=allow_unlimited)


@contextmanager
def _evidence_folder(wanted: Path | None, tasks: Sequence[Path]) -> Generator[Path]:
    from skill2env.verify.many import require_evidence_folder

    if wanted is not None:
        yield require_evidence_folder(wanted, tasks)
        return
    with tempfile.TemporaryDirectory(prefix="skill2env-evidence-", ignore_cleanup_errors=True) as scratch:
        Path(scratch).chmod(0o755)
        yield Path(scratch)
