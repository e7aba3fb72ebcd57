"""Settings of a training run. Everything that changes its numbers is here, and is part of its digest."""

from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, model_validator

from skill2env.config import read_toml
from skill2env.errors import UserError
from skill2env.records import Record
from skill2env.train.advantages import Advantage
from skill2env.train.dppo import DppoConfig
from skill2env.train.filtering import SPREAD_TOLERANCE
from skill2env.train.reward import MissingPolicy, RewardConfig


class Precision(StrEnum):
    """What the body of the model computes in; weights, output layer and loss are fp32 always."""

    FP32 = "fp32"
    BF16 = "bf16"


class SamplingConfig(Record):
    """How the policy acts."""

    temperature: float = Field(default=1.0, gt=0, le=5)
    max_new_tokens: int = Field(default=24, ge=1, le=8192)
    """Tokens of one answer at most."""
    turns: int = Field(default=1, ge=1, le=50)
    """Commands a rollout at most."""
    context_tokens: int = Field(default=1024, ge=64)
    """Prompt and answer together; a longer dialogue ends the rollout as the agent's error."""


class OptimiserConfig(Record):
    """AdamW, constant rate after a linear start."""

    learning_rate: float = Field(default=3e-5, gt=0, le=1)
    warmup_steps: int = Field(default=0, ge=0)
    betas: tuple[float, float] = (0.9, 0.95)
    epsilon: float = Field(default=1e-8, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    max_norm: float = Field(default=1.0, gt=0)
    """Gradients are scaled down to this norm."""
    updates: int = Field(default=1, ge=1, le=64)
    """Updates a step: the groups of a batch are divided among them."""
    rows: int = Field(default=16, ge=1)
    """Sequences in one forward pass; bounds memory, changes no result beyond rounding."""


class StopConfig(Record):
    """When a run that has gone astray is ended, with the last good checkpoint kept."""

    log_ratio: float = Field(default=1.0, gt=0)
    """Mean |log pi - log mu| of a batch before its update: beyond it, trainer and sampler disagree about the policy."""
    entropy: float = Field(default=0.0, ge=0)
    """Nats a sampled token (mean of minus log mu) below which the policy counts as collapsed; 0 for never."""
    patience: int = Field(default=3, ge=1)
    """Steps in a row. Numbers that are not finite end the run at once."""


class TrainConfig(Record):
    """A training run."""

    steps: int = Field(default=40, ge=1)
    seed: int = 0
    groups: int = Field(default=2, ge=1)
    """Groups with a signal that a step wants."""
    group_size: int = Field(default=8, ge=2)
    """Rollouts of a task that are compared with each other."""
    most_drawn: int = Field(default=6, ge=1)
    """Groups that are rolled out for a step at most, when some hold no signal."""
    spread: float = Field(default=SPREAD_TOLERANCE, ge=0)
    """Groups whose final rewards lie no further apart hold no signal."""
    advantage: Advantage = Advantage.CENTERED
    reward: RewardConfig = RewardConfig(missing=MissingPolicy.KEEP_REST)
    loss: DppoConfig = DppoConfig()
    sampling: SamplingConfig = SamplingConfig()
    optimiser: OptimiserConfig = OptimiserConfig()
    trained_layers: int | None = Field(default=None, ge=1)
    """Layers at the top of the model that learn, with the last norm; None for the whole model."""
    precision: Precision = Precision.FP32
    stop: StopConfig = StopConfig()
    checkpoint_every: int = Field(default=10, ge=1)
    keep: int = Field(default=2, ge=1)
    """Checkpoints that are kept."""
    command_sec: int = Field(default=10, ge=1)
    """Seconds that one command of the policy may run."""

    @model_validator(mode="after")
    def _fits(self) -> "TrainConfig":
        if self.most_drawn < self.groups:
            raise ValueError(f"most_drawn ({self.most_drawn}) is below groups ({self.groups})")
        if self.optimiser.updates > self.groups:
            raise ValueError(f"optimiser.updates ({self.optimiser.updates}) is above groups ({self.groups})")
        if self.sampling.max_new_tokens >= self.sampling.context_tokens:
            raise ValueError("sampling.max_new_tokens leaves no room for a prompt in sampling.context_tokens")
        return self


def read_config(file: Path | None, **changes: Any) -> TrainConfig:
    """Settings from a TOML file, with changes on top; None is no change.

    Raises:
        UserError: the file cannot be read, or a setting is none.
    """
    table = read_toml(file) if file else {}
    table |= {name: value for name, value in changes.items() if value is not None}
    try:
        return TrainConfig.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the settings"
        raise UserError(
            f"{file or 'the settings'}: {where}: {first['msg']}", hint="docs/training.md lists all settings"
        ) from error
