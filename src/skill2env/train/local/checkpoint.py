"""Checkpoints of a training run: whole or not at all, and the last good one stays when the disk is full."""

import pickle
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.records import Record
from skill2env.store.files import move_into_place, staged_folder, sweep, write_text
from skill2env.train.local.policy import Policy

FOLDER = "checkpoints"
POLICY = "policy"
"""Folder inside a checkpoint that any program for such models can load."""
_OPTIMISER, _STATE = "optimiser.pt", "state.json"
_NAME = re.compile(r"step-(\d{6})")


class State(Record):
    """Where a run stands."""

    step: int
    """Steps that were made; the next one has this number."""
    drawn: int
    """Groups that were drawn from the schedule."""
    digest: str
    """Of everything that determines the run."""
    odd_steps: int = 0
    """Steps in a row beyond a bound of `StopConfig`."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One on disk."""

    folder: Path
    state: State

    @property
    def policy(self) -> Path:
        """The model's folder."""
        return self.folder / POLICY


def save(
    run: Path, policy: Policy, optimiser: torch.optim.Optimizer, state: State, *, keep: int
) -> Checkpoint:
    """Write a checkpoint and remove all but the last `keep`.

    Raises:
        InfraError: boundary ``storage``; earlier checkpoints are untouched.
    """
    parent = run / FOLDER
    target = parent / f"step-{state.step:06d}"
    sweep(parent)
    with staged_folder(parent) as stage:
        stage.chmod(0o755)
        try:
            policy.model.save_pretrained(stage / POLICY)
            policy.tokenizer.save_pretrained(stage / POLICY)
            torch.save(optimiser.state_dict(), stage / _OPTIMISER)
        except (
            OSError,
            RuntimeError,
            SafetensorError,
        ) as error:  # each wraps a full disk in an error of its own
            free = shutil.disk_usage(parent).free / 2**30
            raise InfraError(
                Boundary.STORAGE,
                f"the checkpoint of step {state.step} cannot be written to {parent}: {error}",
                hint=f"{free:.1f} GiB are free there; make room and give the same command again, "
                "which goes on from the checkpoint before",
                transient=False,
            ) from error
        write_text(stage / _STATE, state.model_dump_json(indent=1) + "\n")
        move_into_place(stage, target)
    for old in _folders(run)[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return Checkpoint(target, state)


def latest(run: Path) -> Checkpoint | None:
    """The last whole checkpoint of a run; damaged ones are passed over."""
    for folder in reversed(_folders(run)):
        try:
            state = State.model_validate_json((folder / _STATE).read_bytes())
        except (OSError, ValidationError):
            continue
        if (folder / _OPTIMISER).is_file() and (folder / POLICY / "config.json").is_file():
            return Checkpoint(folder, state)
    return None


def restore(
    checkpoint: Checkpoint, optimiser: torch.optim.Optimizer, parameters: Sequence[torch.Tensor]
) -> None:
    """Give the optimizer its state back.

    Raises:
        UserError: the file is damaged, or belongs to other parameters.
    """
    try:
        found: dict[str, Any] = torch.load(checkpoint.folder / _OPTIMISER, weights_only=True)
        listed = sum(len(group["params"]) for group in found["param_groups"])
        if listed != len(parameters):
            raise ValueError(f"it knows {listed} parameters instead of {len(parameters)}")
        optimiser.load_state_dict(found)
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, pickle.UnpicklingError) as error:
        raise UserError(
            f"the optimizer's state in {checkpoint.folder} cannot be used: {str(error)[:200]}",
            hint="remove that folder, and the run goes on from the checkpoint before",
        ) from error


def _folders(run: Path) -> list[Path]:
    parent = run / FOLDER
    found = [path for path in parent.glob("step-*") if _NAME.fullmatch(path.name)] if parent.is_dir() else []
    return sorted(found)
