"""The DPPO loss: a policy gradient whose trust region is the divergence from the policy that sampled.

For a sampled token, ``mu`` is its probability under the policy of the rollout engine and ``pi`` under the policy that
is trained. A token is masked when the binary divergence between the two is above a bound and the update would push it
further away. Kept tokens are weighted by ``pi / mu``, capped. No log-probability of an old policy is needed.

    loss = - sum_t  weight_t * keep_t * min(pi_t / mu_t, cap) * A_t * log pi_t

Only ``log pi_t`` carries gradient; everything else is a constant. Other implementations differentiate ``pi / mu``
itself: the gradients are equal, the values of the loss are not. Masked tokens stay in the denominators of the weights.

Covers: both divergences, both ways to mask, the cap, every reduction over a batch that is computed piece by piece. Does
not cover: computing log-probabilities (`log_probs`), advantages (`advantages`).
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, override

import torch
from pydantic import Field
from torch import Tensor

from skill2env.records import Record

EDGE = 1e-8
"""How close to 1 a probability is taken to lie at most: log(1 - p) stays finite."""
RATIO_EXPONENT = 20.0
"""Bound on the logarithm of pi / mu, so that no weight overflows where there is no cap."""


class Divergence(StrEnum):
    """How far the trained policy is from the sampling one, for one token, seen as a coin: this token or another."""

    BINARY_KL = "binary_kl"
    """Kullback-Leibler divergence of the sampling policy from the trained one, in nats."""
    BINARY_TV = "binary_tv"
    """Total variation: difference of the two probabilities."""


class MaskMode(StrEnum):
    """Which tokens beyond the bound are masked."""

    DIRECTIONAL = "directional"
    """Those that the update would push further away; tokens on their way back are learned from."""
    SYMMETRIC = "symmetric"
    """All of them."""


class Reduction(StrEnum):
    """How token losses become one number. A sequence is a rollout: its segments count as one."""

    TOKEN_MEAN = "token-mean"
    """Every sampled token of the batch weighs the same."""
    SEQUENCE_MEAN_TOKEN_SUM = "seq-mean-token-sum"
    """Sum within a sequence, mean over sequences."""
    SEQUENCE_MEAN_TOKEN_MEAN = "seq-mean-token-mean"
    """Mean within a sequence, mean over sequences: every sequence weighs the same."""
    SEQUENCE_MEAN_TOKEN_SUM_NORM = "seq-mean-token-sum-norm"
    """Sum within a sequence over a fixed length, mean over sequences."""


DEFAULT_DELTA = {Divergence.BINARY_KL: 0.05, Divergence.BINARY_TV: 0.15}
"""Bounds that the authors of the method recommend."""


class DppoConfig(Record):
    """Settings of the loss."""

    divergence: Divergence = Divergence.BINARY_KL
    delta_low: float | None = Field(default=None, ge=0)
    """Bound for tokens with a negative advantage; None for the recommended one. A token at the bound is kept."""
    delta_high: float | None = Field(default=None, ge=0)
    """Bound for tokens with a positive advantage."""
    mask: MaskMode = MaskMode.DIRECTIONAL
    ratio_cap: float | None = Field(default=20.0, gt=0)
    """Largest weight pi / mu; None for none (below e^20)."""
    reduction: Reduction = Reduction.TOKEN_MEAN

    @property
    def low(self) -> float:
        """The bound for negative advantages."""
        return DEFAULT_DELTA[self.divergence] if self.delta_low is None else self.delta_low

    @property
    def high(self) -> float:
        """The bound for positive advantages."""
        return DEFAULT_DELTA[self.divergence] if self.delta_high is None else self.delta_high


@dataclass(frozen=True, slots=True)
class DppoStats:
    """What one call saw, as sums that add up over pieces of a batch. Reading these tensors waits for the device."""

    tokens: Tensor
    """Tokens that are learned from (weight above 0), masked ones included."""
    masked: Tensor
    """Tokens beyond the bound that get no gradient."""
    capped: Tensor
    """Tokens whose ratio was cut."""
    divergence: Tensor
    """Sum of the divergence."""
    log_ratio: Tensor
    """Sum of |log pi - log mu|: the mismatch between rollout engine and trainer, before any update."""


def binary_divergence(mu: Tensor, pi: Tensor, kind: Divergence) -> Tensor:
    """Divergence of each token.

    Args:
        mu: log-probabilities under the sampling policy.
        pi: log-probabilities under the trained policy, same shape and type.
        kind: which one.

    Returns:
        Numbers not below 0, finite also where a probability is 1.
    """
    if kind is Divergence.BINARY_TV:
        return pi.exp().sub_(mu.exp()).abs_()
    # log(1 - p) from log p without cancellation: expm1 keeps what exp would round away next to 1.
    rest_mu = mu.clamp(max=-EDGE).expm1_().neg_()
    rest_pi = pi.clamp(max=-EDGE).expm1_().neg_()
    rest = torch.div(rest_mu, rest_pi, out=rest_pi).log_().mul_(rest_mu)
    return rest.add_(torch.sub(mu, pi).mul_(rest_mu.neg_().add_(1))).clamp_(min=0)


def dppo_loss(
    log_probs: Tensor, rollout_log_probs: Tensor, advantages: Tensor, weights: Tensor, config: DppoConfig
) -> tuple[Tensor, DppoStats]:
    """Loss of a batch, or of a piece of one: losses of the pieces add up to the loss of the batch.

    Args:
        log_probs: log pi of the sampled tokens, with gradient; any shape.
        rollout_log_probs: log mu, same shape.
        advantages: advantage of each token, same shape or one that broadcasts to it.
        weights: share of each token in the loss, same shape: see `token_weights`. Where it is 0 nothing else is
            looked at, so padding may hold anything.
        config: the settings.

    Returns:
        A scalar in fp32 (fp64 for fp64 input), and sums for the metrics.
    """
    wide = torch.float64 if log_probs.dtype == torch.float64 else torch.float32
    with torch.no_grad():
        pi, mu, gain = (item.to(wide) for item in (log_probs.detach(), rollout_log_probs, advantages))
        idle = weights <= 0
        distance = binary_divergence(mu, pi, config.divergence)
        log_ratio = pi - mu
        masked = _masked(distance, log_ratio, gain, config).logical_and_(~idle)
        highest = RATIO_EXPONENT if config.ratio_cap is None else math.log(config.ratio_cap)
        factor = log_ratio.clamp(-RATIO_EXPONENT, highest).exp_().mul_(gain).mul_(weights).neg_()
        # Padding may be infinite or no number, and 0 times that is no number either: it is replaced, not multiplied.
        factor.masked_fill_(masked | idle, 0)
        capped = (log_ratio > highest).logical_and_(~idle).sum()
        stats = DppoStats(
            tokens=idle.numel() - idle.sum(),
            masked=masked.sum(),
            capped=capped if config.ratio_cap is not None else torch.zeros_like(capped),
            divergence=distance.masked_fill_(idle, 0).sum(),
            log_ratio=log_ratio.abs_().masked_fill_(idle, 0).sum(),
        )
    return _Weighted.apply(log_probs, factor, idle), stats


class _Weighted(torch.autograd.Function):
    """Sum of factor * log pi, whose gradient is the factor whatever padding holds."""

    @staticmethod
    @override
    def forward(ctx: Any, log_probs: Tensor, factor: Tensor, idle: Tensor) -> Tensor:
        ctx.save_for_backward(factor)
        ctx.kind = log_probs.dtype
        return (factor * log_probs).masked_fill_(idle, 0).sum()

    @staticmethod
    @override
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        (factor,) = ctx.saved_tensors
        return (factor * grads[0]).to(ctx.kind), None, None


def token_weights(
    mask: Tensor,
    reduction: Reduction,
    *,
    sequences: Tensor | None = None,
    totals: "BatchTotals | None" = None,
) -> Tensor:
    """Share of each token in the loss of the whole batch.

    Args:
        mask: True for sampled tokens, [rows, length].
        reduction: how to weigh.
        sequences: number of the rollout that each row is a segment of, from 0; None when each row is a rollout.
        totals: of the whole batch, when `mask` is only a piece of it; no rollout may be divided between pieces then,
            except under the reductions that do not ask for its length.

    Returns:
        fp32, 0 where the mask is False; all 0 when nothing was sampled.
    """
    mask = mask.bool()
    totals = totals or totals_of(mask, sequences)
    whole = mask.float()
    count = max(1, totals.sequences)
    match reduction:
        case Reduction.TOKEN_MEAN:
            return whole / max(1, totals.tokens)
        case Reduction.SEQUENCE_MEAN_TOKEN_SUM:
            return whole / count
        case Reduction.SEQUENCE_MEAN_TOKEN_SUM_NORM:
            return whole / (count * max(1, totals.length))
        case Reduction.SEQUENCE_MEAN_TOKEN_MEAN:
            lengths = _lengths(mask, sequences)
            return whole / (count * lengths.clamp(min=1)).unsqueeze(-1)


@dataclass(frozen=True, slots=True)
class BatchTotals:
    """What the reductions divide by, over the whole optimizer batch."""

    tokens: int
    """Sampled tokens."""
    sequences: int
    """Rollouts with at least one sampled token."""
    length: int
    """Length of the longest row, for `Reduction.SEQUENCE_MEAN_TOKEN_SUM_NORM`; trainers may set another one."""

    def __add__(self, other: "BatchTotals") -> "BatchTotals":
        return BatchTotals(
            self.tokens + other.tokens, self.sequences + other.sequences, max(self.length, other.length)
        )


def totals_of(mask: Tensor, sequences: Tensor | None = None) -> BatchTotals:
    """Totals of a batch, or of a piece of one that divides no rollout.

    Args:
        mask: True for sampled tokens, [rows, length].
        sequences: see `token_weights`.
    """
    rows = mask.bool().sum(-1)
    learned = rows > 0
    count = int(learned.sum()) if sequences is None else int(sequences[learned].unique().numel())
    return BatchTotals(int(rows.sum()), count, mask.shape[-1])


def _lengths(mask: Tensor, sequences: Tensor | None) -> Tensor:
    """Sampled tokens of the rollout of each row."""
    rows = mask.sum(-1)
    if sequences is None:
        return rows
    sums = torch.zeros(int(sequences.max()) + 1, dtype=rows.dtype, device=rows.device)
    sums.index_add_(0, sequences, rows)
    return sums[sequences]


def _masked(distance: Tensor, log_ratio: Tensor, gain: Tensor, config: DppoConfig) -> Tensor:
    """Tokens beyond the bound; in directional mode only those that the update moves further away."""
    if config.low == config.high:
        far = distance > config.high
    else:
        far = distance > torch.where(gain > 0, config.high, config.low)
    # Further away: up and already higher, or down and already lower.
    return far.logical_and_(log_ratio * gain > 0) if config.mask is MaskMode.DIRECTIONAL else far
