"""Verdicts made by hand, on task folders of the usual builder: reports need no sandbox."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from skill2env.records import (
    Finding,
    GateOutcome,
    GateResult,
    ProbeOutcome,
    ProbeResult,
    Reason,
    Severity,
    Verdict,
    VerdictStatus,
)
from skill2env.verify.exhibits import Excerpt, Exhibits
from skill2env.verify.many import Verified
from skill2env.verify.report.outcome import Outcome, outcome_of
from skill2env.verify.rules import Profile

WARNING = Finding(
    code="agent-root",
    severity=Severity.WARN,
    message="the agent runs as root",
    where="task.toml",
    mend="Do not.",
)
REJECTION = Finding(
    code="oracle-failed",
    severity=Severity.ERROR,
    message="earns only sum = 0 <script>alert(1)</script>",
    where="solution/solve.sh:3",
    mend="Mend it.",
)
GATES = (
    GateResult(gate="config", outcome=GateOutcome.PASSED, findings=(WARNING,), seconds=0.25),
    GateResult(
        gate="oracle",
        outcome=GateOutcome.REJECTED,
        reason=Reason.ORACLE_FAILED,
        message="solution/solve.sh:3: earns only sum = 0",
        findings=(REJECTION,),
        values={"metric:sum": 0.0},
        probes=(ProbeResult(probe="first", outcome=ProbeOutcome.FAILED, message="no"),),
        seconds=1.5,
        trials=2,
        trial_seconds=1.0,
    ),
    GateResult(gate="twins", outcome=GateOutcome.NOT_RUN, message="gate oracle ended it"),
)
VERDICTS = {
    "good": Verdict(status=VerdictStatus.ACCEPTED, gates=(GATES[0],)),
    "bad": Verdict(
        status=VerdictStatus.REJECTED,
        reason=Reason.ORACLE_FAILED,
        message="oracle: earns only sum = 0",
        gates=GATES,
    ),
    "away": Verdict(
        status=VerdictStatus.INFRA,
        boundary="network",
        message="build: the mirror \x1b[31mis away",
        gates=(GateResult(gate="build", outcome=GateOutcome.INFRA, message="the mirror is away"),),
    ),
}


@pytest.fixture
def verified(builder: ModuleType, tmp_path: Path) -> Callable[[str], Verified]:
    def make(name: str, verdict: str = "", **fields: object) -> Verified:
        task = tmp_path / "tasks" / name
        if not task.exists():
            builder.build_task(task, reference="x")
        shown = Exhibits(
            excerpts=(Excerpt(gate="oracle", where="trial/verifier/test-stdout.txt", text="</pre><img src=x>"),),
            matrix={
                "mutants": [
                    {"mutant": "m1", "fate": "killed", "kind": "drop <b>", "file": "solve.sh", "line": 4,
                     "metrics": {"sum": 0, "largest": 1}},
                    {"mutant": "m2", "fate": "survived", "metrics": {"sum": 1, "largest": 1}},
                ]
            },
            diffs={"m1": "-sum\n+<i>total</i>"},
        )  # fmt: skip
        return Verified(
            task, VERDICTS[verdict or name], name=f"org/{name}", profile=Profile.FOREIGN, content="sha256:aa",
            exhibits=shown, **fields,  # pyright: ignore[reportArgumentType]
        )  # fmt: skip

    return make


@pytest.fixture
def outcomes(verified: Callable[[str], Verified]) -> list[Outcome]:
    return [outcome_of(verified(name)) for name in VERDICTS]
