"""What a judge is asked and what it said."""

from enum import StrEnum

from pydantic import Field

from skill2env.records import Record

LOWEST, HIGHEST = -5.0, 5.0
"""Range of scores."""


class Evidence(StrEnum):
    """What a judge is shown of a rollout."""

    TRACE = "trace"
    """What was said and done."""
    TRACE_AND_FILES = "trace+fs"
    """That, and what the container had changed at the end."""


class Case(Record):
    """One rollout to be judged. Everything in it but the rubric may be anybody's text."""

    id: str
    group: str = ""
    """Rollouts of one group are compared with each other."""
    step: int | None = None
    """Training step of the policy that acted."""
    instruction: str
    rubric: str
    trajectory: str
    """As text, see `asking.render_trajectory`."""
    difference: str = ""
    """What changed in the file system, as text; empty when it is not known."""


class Sample(Record):
    """One answer of the judge."""

    score: float | None = None
    """None when no try gave a valid answer."""
    reason: str = ""
    problem: str = ""
    """What was wrong with the last answer."""
    tries: int = 1


class Judgement(Record):
    """What a judge said about one rollout."""

    id: str
    group: str = ""
    step: int | None = None
    score: float | None = Field(default=None, ge=LOWEST, le=HIGHEST)
    """Median of the samples; None when fewer than half of them are valid. Never 0 for want of an answer."""
    samples: tuple[Sample, ...] = ()
    flags: tuple[str, ...] = ()
    """What is odd about the rollout's text: ``addresses-judge``, ``hidden-characters``, ``shortened``."""
    evidence: Evidence = Evidence.TRACE
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    micro_dollars: int | None = None
    """None when the price is unknown."""
    key: str = ""
    """Digest of everything that the answer depends on."""
