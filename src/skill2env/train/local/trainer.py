"""The training loop: roll out, filter, update, write down, and again; killed at any moment, it goes on the same."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from skill2env.errors import UserError
from skill2env.harbor.sandboxes import SandboxChoice
from skill2env.progress import Event, EventKind, Progress, silent
from skill2env.records import digest_of
from skill2env.rollout.folder import locked
from skill2env.rollout.run import Subject
from skill2env.store.files import check_writable, write_json
from skill2env.train.local.batch import Batch, Roller, Scorer, summary
from skill2env.train.local.books import Books
from skill2env.train.local.checkpoint import Checkpoint, State, latest, restore, save
from skill2env.train.local.config import OptimiserConfig, TrainConfig
from skill2env.train.local.policy import Policy
from skill2env.train.local.serving import PolicyServer
from skill2env.train.local.update import Row, Updated, update

RUN_FILE = "train.json"


@dataclass(frozen=True, slots=True)
class Trained:
    """How a run ended."""

    steps: int
    policy: Path
    """Folder of the last good policy."""
    stopped: str = ""
    """Why it was ended early; empty when it made all its steps."""


def train(
    tasks: Sequence[Subject],
    model: Path,
    out: Path,
    config: TrainConfig,
    *,
    sandbox: SandboxChoice,
    scorer: Scorer | None = None,
    progress: Progress = silent,
) -> Trained:
    """Train `model` on `tasks`, or go on with the run in `out`.

    Args:
        tasks: what is acted on.
        model: folder of the first policy.
        out: folder of the run; gets checkpoints, metrics and rollouts.
        config: the settings.
        sandbox: where rollouts run.
        scorer: asks a judge; None when the reward takes none.
        progress: told of each step.

    Raises:
        UserError: `out` holds a run with other settings, tasks or another model, or is in use.
        InfraError: the disk is full, or no rollout can be run.
    """
    if not tasks:
        raise UserError("there are no tasks to train on")
    check_writable(out)
    with locked(out):
        listed = [{"task": task.name, "digest": task.digest} for task in tasks]
        digest = _digest(listed, model, config)
        found = latest(out)
        if found is not None and found.state.digest != digest:
            raise UserError(
                f"{out} holds a run with other settings, tasks or another model",
                hint="give another folder with --out, or the settings of that run",
            )
        described = {"model": model.name, "config": config.model_dump(mode="json"), "tasks": listed}
        write_json(out / RUN_FILE, described)
        policy = Policy.load(found.policy if found else model, precision=config.precision)
        policy.name = "policy"  # the folder's name is part of no rollout
        loop = _Loop(policy, config, out, digest, found)
        with ExitStack() as stack:
            server = stack.enter_context(PolicyServer(policy, context_tokens=config.sampling.context_tokens))
            books = stack.enter_context(Books(out, start=loop.state.step))
            roller = Roller(tasks, server, config, sandbox, out, scorer)
            return loop.run(roller, books, progress)


def _digest(tasks: Sequence[dict[str, str]], model: Path, config: TrainConfig) -> str:
    """Digest of everything that determines a run.

    Raises:
        UserError: `model` is no model folder.
    """
    file = model / "config.json"
    weights = sorted(model.glob("*.safetensors"))
    if not file.is_file() or not weights:
        raise UserError(
            f"{model} is no model folder", hint="it needs config.json, *.safetensors and a tokenizer"
        )
    # Reading gigabytes for a digest at every start is slow; name and size tell other weights apart well enough.
    sizes = [[path.name, path.stat().st_size] for path in weights]
    settings = config.model_dump(mode="json", exclude={"steps", "keep"})  # a run may be made longer
    return digest_of({"tasks": list(tasks), "config": settings, "model": [file.read_text(), sizes]})


class _Loop:
    def __init__(
        self, policy: Policy, config: TrainConfig, out: Path, digest: str, found: Checkpoint | None
    ) -> None:
        self._policy, self._config, self._out = policy, config, out
        self._parameters = policy.choose_layers(config.trained_layers)
        settings = config.optimiser
        self._optimiser = torch.optim.AdamW(
            self._parameters,
            lr=settings.learning_rate,
            betas=settings.betas,
            eps=settings.epsilon,
            weight_decay=settings.weight_decay,
        )
        self.state = State(step=0, drawn=0, digest=digest)
        self._good = found
        if found is not None:
            restore(found, self._optimiser, self._parameters)
            self.state = found.state

    def run(self, roller: Roller, books: Books, progress: Progress) -> Trained:
        config = self._config
        progress(Event(EventKind.PHASE, "training", total=config.steps))
        if self.state.step:
            progress(Event(EventKind.COUNT, "training", total=self.state.step))
        while self.state.step < config.steps:
            reason = self._step(roller, books, progress)
            if reason:
                return self._stopped(reason, progress)
        if self._good is None or self._good.state.step != self.state.step:
            self._save()
        assert self._good is not None
        return Trained(self.state.step, self._good.policy)

    def _step(self, roller: Roller, books: Books, progress: Progress) -> str:
        """One step; why the run must end, or nothing."""
        step, server = self.state.step, roller.server
        began, model_sec = time.perf_counter(), server.seconds
        batch = roller.collect(step, self.state.drawn)
        asked_sec = server.seconds - model_sec
        updating = time.perf_counter()
        made = self._learn(step, batch)
        learned_sec = time.perf_counter() - updating
        seen = summary(batch)
        problem = _problem(made, seen["surprise"], self._config)
        odd = self.state.odd_steps + 1 if problem else 0
        self.state = State(
            step=step + 1, drawn=self.state.drawn + batch.drawn, digest=self.state.digest, odd_steps=odd
        )
        fatal = any(not item.finite for item in made) or odd >= self._config.stop.patience
        saving = time.perf_counter()
        if not problem and (step + 1) % self._config.checkpoint_every == 0:
            self._save()
        now = time.perf_counter()
        metrics: dict[str, Any] = {
            "step": step,
            **seen,
            **_seen(made),
            "rate": self._rate(step),
            "odd": problem,
        }
        times = {
            "total": now - began,
            "sampling": asked_sec,
            "rolling": batch.seconds - asked_sec,
            "learning": learned_sec,
            "saving": now - saving,
        }
        books.write(metrics, times)
        told = f"r_V {_shown(metrics['r_v'])}, passed {_shown(metrics['passed'])}, {len(batch.groups)} of "
        progress(
            Event(
                EventKind.DONE,
                f"step {step}",
                detail=f"{told}{batch.drawn} groups teach, {now - began:.1f} s",
            )
        )
        return problem if fatal else ""

    def _learn(self, step: int, batch: Batch) -> list[Updated]:
        """The updates of a step; none when no group teaches anything."""
        config, settings = self._config, self._config.optimiser
        groups = [rows for rows in batch.rows() if rows]
        for group in self._optimiser.param_groups:
            group["lr"] = self._rate(step)
        made: list[Updated] = []
        for part in _parts(groups, settings):
            made.append(
                update(
                    self._policy,
                    self._optimiser,
                    part,
                    config.loss,
                    temperature=config.sampling.temperature,
                    at_once=settings.rows,
                    max_norm=settings.max_norm,
                )
            )
            if not made[-1].finite:
                break
        return made

    def _rate(self, step: int) -> float:
        settings = self._config.optimiser
        return settings.learning_rate * min(1.0, (step + 1) / (settings.warmup_steps + 1))

    def _save(self) -> None:
        self._good = save(self._out, self._policy, self._optimiser, self.state, keep=self._config.keep)

    def _stopped(self, reason: str, progress: Progress) -> Trained:
        if self._good is None:
            raise UserError(
                f"training was ended at step {self.state.step}: {reason}; no checkpoint was made before",
                hint="lower optimiser.learning_rate",
            )
        progress(Event(EventKind.NOTE, f"training was ended at step {self.state.step}: {reason}"))
        return Trained(self._good.state.step, self._good.policy, reason)


def _parts(groups: Sequence[list[Row]], settings: OptimiserConfig) -> list[list[Row]]:
    """Rows of each update: whole groups, dealt out in turn."""
    parts: list[list[Row]] = [[] for _ in range(min(settings.updates, len(groups)))]
    for at, rows in enumerate(groups):
        parts[at % len(parts)] += rows
    return parts


def _problem(made: Sequence[Updated], surprise: float | None, config: TrainConfig) -> str:
    """What is wrong with a step; empty when nothing is."""
    if any(not item.finite for item in made):
        return "the loss or its gradient is no number"
    if made and made[0].log_ratio > config.stop.log_ratio:
        found = made[0].log_ratio
        return f"mean |log pi - log mu| was {found:.3g} before the update, beyond {config.stop.log_ratio:g}"
    if surprise is not None and surprise < config.stop.entropy:
        return f"the entropy was {surprise:.3g} nats a token, below {config.stop.entropy:g}"
    return ""


def _seen(made: Sequence[Updated]) -> dict[str, Any]:
    """Metrics of the updates of a step: the first one's mismatch and entropy, means of the rest over tokens."""
    if not made:
        return dict.fromkeys(
            ("loss", "tokens", "masked", "capped", "divergence", "log_ratio", "entropy", "norm")
        )
    tokens = sum(item.tokens for item in made)

    def mean(name: str) -> float:
        return sum(getattr(item, name) * item.tokens for item in made) / max(1, tokens)

    return {
        "loss": sum(item.loss for item in made) / len(made),
        "tokens": tokens,
        **{name: mean(name) for name in ("masked", "capped", "divergence")},
        "log_ratio": made[0].log_ratio,
        "entropy": made[0].entropy,
        "norm": max(item.norm for item in made),
    }


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
