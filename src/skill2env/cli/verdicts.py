"""What `skill2env verify` prints and writes: the table, JSON lines, and the report files that were asked for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from skill2env.cli.output import ExitCode, json_text, one_line, print_table

if TYPE_CHECKING:
    from skill2env.records import Verdict
    from skill2env.verify.gate import GateContext, Level
    from skill2env.verify.many import Verified
    from skill2env.verify.report.baseline import Baseline
    from skill2env.verify.report.outcome import Outcome

ROWS = 60
"""Rows of the table; accepted tasks without a warning are left out beyond."""
_WIDTH = 90


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which reports a user asked for."""

    junit: Path | None = None
    sarif: Path | None = None
    html: Path | None = None
    history: Path | None = None
    skills: Path | None = None
    """Folder of the skills that the tasks come from, for the pages."""

    def require(self) -> None:
        """Find out before a long run whether the reports can be written.

        Raises:
            UserError: a folder stands in the place of a file, or the other way round.
            InfraError: boundary ``storage``.
        """
        from skill2env.errors import UserError
        from skill2env.store.files import check_writable

        for file in filter(None, (self.junit, self.sarif, self.history)):
            if file.is_dir():
                raise UserError(f"{file} is a folder", hint="give the path of a file")
            check_writable(file.parent)
        if self.html is not None:
            check_writable(self.html)

    def write(self, outcomes: "Sequence[Outcome]", context: "GateContext", level: "Level") -> None:
        """Write them.

        Raises:
            InfraError: boundary ``storage``.
        """
        from skill2env.store.files import write_text

        if self.junit is not None:
            from skill2env.verify.report.junit import junit_xml

            write_text(self.junit, junit_xml(outcomes))
        if self.sarif is not None:
            from skill2env.verify.report.sarif import sarif_json

            write_text(self.sarif, sarif_json(outcomes, Path.cwd()))
        if self.html is not None:
            from skill2env.verify.report.page import write_pages

            write_pages(
                self.html,
                outcomes,
                level=level.value,
                sandbox=context.sandbox.name,
                skills=skill_texts(self.skills),
            )
        if self.history is not None:
            from skill2env.verify.history import append

            append(self.history, [outcome.verified for outcome in outcomes], context, level)


def skill_texts(folder: Path | None) -> dict[str, str]:
    """Digest -> text of every skill below a folder."""
    if folder is None:
        return {}
    from skill2env.ingest import find_skills, load_skill

    skills = (load_skill(path) for path in find_skills(folder).folders)
    return {skill.digest: skill.body for skill in skills}


@dataclass(slots=True)
class Printer:
    """Prints JSON records as early as possible in the order of the tasks, so that two runs print the same."""

    tasks: list[Path]
    baseline: "Baseline | None"
    as_json: bool
    outcomes: "dict[Path, Outcome]" = field(default_factory=dict)  # pyright: ignore[reportUnknownVariableType]
    _printed: int = 0

    def add(self, verified: "Verified") -> "Outcome":
        """Take the verdict of one task, in any order."""
        from skill2env.verify.report.outcome import outcome_of, record

        self.outcomes[verified.path] = outcome_of(verified, self.baseline)
        while self._printed < len(self.tasks) and self.tasks[self._printed] in self.outcomes:
            if self.as_json:
                print(json_text(record(self.outcomes[self.tasks[self._printed]])), flush=True)
            self._printed += 1
        return self.outcomes[verified.path]

    def ordered(self) -> "list[Outcome]":
        """All outcomes in the order of the tasks."""
        return [self.outcomes[task] for task in self.tasks]


def summary(verdict: "Verdict") -> str:
    """One line about a verdict."""
    warnings = sum(finding.severity.value == "warn" for finding in verdict.findings)
    if verdict.reason is not None:
        return f"rejected ({verdict.reason.value}): {verdict.message}"
    if verdict.boundary:
        return f"infra ({verdict.boundary}): {verdict.message}"
    return f"accepted, {warnings} warning{'s' if warnings != 1 else ''}" if warnings else "accepted"


def print_report(outcomes: "Sequence[Outcome]", *, kept: Path | None) -> None:
    """The table of tasks, the findings that a reviewer should look at, and the totals."""
    from skill2env.verify.report.outcome import totals

    quiet = len(outcomes) > ROWS
    shown = [one for one in outcomes if not quiet or one.status != "accepted" or one.warnings]
    print_table(
        ("TASK", "VERDICT", "REASON", "GATE", "TRIALS", "SECONDS", "MEND"), (_row(one) for one in shown)
    )
    if len(shown) < len(outcomes):
        print(f"... and {len(outcomes) - len(shown)} accepted tasks without a warning")
    _print_warnings(outcomes)
    print()
    print_table(
        ("VERDICT", "REASON", "TASKS"),
        ((status, why, count) for (status, why), count in totals(outcomes).items()),
    )
    _print_cost(outcomes)
    if any(one.status == "rejected" for one in outcomes):
        logs = f"The logs lie in {kept}." if kept else "`--evidence DIR` keeps the logs."
        print(f"`skill2env explain REASON` says how to mend each. {logs}")


def _row(outcome: "Outcome") -> tuple[str, ...]:
    mend = outcome.mend if len(outcome.mend) <= _WIDTH else f"{outcome.mend[: _WIDTH - 3]}..."
    cached = outcome.verified.cached
    return (
        one_line(outcome.verified.path.name),
        outcome.status,
        outcome.reason,
        outcome.gate,
        "cached" if cached else str(outcome.trials),
        "" if cached else f"{outcome.seconds:.1f}",
        mend,
    )


def _print_warnings(outcomes: "Sequence[Outcome]") -> None:
    for outcome in outcomes:
        for item in outcome.findings:
            finding = item.finding
            if finding.severity.value == "warn":
                place = f"{finding.where}: " if finding.where else ""
                name = outcome.verified.path.name
                print(one_line(f"{name}: warning: {place}{finding.message} [{finding.code}]"))


def _print_cost(outcomes: "Sequence[Outcome]") -> None:
    run = [outcome for outcome in outcomes if not outcome.verified.cached]
    trials, seconds = sum(one.trials for one in run), sum(one.trial_seconds for one in run)
    if trials:
        print(
            f"{trials} trials of {seconds / trials:.2f} s; {len(outcomes) - len(run)} verdicts from the cache"
        )
    elif len(run) < len(outcomes):
        print(f"{len(outcomes) - len(run)} verdicts from the cache; --no-cache verifies again")


def exit_code_of(outcomes: "Sequence[Outcome]", *, warnings_fail: bool) -> ExitCode:
    """Infra wins over rejected; what the baseline knows counts for nothing."""
    statuses = {outcome.status for outcome in outcomes}
    if "infra" in statuses:
        return ExitCode.INFRA
    warned = warnings_fail and any(outcome.warnings for outcome in outcomes)
    return ExitCode.REJECTED if "rejected" in statuses or warned else ExitCode.OK
