"""Log-probabilities of sampled tokens in fp32, a slice of the sequence at a time.

The logits of a long batch are the largest tensor of a training step, and rounding them to sixteen bits is most of the
mismatch between rollout engine and trainer. Both functions here compute in fp32 whatever the model computes in, never
hold more than one slice of it, and keep no softmax for the way back: it is computed again.
"""

from typing import Any, override

import torch
from torch import Tensor

SLICE_ELEMENTS = {"cpu": 2**21}
"""Logits that are worked on at once, by kind of device: what the caches of a processor hold."""
OTHER_ELEMENTS = 2**27
"""The same elsewhere: enough to keep a GPU busy, 512 MiB in fp32."""


def selected_log_probs(
    logits: Tensor, tokens: Tensor, *, temperature: float = 1.0, rows: int | None = None
) -> Tensor:
    """Log-probability of one token at each position.

    Args:
        logits: [positions, vocabulary], any floating type.
        tokens: [positions], the sampled ids.
        temperature: the one that the tokens were sampled at.
        rows: positions that are worked on at once; None to choose by the device.

    Returns:
        Log-probabilities with gradient, fp32 (fp64 for fp64 logits).

    Raises:
        ValueError: shapes do not fit, or the temperature is not above 0.
    """
    _check(logits, tokens, temperature)
    rows = rows or _rows(logits, logits.shape[1])
    return _Selected.apply(logits, tokens, temperature, rows)


def head_log_probs(
    hidden: Tensor, head: Tensor, tokens: Tensor, *, temperature: float = 1.0, rows: int | None = None
) -> tuple[Tensor, Tensor]:
    """The same from the last hidden states, with the output layer computed in fp32; no logits are kept.

    Args:
        hidden: [positions, width].
        head: weight of the output layer, [vocabulary, width].
        tokens: [positions], the sampled ids.
        temperature: the one that the tokens were sampled at.
        rows: positions that are worked on at once; None to choose by the device.

    Returns:
        Log-probabilities with gradient, and entropies in nats without.

    Raises:
        ValueError: shapes do not fit, or the temperature is not above 0.
    """
    _check(hidden, tokens, temperature)
    if head.dim() != 2 or head.shape[1] != hidden.shape[1]:
        raise ValueError(
            f"an output layer of {tuple(head.shape)} does not fit states of {tuple(hidden.shape)}"
        )
    rows = rows or _rows(hidden, head.shape[0])
    return _Head.apply(hidden, head, tokens, temperature, rows)


def entropies(logits: Tensor, *, temperature: float = 1.0, rows: int | None = None) -> Tensor:
    """Entropy of each position in nats, fp32, without gradient; arguments as for `selected_log_probs`."""
    rows = rows or _rows(logits, logits.shape[1])
    pieces = logits.detach().split(rows)
    with torch.no_grad():
        return torch.cat([_entropy(piece.to(_wide(logits)) / temperature) for piece in pieces])


def _check(states: Tensor, tokens: Tensor, temperature: float) -> None:
    if states.dim() != 2 or tokens.shape != states.shape[:1]:
        raise ValueError(f"{tuple(tokens.shape)} tokens do not fit {tuple(states.shape)}")
    if not temperature > 0:
        raise ValueError(f"a temperature of {temperature} has no log-probabilities")


def _rows(tensor: Tensor, vocabulary: int) -> int:
    return max(1, SLICE_ELEMENTS.get(tensor.device.type, OTHER_ELEMENTS) // max(1, vocabulary))


def _wide(tensor: Tensor) -> torch.dtype:
    return torch.float64 if tensor.dtype == torch.float64 else torch.float32


def _scaled(piece: Tensor, wide: torch.dtype, temperature: float) -> Tensor:
    """A slice of logits as wide numbers at the temperature; may be the caller's own memory."""
    piece = piece.to(wide)
    return piece if temperature == 1 else piece / temperature


def _chosen(logits: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probability of the tokens, and the normaliser."""
    total = logits.logsumexp(-1)
    return logits.gather(-1, tokens.unsqueeze(-1)).squeeze(-1) - total, total


def _entropy(logits: Tensor) -> Tensor:
    table = logits.log_softmax(-1)
    # A token of probability 0 (a logit of minus infinity) adds nothing, and infinity times 0 would be no number.
    return table.exp().mul_(table.masked_fill_(table == float("-inf"), 0)).sum(-1).neg_()


def _slope(logits: Tensor, tokens: Tensor, total: Tensor, grad: Tensor) -> Tensor:
    """Gradient with respect to logits: grad * (one at the token - softmax)."""
    slope = torch.sub(logits, total.unsqueeze(-1)).exp_().mul_(grad.neg().unsqueeze(-1))
    return slope.scatter_add_(-1, tokens.unsqueeze(-1), grad.unsqueeze(-1))


class _Selected(torch.autograd.Function):
    @staticmethod
    @override
    def forward(ctx: Any, logits: Tensor, tokens: Tensor, temperature: float, rows: int) -> Tensor:
        wide = _wide(logits)
        chosen, total = (logits.new_empty(tokens.shape, dtype=wide) for _ in range(2))
        for at in range(0, tokens.shape[0], rows):
            here = slice(at, at + rows)
            chosen[here], total[here] = _chosen(_scaled(logits[here], wide, temperature), tokens[here])
        ctx.save_for_backward(logits, tokens, total)
        ctx.settings = (temperature, rows)
        return chosen

    @staticmethod
    @override
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        logits, tokens, total = ctx.saved_tensors
        temperature, rows = ctx.settings
        grad = grads[0] / temperature
        result = torch.empty_like(logits)
        for at in range(0, tokens.shape[0], rows):
            here = slice(at, at + rows)
            piece = _scaled(logits[here], total.dtype, temperature)
            result[here] = _slope(piece, tokens[here], total[here], grad[here])
        return result, None, None, None


class _Head(torch.autograd.Function):
    @staticmethod
    @override
    def forward(
        ctx: Any, hidden: Tensor, head: Tensor, tokens: Tensor, temperature: float, rows: int
    ) -> tuple[Tensor, Tensor]:
        wide = _wide(hidden)
        chosen, entropy, total = (hidden.new_empty(tokens.shape, dtype=wide) for _ in range(3))
        layer = head.to(wide)
        for at in range(0, tokens.shape[0], rows):
            here = slice(at, at + rows)
            piece = (hidden[here].to(wide) @ layer.T).div_(temperature)
            chosen[here], total[here] = _chosen(piece, tokens[here])
            entropy[here] = _entropy(piece)
        ctx.save_for_backward(hidden, head, tokens, total)
        ctx.settings = (temperature, rows)
        ctx.mark_non_differentiable(entropy)
        return chosen, entropy

    @staticmethod
    @override
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        hidden, head, tokens, total = ctx.saved_tensors
        temperature, rows = ctx.settings
        grad, wide = grads[0] / temperature, total.dtype
        layer = head.to(wide)
        states = torch.empty_like(hidden) if ctx.needs_input_grad[0] else None
        weights = torch.zeros_like(layer) if ctx.needs_input_grad[1] else None
        for at in range(0, tokens.shape[0], rows):
            here = slice(at, at + rows)
            given = hidden[here].to(wide)
            slope = _slope((given @ layer.T).div_(temperature), tokens[here], total[here], grad[here])
            if states is not None:
                states[here] = slope @ layer
            if weights is not None:
                weights.addmm_(slope.T, given)
        return states, None if weights is None else weights.to(head.dtype), None, None, None
