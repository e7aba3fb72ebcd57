"""One optimizer step of DPPO over the sequences of a batch."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from skill2env.train.dppo import BatchTotals, DppoConfig, DppoStats, dppo_loss, token_weights, totals_of
from skill2env.train.local.policy import Policy, suffix_states
from skill2env.train.log_probs import head_log_probs


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence of a rollout. The three lists have the same length."""

    tokens: tuple[int, ...]
    mask: tuple[bool, ...]
    log_probs: tuple[float, ...]
    """Of the policy that sampled, at the temperature it sampled at; 0 where the mask is False."""
    advantage: float
    group: str
    """Rows of one group share their beginning, so they are computed together."""
    rollout: int
    """Segments of one rollout count as one sequence."""


@dataclass(frozen=True, slots=True)
class Updated:
    """What one update saw. Means are over the tokens that are learned from; 0 when there are none."""

    loss: float
    tokens: int
    masked: float
    """Share of tokens beyond the bound that get no gradient."""
    capped: float
    """Share of tokens whose ratio was cut."""
    divergence: float
    log_ratio: float
    """Mean |log pi - log mu|, before this update."""
    entropy: float
    """Nats."""
    norm: float
    """Of the gradient, before it was scaled down."""

    @property
    def finite(self) -> bool:
        """Whether the update was made: numbers that are not finite leave the policy as it was."""
        return all(map(math.isfinite, (self.loss, self.norm, self.log_ratio, self.entropy)))


def update(
    policy: Policy,
    optimiser: torch.optim.Optimizer,
    rows: Sequence[Row],
    loss: DppoConfig,
    *,
    temperature: float = 1.0,
    at_once: int = 16,
    max_norm: float = 1.0,
) -> Updated:
    """Learn from `rows`, a piece at a time.

    Args:
        policy: the model; its parameters that ask for gradients are those of the optimizer.
        optimiser: makes the step.
        rows: the whole batch of this update; the order changes nothing beyond rounding.
        loss: settings of the loss.
        temperature: the one that was sampled at.
        at_once: rows in one forward pass.
        max_norm: gradients are scaled down to this norm.

    Returns:
        What was seen. Nothing is changed when a number is not finite.
    """
    pieces = list(_pieces([row for row in rows if True in row.mask[1:]], at_once))
    totals = BatchTotals(0, 0, 0)
    for piece in pieces:
        totals += _totals(piece)
    optimiser.zero_grad(set_to_none=True)
    value, entropy = 0.0, 0.0
    sums = [0.0] * 5
    for piece in pieces:
        lost, stats, spread = _piece(policy, piece, loss, totals, temperature)
        lost.backward()
        value += float(lost.detach())
        entropy += spread
        seen = (stats.tokens, stats.masked, stats.capped, stats.divergence, stats.log_ratio)
        sums = [old + float(new) for old, new in zip(sums, seen, strict=True)]
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    norm = float(torch.nn.utils.clip_grad_norm_(parameters, max_norm))
    tokens = max(1.0, sums[0])
    masked, capped, divergence, log_ratio = (item / tokens for item in sums[1:])
    made = Updated(value, int(sums[0]), masked, capped, divergence, log_ratio, entropy / tokens, norm)
    if made.finite:
        optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    return made


def _pieces(rows: Sequence[Row], at_once: int) -> Iterator[list[Row]]:
    """Rows that are computed together: of one group, and no more than `at_once` unless one rollout has more."""
    ordered = sorted(rows, key=lambda row: (row.group, row.tokens, row.rollout))
    by_rollout: dict[tuple[str, int], list[Row]] = {}
    for row in ordered:
        by_rollout.setdefault((row.group, row.rollout), []).append(row)
    piece: list[Row] = []
    for (group, _), segments in by_rollout.items():
        if piece and (piece[0].group != group or len(piece) + len(segments) > at_once):
            yield piece
            piece = []
        piece += segments
    if piece:
        yield piece


def _totals(piece: Sequence[Row]) -> BatchTotals:
    return totals_of(_mask(piece, 0), _sequences(piece))


def _sequences(piece: Sequence[Row]) -> Tensor:
    numbers = {rollout: at for at, rollout in enumerate(dict.fromkeys(row.rollout for row in piece))}
    return torch.tensor([numbers[row.rollout] for row in piece])


def _mask(piece: Sequence[Row], start: int) -> Tensor:
    longest = max(len(row.tokens) for row in piece)
    mask = torch.zeros(len(piece), longest - start, dtype=torch.bool)
    for at, row in enumerate(piece):
        mask[at, : len(row.mask) - start] = torch.tensor(row.mask[start:], dtype=torch.bool)
    return mask


def _piece(
    policy: Policy, piece: Sequence[Row], loss: DppoConfig, totals: BatchTotals, temperature: float
) -> tuple[Tensor, DppoStats, float]:
    """Loss of a piece with gradient, its sums, and the sum of entropies."""
    # The state at a position predicts the next one: the first sampled token needs the state before it.
    most = min(row.mask.index(True) for row in piece) - 1
    states, shared = suffix_states(policy, [row.tokens for row in piece], most)
    first = shared + 1
    mask = _mask(piece, first)
    where = mask.nonzero(as_tuple=True)
    tokens, mu = (torch.zeros(mask.shape, dtype=kind) for kind in (torch.long, torch.float32))
    gain = torch.tensor([row.advantage for row in piece], dtype=torch.float32)
    for at, row in enumerate(piece):
        count = len(row.tokens) - first
        tokens[at, :count] = torch.tensor(row.tokens[first:], dtype=torch.long)
        mu[at, :count] = torch.tensor(row.log_probs[first:], dtype=torch.float32)
    log_probs, entropies = head_log_probs(
        states[:, :-1][where], policy.head, tokens[where], temperature=temperature
    )
    weights = token_weights(mask, loss.reduction, sequences=_sequences(piece), totals=totals)
    value, stats = dppo_loss(log_probs, mu[where], gain[where[0]], weights[where], loss)
    return value, stats, float(entropies.sum())
