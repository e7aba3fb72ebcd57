"""From the turns of a rollout to sequences that can be trained on.

A server that gives token ids tells for each turn the whole prompt and the sampled completion. Where the next prompt
begins with everything so far, the turns become one sequence: sampled tokens are learned from, everything between them
(results of tools, the frame of the chat template) is context. Where it does not (history was shortened, a template
dropped hidden reasoning, text was tokenised anew in another way), a new segment begins. Nothing is tokenised here, so a
token that was sampled is never trained on under another id.

Linear in the number of tokens that come in.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from skill2env.records import Diagnostic, Severity

LOG_PROB_SLACK = 1e-4
"""Log-probabilities may lie this far above 0, as sums of rounded numbers do."""


@dataclass(frozen=True, slots=True)
class SampledTurn:
    """One call of the policy."""

    prompt: tuple[int, ...]
    """Token ids of the whole prompt."""
    completion: tuple[int, ...]
    """Token ids that were sampled."""
    log_probs: tuple[float, ...]
    """Natural logarithm of the probability of each sampled token, at the temperature it was sampled at."""


@dataclass(slots=True)
class Segment:
    """One sequence. The three lists have the same length."""

    tokens: list[int] = field(default_factory=list[int])
    mask: list[bool] = field(default_factory=list[bool])
    """True for sampled tokens; only these are learned from."""
    log_probs: list[float] = field(default_factory=list[float])
    """Of the policy that sampled; 0 where the mask is False."""
    turns: list[int] = field(default_factory=list[int])
    """Indices of the turns that it holds."""

    @property
    def sampled(self) -> int:
        """Number of tokens that are learned from."""
        return sum(self.mask)


@dataclass(frozen=True, slots=True)
class Stitched:
    """The segments of one rollout. They share its reward and count once in the baseline of the group."""

    segments: tuple[Segment, ...]
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def breaks(self) -> int:
        """How often a prompt did not begin with what came before."""
        return max(0, len(self.segments) - 1)


def stitch(turns: Sequence[SampledTurn]) -> Stitched:
    """Sequences of one rollout.

    Args:
        turns: the calls of the policy, in order.

    Returns:
        The segments, and a diagnostic for each turn that is left out: severity ``error`` when its numbers cannot be
        right (then nothing of the rollout should be trained on), ``warn`` when there is nothing to learn from it.
    """
    segments: list[Segment] = []
    found: list[Diagnostic] = []
    for index, turn in enumerate(turns):
        problem = _problem(index, turn)
        if problem is not None:
            found.append(problem)
            continue
        current = segments[-1] if segments and _continues(segments[-1], turn) else Segment()
        if not current.turns:
            segments.append(current)
        between = turn.prompt[len(current.tokens) :]
        _extend(current, between, sampled=False, log_probs=(0.0,) * len(between))
        _extend(current, turn.completion, sampled=True, log_probs=turn.log_probs)
        current.turns.append(index)
    return Stitched(tuple(segments), tuple(found))


def _continues(segment: Segment, turn: SampledTurn) -> bool:
    """Whether the prompt of a turn begins with all tokens of the segment."""
    length = len(segment.tokens)
    return len(turn.prompt) >= length and list(turn.prompt[:length]) == segment.tokens


def _extend(segment: Segment, tokens: Sequence[int], *, sampled: bool, log_probs: Sequence[float]) -> None:
    segment.tokens += tokens
    segment.mask += [sampled] * len(tokens)
    segment.log_probs += log_probs


def _problem(index: int, turn: SampledTurn) -> Diagnostic | None:
    where = f"turn {index}"
    if len(turn.log_probs) != len(turn.completion):
        text = f"{len(turn.completion)} sampled tokens, but {len(turn.log_probs)} log-probabilities"
        return Diagnostic(code="log-probs-length", severity=Severity.ERROR, message=text, where=where)
    if not all(math.isfinite(value) and value <= LOG_PROB_SLACK for value in turn.log_probs):
        text = "a log-probability of a sampled token is above 0 or not finite"
        return Diagnostic(code="log-probs-value", severity=Severity.ERROR, message=text, where=where)
    if not turn.completion:
        text = "nothing was sampled in this turn"
        return Diagnostic(code="completion-empty", severity=Severity.WARN, message=text, where=where)
    if not turn.prompt:
        text = "the prompt has no tokens, so there is nothing that the completion continues"
        return Diagnostic(code="prompt-empty", severity=Severity.ERROR, message=text, where=where)
    return None
