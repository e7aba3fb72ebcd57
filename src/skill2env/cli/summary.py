"""How a batch ended: the reasons table and the bill as `compile` and `run show` print them, and the exit code."""

from collections.abc import Mapping, Sequence

from skill2env.batch import BatchStatus
from skill2env.cli.output import ExitCode, dollars, print_table
from skill2env.errors import Boundary
from skill2env.records import Reason, SkipReason, meanings
from skill2env.store.report import ReasonRow, Spend

LEAST_SECONDS = 0.05
"""Parts that took less are not printed."""
EXIT_CODES = {
    BatchStatus.FINISHED: ExitCode.OK,
    BatchStatus.PENDING: ExitCode.INFRA,
    BatchStatus.BUDGET: ExitCode.BUDGET,
    BatchStatus.INTERRUPTED: ExitCode.INTERRUPTED,
}


def print_reasons(rows: Sequence[ReasonRow]) -> None:
    """Print where everything ended, why, and one example of each."""
    table = [(row.status, row.reason, row.count, row.example, meaning_of(row)) for row in rows]
    print_table(("status", "reason", "count", "example", "meaning"), table)


def meaning_of(row: ReasonRow) -> str:
    """One sentence about a reason."""
    match row.status:
        case "published":
            return "Accepted by every gate and in the dataset."
        case "pending":
            return "Not reached yet; run the same command again."
        case "rejected":
            return meanings(Reason).get(row.reason, "")
        case "skipped":
            return meanings(SkipReason).get(row.reason, "")
        case _:
            return meanings(Boundary).get(row.reason, "")


def print_seconds(seconds: Mapping[str, float]) -> None:
    """Print where the time went: stages, then the parts of the author's work and the gates, longest first."""
    if not seconds:
        return
    stages = {what: sec for what, sec in seconds.items() if "/" not in what}
    parts = sorted(((what, sec) for what, sec in seconds.items() if "/" in what), key=lambda item: -item[1])
    print("seconds of all workers: " + ", ".join(f"{what} {sec:.1f}" for what, sec in stages.items()))
    if told := [f"{what} {sec:.1f}" for what, sec in parts if sec >= LEAST_SECONDS]:
        print("within them: " + ", ".join(told))


def print_spend(spend: Spend) -> None:
    """Print what the sessions cost, when there were any with a model."""
    if not spend.input_tokens and not spend.micro_dollars:
        return
    unknown = f", {spend.unpriced} session(s) of unknown price" if spend.unpriced else ""
    print(
        f"{spend.sessions} sessions, {spend.input_tokens} tokens in ({spend.cached_tokens} cached),"
        f" {spend.output_tokens} out, {dollars(spend.micro_dollars)}{unknown}"
    )
