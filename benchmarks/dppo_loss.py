"""Our DPPO loss and log-probabilities against those of an installed trainer, on the same tensors, in one process.

    python benchmarks/dppo_loss.py [--tokens 65536] [--positions 512] [--vocabulary 49152] [--repeats 30]

The peer is verl where it is installed (an environment of its own: ``pip install torch verl``, then run this file with
``PYTHONPATH=src``). The plain form, written as in the paper with autograd doing the rest, is measured everywhere.
Turns alternate, so that the load of the machine meets all alike. Memory is what torch's allocator holds at most beyond
the input. Ours also counts masked and capped tokens and divergences, as verl does and the plain form does not.

Exit code 1 when a gradient differs, or ours is slower or larger than the peer, or larger than the plain form.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from skill2env.train.dppo import DppoConfig, Reduction, dppo_loss, token_weights
from skill2env.train.log_probs import selected_log_probs

Loss = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
LogProbs = Callable[[Tensor, Tensor], Tensor]
SLACK = 1.05
"""Ratios up to this count as equal: turns of the same code differ by as much."""
ROWS = 64


def ours(log_probs: Tensor, rollout: Tensor, advantages: Tensor, mask: Tensor) -> Tensor:
    return dppo_loss(log_probs, rollout, advantages, token_weights(mask, Reduction.TOKEN_MEAN), DppoConfig())[
        0
    ]


def plain(log_probs: Tensor, rollout: Tensor, advantages: Tensor, mask: Tensor) -> Tensor:
    ratio = torch.exp(torch.clamp(log_probs - rollout, -20, 20)).clamp(max=20).detach()
    p, q = rollout.exp(), log_probs.exp()
    divergence = p * (rollout - log_probs) + (1 - p) * torch.log((1 - p + 1e-8) / (1 - q + 1e-8))
    away = torch.where(advantages > 0, log_probs > rollout, (advantages < 0) & (log_probs < rollout))
    keep = (~((divergence > 0.05) & away)).float().detach()
    return (-advantages * ratio * log_probs * keep * mask).sum() / mask.sum()


def peer_loss() -> Loss | None:
    """verl's, or None where it is not installed."""
    try:
        from verl.trainer.ppo.core_algos import compute_policy_loss_dppo_kl
        from verl.workers.config import ActorConfig
    except ImportError as error:
        print(f"verl cannot be imported, so only the plain form is compared: {error}")
        return None
    config: Any = ActorConfig(
        strategy="fsdp", rollout_n=8, ppo_micro_batch_size_per_gpu=1, clip_ratio=0.05, clip_ratio_low=0.05,
        clip_ratio_high=0.05, clip_ratio_c=20.0,
    )  # fmt: skip

    def loss(log_probs: Tensor, rollout: Tensor, advantages: Tensor, mask: Tensor) -> Tensor:
        return compute_policy_loss_dppo_kl(rollout, log_probs, advantages, mask, "token-mean", config)[0]

    return loss


def ours_selected(logits: Tensor, tokens: Tensor) -> Tensor:
    return selected_log_probs(logits, tokens)


def plain_selected(logits: Tensor, tokens: Tensor) -> Tensor:
    return logits.float().log_softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


def peer_selected() -> LogProbs | None:
    """verl's, or None where it is not installed."""
    try:
        from verl.utils.torch_functional import logprobs_from_logits
    except ImportError:
        return None
    # It goes row by row over a batch; sixteen bits are widened first, as its actors do.
    return lambda logits, tokens: logprobs_from_logits(logits.float().unsqueeze(0), tokens.unsqueeze(0))[0]


def batch(tokens: int, device: str) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(7)
    shape = (ROWS, max(1, tokens // ROWS))
    rollout = -torch.rand(shape, generator=generator) * 3
    log_probs = (rollout + torch.randn(shape, generator=generator) * 0.3).clamp(max=-1e-3)
    advantages = torch.randn((ROWS, 1), generator=generator).expand(shape).contiguous()
    mask = (torch.rand(shape, generator=generator) < 0.8).float()
    return tuple(item.to(device) for item in (log_probs, rollout, advantages, mask))


def logits_of(positions: int, vocabulary: int, device: str) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(8)
    logits = torch.randn((positions, vocabulary), generator=generator).to(torch.bfloat16)
    return logits.to(device), torch.randint(vocabulary, (positions,), generator=generator).to(device)


def once(function: Callable[..., Tensor], leaf: Tensor, *others: Tensor) -> Tensor:
    """Forward and backward; the gradient."""
    leaf = leaf.detach().requires_grad_()
    function(leaf, *others).sum().backward()
    assert leaf.grad is not None
    return leaf.grad


def compare(
    name: str, kinds: dict[str, Callable[..., Tensor]], tensors: tuple[Tensor, ...], repeats: int
) -> bool:
    """Print one row for each kind; whether ours is right and no slower than any."""
    grads = {kind: once(function, *tensors) for kind, function in kinds.items()}
    good = True
    for kind, grad in grads.items():
        difference = (grad - grads["ours"]).abs().max().item()
        bound = 2e-3 * grads["ours"].abs().max().item()  # sixteen bits hold eight digits of two
        if grads["ours"].dtype == torch.float32:
            bound = 1e-6 * max(1.0, grads["ours"].abs().max().item())
        good &= difference <= bound
        print(f"{name}: largest difference between gradients of ours and {kind}: {difference:.2e}")
    spent: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(repeats):
        for kind, function in kinds.items():
            begun = time.perf_counter()
            once(function, *tensors)
            if tensors[0].is_cuda:
                torch.cuda.synchronize()
            spent[kind].append(time.perf_counter() - begun)
    medians = {kind: statistics.median(times) for kind, times in spent.items()}
    # On a busy machine a median tells who was interrupted; the best turns compare the code.
    for kind, median in medians.items():
        best, mine = min(spent[kind]), min(spent["ours"])
        print(
            f"{name}: {kind}: median {median * 1e3:.2f} ms, best {best * 1e3:.2f} ms, ours/it {mine / best:.2f}"
        )
        good &= kind == "plain" or mine / best <= SLACK
    return good


def peak(function: Callable[..., Tensor], tensors: tuple[Tensor, ...]) -> int:
    """Bytes that one forward and backward holds at once beyond its input, as torch's allocators tell."""
    if tensors[0].is_cuda:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        once(function, *tensors)
        return torch.cuda.max_memory_allocated() - before
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        once(function, *tensors)
    results: Any = profile.profiler
    changes = [event for event in results.kineto_results.events() if event.name() == "[memory]"]
    held = highest = 0
    for event in sorted(changes, key=lambda event: event.start_ns()):
        held += event.nbytes()
        highest = max(highest, held)
    return highest


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokens", type=int, default=65536)
    parser.add_argument("--positions", type=int, default=512)
    parser.add_argument("--vocabulary", type=int, default=49152)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=1, help="one, where others use the machine as well")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(f"torch {torch.__version__}, {arguments.device}, {torch.get_num_threads()} threads, "
          f"load of the machine {os.getloadavg()[0]:.1f}")  # fmt: skip
    losses: dict[str, Callable[..., Tensor]] = {"ours": ours, "plain": plain}
    selected: dict[str, Callable[..., Tensor]] = {"ours": ours_selected, "plain": plain_selected}
    theirs, theirs_selected = peer_loss(), peer_selected()
    if theirs and theirs_selected:
        losses["verl"], selected["verl"] = theirs, theirs_selected
    good = compare(f"loss of {arguments.tokens} tokens", losses, batch(arguments.tokens, arguments.device),
                   arguments.repeats)  # fmt: skip
    name = f"log-probs of {arguments.positions} positions, {arguments.vocabulary} words, bf16"
    tensors = logits_of(arguments.positions, arguments.vocabulary, arguments.device)
    good &= compare(name, selected, tensors, max(3, arguments.repeats // 6))
    inputs = {"loss": batch(arguments.tokens, arguments.device), "log-probs": tensors}
    for what, kinds in (("loss", losses), ("log-probs", selected)):
        found = {kind: peak(function, inputs[what]) for kind, function in kinds.items()}
        for kind, value in found.items():
            print(
                f"{what}: {kind}: peak {value / 2**20:.2f} MiB, ours/it {found['ours'] / max(1, value):.2f}"
            )
            good &= found["ours"] <= value * SLACK
    print(f"load of the machine at the end {os.getloadavg()[0]:.1f}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
