"""A candidate that create itself turns away."""

from pathlib import Path
from typing import Literal

from skill2env.records import GateResult, Reason, Record, Skipped, TaskContract


class CreateRejected(Record):
    """Rejected before verification: the session's files, the contract checks, the freeze, or the repair rounds."""

    kind: Literal["rejected"] = "rejected"
    reason: Reason
    message: str
    """One sentence for a person."""
    path: Path | None = None
    """Task folder as far as it got, for the evidence; None when nothing could be taken."""
    contract: TaskContract | None = None
    """None when it could not be read."""
    freeze_digest: str = ""
    """Empty when the contract was never sealed."""
    gates: tuple[GateResult, ...] = ()
    """What the last checks said."""
    details: tuple[str, ...] = ()
    """Every single finding, at most a hundred: changed files, refused files."""
    repairs: int = 0


class Stop(Exception):
    """Ends the stage early with a value; control flow, never seen outside of the stage."""

    def __init__(self, outcome: CreateRejected | Skipped) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome


def rejected(reason: Reason, message: str, *, details: tuple[str, ...] = ()) -> Stop:
    """A `Stop` for a rejection; the stage adds path, contract and seal."""
    return Stop(CreateRejected(reason=reason, message=message, details=details[:100]))
