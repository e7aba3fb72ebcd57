"""A small causal language model that acts and learns in one process.

The body computes in fp32 or bf16; weights, the output layer and everything after it are fp32, for sampling and for
learning alike, so that both see the same policy up to rounding.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from skill2env.errors import UserError
from skill2env.train.local.config import Precision

PREFIX = 2
"""Shortest beginning that several sequences share for which it is worth computing it once."""


def use_threads(count: int | None) -> None:
    """Compute with so many threads; None for as many as there are cores."""
    if count:
        torch.set_num_threads(count)


@dataclass(slots=True)
class Policy:
    """A model with its tokenizer."""

    model: Any
    """``LlamaForCausalLM`` or another decoder of Transformers with an ``lm_head``."""
    tokenizer: Any
    precision: Precision = Precision.FP32
    name: str = "policy"

    @classmethod
    def load(cls, folder: Path, *, precision: Precision = Precision.FP32) -> "Policy":
        """A model folder as Transformers writes it.

        Raises:
            UserError: the extra is missing, or the folder holds no such model.
        """
        from skill2env.train.local.quiet import quiet_transformers

        models, tokenizers = quiet_transformers()
        try:
            model = models.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
            tokenizer = tokenizers.from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError, KeyError) as error:
            raise UserError(
                f"{folder} holds no model that can be loaded: {str(error).splitlines()[0][:300]}",
                hint="give a folder with config.json, model.safetensors and a tokenizer",
            ) from error
        if not getattr(tokenizer, "chat_template", None):
            raise UserError(f"the tokenizer of {folder} has no chat template", hint="take an instruct model")
        model.eval()  # no dropout, so that sampling and learning see one policy
        return cls(model, tokenizer, precision, folder.name)

    def choose_layers(self, count: int | None) -> list[Tensor]:
        """Let the last `count` layers and the last norm learn, or everything (None); the parameters that do.

        Raises:
            UserError: there are not so many layers.
        """
        body = self.model.model
        if count is not None and count > len(body.layers):
            raise UserError(f"the model has {len(body.layers)} layers, not {count}")
        self.model.requires_grad_(count is None)
        if count is not None:
            for part in (*body.layers[len(body.layers) - count :], body.norm):
                part.requires_grad_(True)
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    @property
    def head(self) -> Tensor:
        """Weight of the output layer, [vocabulary, width]."""
        return self.model.lm_head.weight

    @property
    def ends(self) -> frozenset[int]:
        """Tokens that end an answer."""
        found = getattr(self.model.generation_config, "eos_token_id", None)
        listed = found if isinstance(found, list) else [found]
        return frozenset(int(token) for token in (*listed, self.tokenizer.eos_token_id) if token is not None)

    def encode(self, messages: Sequence[dict[str, str]]) -> tuple[int, ...]:
        """Token ids of a dialogue, open for the next answer."""
        text = self.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of an answer, without the tokens that frame it."""
        return self.tokenizer.decode(list(tokens), skip_special_tokens=True)

    def states(
        self, tokens: Tensor, present: Tensor, positions: Tensor, cache: Any = None, *, keep: bool = False
    ) -> tuple[Tensor, Any]:
        """Last hidden states, and the cache with these tokens added.

        Args:
            tokens: [rows, length].
            present: [rows, cached + length], 0 for padding.
            positions: [rows, length].
            cache: of earlier tokens of the same rows.
            keep: a cache is wanted.

        Returns:
            [rows, length, width] in the precision of the body; the cache, None unless one is wanted or given.
        """
        with self._computing():
            out = self.model.model(
                input_ids=tokens,
                attention_mask=present,
                position_ids=positions,
                cache=cache,
                use_cache=keep or cache is not None,
            )
        return out.last_hidden_state, out.cache

    @contextmanager
    def _computing(self) -> Generator[None]:
        half = self.precision is Precision.BF16
        with torch.autocast("cpu", torch.bfloat16) if half else nullcontext():
            yield


def suffix_states(policy: Policy, rows: Sequence[Sequence[int]], most: int) -> tuple[Tensor, int]:
    """Hidden states with gradient, what all rows begin with computed once.

    Args:
        policy: the model.
        rows: token ids, each row at least one.
        most: tokens that may be shared; states before them are not given out.

    Returns:
        [rows, longest - shared, width], padded at the end, and the number of tokens before: the state at ``[row, j]``
        is the one at position ``shared + j`` of the row.
    """
    shared = _shared(rows, most)
    longest = max(len(row) for row in rows) - shared
    tokens = torch.zeros(len(rows), longest, dtype=torch.long)
    present = torch.zeros(len(rows), shared + longest, dtype=torch.long)
    for at, row in enumerate(rows):
        tokens[at, : len(row) - shared] = torch.tensor(list(row[shared:]), dtype=torch.long)
        present[at, : len(row)] = 1
    positions = torch.arange(shared, shared + longest).expand(len(rows), -1)
    cache = None
    if shared:
        start = torch.tensor([list(rows[0][:shared])], dtype=torch.long)
        _, cache = policy.states(start, torch.ones_like(start), torch.arange(shared).unsqueeze(0), keep=True)
        cache.batch_repeat_interleave(len(rows))
    states, _ = policy.states(tokens, present, positions, cache)
    return states, shared


def _shared(rows: Sequence[Sequence[int]], most: int) -> int:
    """Tokens that all rows begin with, at least one less than the shortest has; 0 where it is not worth it."""
    if len(rows) < 2:
        return 0
    first, most = rows[0], min(most, *(len(row) - 1 for row in rows))
    shared = 0
    while shared < most and all(row[shared] == first[shared] for row in rows):
        shared += 1
    return shared if shared >= PREFIX else 0
