"""Where a session or a check ends the stage."""

from skill2env.authors.protocol import Refusal
from skill2env.create.cache import SessionResult
from skill2env.create.contract import read_skip
from skill2env.create.outcome import Stop, rejected
from skill2env.create.sessions import Session
from skill2env.errors import Boundary, InfraError
from skill2env.records import Verdict, VerdictStatus


def raise_if_infra(verdict: Verdict) -> None:
    """Raise `InfraError` for a verdict that is none."""
    if verdict.status is VerdictStatus.INFRA:
        raise InfraError(Boundary(verdict.boundary or Boundary.SANDBOX), verdict.message)


def stop_if_skipped(session: Session, path: str) -> None:
    """Raise `Stop` when the author declined, in its reply or by a file at `path`."""
    skipped = session.result.reply.skipped or read_skip(session.files, path)
    if skipped is not None:
        raise Stop(skipped)


def stop_if_refused(result: SessionResult) -> None:
    """Raise `Stop` when some of the session's files must not be taken."""
    refusals: tuple[Refusal, ...] = result.refusals
    if refusals:
        lines = tuple(item.message for item in refusals)
        raise rejected(refusals[0].reason, lines[0], details=lines)
