"""Sample answers of the policy, with the log-probability of every sampled token in fp32.

Each answer has a generator of its own, seeded by the request and its prompt: what is sampled for one request does not
depend on the order of the others. Prompts that are asked several times are read once.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from skill2env.train.local.policy import Policy


@dataclass(frozen=True, slots=True, order=True)
class Ask:
    """A request for one answer."""

    prompt: tuple[int, ...]
    seed: int = 0
    max_tokens: int = 24
    temperature: float = 1.0
    """0 takes the likeliest token; its log-probability is then the one at temperature 1."""
    stop: tuple[str, ...] = ()
    """Texts that end the answer. The token that completes one is part of the answer's tokens, not of its text."""


@dataclass(slots=True)
class Answer:
    """What was sampled."""

    tokens: list[int] = field(default_factory=list[int])
    log_probs: list[float] = field(default_factory=list[float])
    text: str = ""
    finish: str = "length"
    """``stop`` where it ended by itself or at a stop text, else ``length``."""


@torch.inference_mode()
def sample(policy: Policy, asks: Sequence[Ask]) -> list[Answer]:
    """Answers in the order of the requests.

    Raises:
        FloatingPointError: the policy gives probabilities that are no numbers.
    """
    order = sorted(range(len(asks)), key=lambda at: asks[at])
    answers = [Answer() for _ in asks]
    batch = _Batch(policy, [asks[at] for at in order], [answers[at] for at in order])
    batch.run()
    return answers


@dataclass(frozen=True, slots=True)
class _Live:
    ask: Ask
    answer: Answer
    generator: torch.Generator


class _Batch:
    """Answers that are sampled side by side; those that have ended leave the batch."""

    def __init__(self, policy: Policy, asks: Sequence[Ask], answers: Sequence[Answer]) -> None:
        self._policy = policy
        self._live = [_Live(ask, answer, _generator(ask)) for ask, answer in zip(asks, answers, strict=True)]
        self._head = policy.head.float()
        self._ends = policy.ends

    def run(self) -> None:
        states, cache, present = self._read()
        while self._live:
            chosen = self._choose(states)
            kept = [at for at, token in enumerate(chosen) if not self._ended(at, token)]
            if not kept:
                break
            if len(kept) < len(self._live):
                index = torch.tensor(kept)
                cache.batch_select_indices(index)
                present = present[index]
                self._live = [self._live[at] for at in kept]
            tokens = torch.tensor([[chosen[at]] for at in kept])
            positions = present.sum(-1, keepdim=True)
            present = torch.cat([present, torch.ones_like(tokens)], dim=-1)
            hidden, cache = self._policy.states(tokens, present, positions, cache)
            states = hidden[:, -1]

    def _read(self) -> tuple[Tensor, Any, Tensor]:
        """State after each prompt, the cache, and which cached positions are no padding."""
        unique = sorted({item.ask.prompt for item in self._live})
        longest = max(map(len, unique))
        tokens, present = (torch.zeros(len(unique), longest, dtype=torch.long) for _ in range(2))
        for at, prompt in enumerate(unique):  # padded in front: all prompts end at the same place
            tokens[at, longest - len(prompt) :] = torch.tensor(prompt)
            present[at, longest - len(prompt) :] = 1
        positions = (present.cumsum(-1) - 1).clamp(min=0)
        hidden, cache = self._policy.states(tokens, present, positions, keep=True)
        index = torch.tensor([unique.index(item.ask.prompt) for item in self._live])
        cache.batch_select_indices(index)
        return hidden[:, -1][index], cache, present[index]

    def _choose(self, states: Tensor) -> list[int]:
        logits = states.float() @ self._head.T
        if not bool(torch.isfinite(logits).all()):
            raise FloatingPointError("the policy gives probabilities that are no numbers")
        heat = torch.tensor([[item.ask.temperature or 1.0] for item in self._live])
        table = (logits / heat).log_softmax(-1)
        chosen: list[int] = []
        for row, live in zip(table, self._live, strict=True):
            greedy = live.ask.temperature == 0
            drawn = row.argmax() if greedy else torch.multinomial(row.exp(), 1, generator=live.generator)
            token = int(drawn)
            live.answer.tokens.append(token)
            live.answer.log_probs.append(float(row[token]))
            chosen.append(token)
        return chosen

    def _ended(self, at: int, token: int) -> bool:
        ask, answer = self._live[at].ask, self._live[at].answer
        answer.text = self._policy.decode(answer.tokens)
        cuts = [where for text in ask.stop if (where := answer.text.find(text)) >= 0]
        if cuts:
            answer.text = answer.text[: min(cuts)]
        if cuts or token in self._ends:
            answer.finish = "stop"
            return True
        return len(answer.tokens) >= ask.max_tokens


def _generator(ask: Ask) -> torch.Generator:
    digest = hashlib.sha256(f"{ask.seed}:{ask.prompt}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
