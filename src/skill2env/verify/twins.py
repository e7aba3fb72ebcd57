"""Gate `twins`: no other task of the set tells the same task already, be it with other names and numbers.

A set is decided as a whole, once the other gates have judged its tasks: of twins, the first in order of name that is
accepted stays and the later ones fall. A rejected task makes no other fall, because it joins nothing; one that is
undecided leaves its twins undecided too. What makes twins, and what does not, says `harbor.likeness`.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from skill2env.harbor.likeness import Likeness, Portrait, may_be_twins, portrait_of, quick_twins
from skill2env.records import GateOutcome, GateResult, Verdict, VerdictStatus
from skill2env.verify.gate import GateContext, Hit, Report, Subject, to_result
from skill2env.verify.rules import Profile

NAME = "twins"
_POSTINGS = 64
"""Tasks that are remembered for one phrase, the first ones: they are those that stay."""
_CANDIDATES = 16
"""Tasks that one is compared with, nearest first."""


def check(subject: Subject, context: GateContext) -> Report:  # noqa: ARG001
    """Nothing by itself: `Company` decides when all tasks of a set have been judged."""
    return Report(not_run="no other task was judged beside this one")


class Company:
    """The tasks that are judged together, and which of them fell so far. For one thread."""

    def __init__(self, tasks: Sequence[Path]) -> None:
        """Read the tasks.

        Args:
            tasks: task directories in the order in which the first of twins stays.
        """
        self._portraits = {task: portrait_of(task) for task in tasks}
        self._candidates = _candidates(list(self._portraits.items()))
        self._verdicts: dict[Path, Verdict] = {}

    def waits_for(self, task: Path) -> list[Path]:
        """Earlier tasks that may be twins of `task` and are not settled yet."""
        return [other for other in self._candidates[task] if other not in self._verdicts]

    def settle(self, task: Path, verdict: Verdict, profile: Profile, *, every: bool = False) -> Verdict:
        """The verdict of a task with what this gate says.

        Args:
            task: one of the tasks; all that `waits_for` names must be settled.
            verdict: what the other gates said.
            profile: how strictly findings are read.
            every: look also where another gate rejected already.
        """
        settled = self._settle(task, verdict, profile, every=every)
        self._verdicts[task] = settled
        return settled

    def _settle(self, task: Path, verdict: Verdict, profile: Profile, *, every: bool) -> Verdict:
        at = next((n for n, gate in enumerate(verdict.gates) if gate.gate == NAME), None)
        rejected = verdict.status is VerdictStatus.REJECTED
        if at is None or len(self._portraits) < 2 or (rejected and not every):
            return verdict
        if verdict.status is VerdictStatus.INFRA:
            return verdict
        result = self._judge(task, profile)
        gates = (*verdict.gates[:at], result, *verdict.gates[at + 1 :])
        update: dict[str, object] = {"gates": gates}
        if result.outcome is GateOutcome.INFRA and not rejected:
            update |= {"status": VerdictStatus.INFRA, "boundary": result.values["boundary"]}
        elif result.outcome is GateOutcome.REJECTED and not rejected:
            update |= {"status": VerdictStatus.REJECTED, "reason": result.reason}
        if len(update) > 1:
            update["message"] = f"{NAME}: {result.message}"
        return verdict.model_copy(update=update)

    def _judge(self, task: Path, profile: Profile) -> GateResult:
        mine, undecided = self._portraits[task], ""
        for other in self._candidates[task]:
            before = self._verdicts[other]
            if before.status is VerdictStatus.REJECTED:
                continue
            found = quick_twins(self._portraits[other], mine)
            if found is None:
                continue
            if before.status is VerdictStatus.ACCEPTED:
                return to_result(NAME, twin_report(self._portraits[other].name, found), profile)
            undecided = undecided or before.boundary
        if undecided:
            message = "a task that is much like this one is undecided itself"
            return GateResult(
                gate=NAME, outcome=GateOutcome.INFRA, message=message, values={"boundary": undecided}
            )
        return GateResult(gate=NAME, outcome=GateOutcome.PASSED)


def twin_report(name: str, found: Likeness) -> Report:
    """What is said of a task that `name` tells already."""
    parts = {
        "instruction": found.instruction,
        "solution": found.solution,
        "tests": found.tests,
        "fixtures": found.fixtures,
    }
    shown = ", ".join(f"{part} {value:.0%}" for part, value in parts.items())
    hit = Hit("twin", f"a near-duplicate of {name}, which stays: {shown} alike", "instruction.md")
    values = {part: round(value, 3) for part, value in parts.items()}
    return Report([hit], {**values, "twin": name})


def _candidates(portraits: Sequence[tuple[Path, Portrait]]) -> dict[Path, list[Path]]:
    """For each task the earlier ones whose instructions share enough phrases, nearest first."""
    postings: dict[tuple[str, ...], list[int]] = {}
    found: dict[Path, list[Path]] = {}
    for number, (task, portrait) in enumerate(portraits):
        shared: Counter[int] = Counter()
        for phrase in portrait.phrases:
            held = postings.setdefault(phrase, [])
            shared.update(held)
            if len(held) < _POSTINGS:
                held.append(number)
        near = [
            (count, other)
            for other, count in shared.items()
            if may_be_twins(portrait, portraits[other][1], count)
        ]
        near.sort(key=lambda pair: (-pair[0], pair[1]))
        found[task] = [portraits[other][0] for _, other in near[:_CANDIDATES]]
    return found
