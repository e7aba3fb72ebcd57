"""`skill2env verify`: the gates, on Harbor tasks of anybody.

Exit codes: 0 all accepted, 1 some rejected (or with warnings under ``--fail-on warn``), 2 wrong usage, 3 some could
not be decided because the surroundings failed (this one wins over 1), 130 interrupted.
"""

import tempfile
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skill2env.cli.output import ExitCode, json_text, print_table
from skill2env.cli.progress import shown
from skill2env.errors import UserError

if TYPE_CHECKING:
    from skill2env.records import Verdict
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
    json: Annotated[bool, typer.Option("--json", help="Print one JSON record a task, one a line.")] = False,
) -> None:
    """Run the gates on tasks and say what they find."""
    image_map = parse_image_map(base or [])
    from skill2env.interrupts import interruptible
    from skill2env.progress import Event, EventKind
    from skill2env.verify.gate import GateContext, Level
    from skill2env.verify.many import find_tasks, verify_many
    from skill2env.verify.rules import Profile

    tasks = find_tasks(paths)
    wanted = None if profile is ProfileOption.AUTO else Profile(profile.value)
    with interruptible(), shown(quiet=json) as progress, _evidence_folder(evidence, tasks) as folder:
        progress(Event(EventKind.PHASE, "verify", total=len(tasks)))
        choice = _choose(sandbox, image_map, allow_unlimited=allow_unlimited)
        context = GateContext(
            choice, folder, image_map=image_map, oracle_repeats=repeats, network=not offline
        )
        printer = _InOrder(tasks, enabled=json)

        def done(verified: "Verified") -> None:
            progress(Event(EventKind.DONE, verified.path.name, detail=summary(verified.verdict)))
            printer.add(verified)

        verified = verify_many(
            tasks,
            profile=wanted,
            context=context,
            workers=workers,
            level=Level(level.value),
            all_gates=every,
            on_done=done,
        )
    if not json:
        _print_summary(verified, kept=evidence)
    raise typer.Exit(_exit_code(verified, fail_on))


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


def record(verified: "Verified") -> dict[str, Any]:
    """The JSON record of one task."""
    verdict = verified.verdict
    return {
        "path": str(verified.path),
        "verdict": verdict.status.value,
        "reason": verdict.reason.value if verdict.reason else None,
        "boundary": verdict.boundary or None,
        "message": verdict.message,
        "gates": [gate.model_dump(mode="json") for gate in verdict.gates],
    }


def summary(verdict: "Verdict") -> str:
    """One line about a verdict."""
    warnings = _warnings(verdict)
    if verdict.reason is not None:
        return f"rejected ({verdict.reason.value}): {verdict.message}"
    if verdict.boundary:
        return f"infra ({verdict.boundary}): {verdict.message}"
    return f"accepted, {warnings} warning{'s' if warnings != 1 else ''}" if warnings else "accepted"


def _warnings(verdict: "Verdict") -> int:
    return sum(finding.severity.value == "warn" for finding in verdict.findings)


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


class _InOrder:
    """Prints JSON records as early as possible in the order of the tasks, so that two runs print the same."""

    def __init__(self, tasks: Sequence[Path], *, enabled: bool) -> None:
        self._waiting = list(tasks) if enabled else []
        self._held: dict[Path, Verified] = {}

    def add(self, verified: "Verified") -> None:
        self._held[verified.path] = verified
        while self._waiting and self._waiting[0] in self._held:
            item = self._held.pop(self._waiting.pop(0))
            print(json_text(record(item)), flush=True)


def _print_summary(verified: "Sequence[Verified]", *, kept: Path | None) -> None:
    counts = Counter(
        (
            item.verdict.status.value,
            item.verdict.reason.value if item.verdict.reason else item.verdict.boundary,
        )
        for item in verified
    )
    print_table(
        ("VERDICT", "REASON", "TASKS"),
        ((status, why, count) for (status, why), count in sorted(counts.items())),
    )
    for item in verified:
        for finding in item.verdict.findings:
            if finding.severity.value == "warn":
                place = f"{finding.where}: " if finding.where else ""
                print(f"{item.path.name}: warning: {place}{finding.message} [{finding.code}]")
    if any(item.verdict.reason for item in verified):
        logs = f"The logs lie in {kept}." if kept else "`--evidence DIR` keeps the logs."
        print(f"\n`skill2env explain REASON` says how to mend each. {logs}")


def _exit_code(verified: "Sequence[Verified]", fail_on: FailOn) -> ExitCode:
    statuses = {item.verdict.status.value for item in verified}
    if "infra" in statuses:
        return ExitCode.INFRA
    warned = fail_on is FailOn.WARN and any(_warnings(item.verdict) for item in verified)
    return ExitCode.REJECTED if "rejected" in statuses or warned else ExitCode.OK
