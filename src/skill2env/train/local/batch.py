"""Draw tasks, roll the policy out on them in sandboxes, and keep the groups that teach something."""

import math
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skill2env.errors import Boundary, InfraError
from skill2env.harbor.limits import Timeouts
from skill2env.harbor.one_command import ONE_COMMAND_AGENT
from skill2env.harbor.sandboxes import SandboxChoice
from skill2env.progress import Event, EventKind
from skill2env.records import digest_of
from skill2env.rollout.records import Rollout, RolloutStatus
from skill2env.rollout.run import Plan, Subject, run_rollouts
from skill2env.train.export import exported_groups
from skill2env.train.filtering import reason_to_drop
from skill2env.train.local.config import TrainConfig
from skill2env.train.local.serving import PATIENCE_SEC, PolicyServer
from skill2env.train.local.update import Row

type Scorer = Callable[[Path, Sequence[Rollout]], Mapping[str, float | None]]
"""(folder of rollouts, rollouts) -> the judge's score by id, None where it could not be had."""


def scheduled(tasks: int, seed: int, start: int, count: int) -> list[int]:
    """Numbers of the tasks that draws `start` to ``start + count - 1`` are about: each once, shuffled, and again."""
    found: list[int] = []
    for draw in range(start, start + count):
        epoch, at = divmod(draw, tasks)
        order = list(range(tasks))
        random.Random(f"{seed}:{epoch}").shuffle(order)
        found.append(order[at])
    return found


@dataclass(slots=True)
class Batch:
    """What one step learns from, and what was seen on the way."""

    groups: list[list[dict[str, Any]]] = field(default_factory=list[list[dict[str, Any]]])
    """Lines of `train.export`, the groups that were kept."""
    seen: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Lines of all groups."""
    drawn: int = 0
    dropped: Counter[str] = field(default_factory=Counter[str])
    seconds: float = 0.0
    """Rolling out, the model's own time included."""

    def rows(self) -> list[list[Row]]:
        """Sequences by group."""
        made: list[list[Row]] = []
        number = 0
        for group in self.groups:
            rows: list[Row] = []
            for line in group:
                number += 1
                gain: float | None = line["advantage"]
                for segment in line["segments"] if gain is not None else ():
                    mask = tuple(map(bool, segment["mask"]))
                    tokens, log_probs = tuple(segment["tokens"]), tuple(segment["log_probs"])
                    rows.append(Row(tokens, mask, log_probs, gain or 0.0, line["group"], number))
            made.append(rows)
        return made


@dataclass(frozen=True, slots=True)
class Roller:
    """Rolls the served policy out."""

    tasks: Sequence[Subject]
    server: PolicyServer
    config: TrainConfig
    sandbox: SandboxChoice
    run: Path
    scorer: Scorer | None = None

    def collect(self, step: int, drawn: int) -> Batch:
        """Groups for a step, those without a signal replaced, up to the bound.

        Args:
            step: number of the step.
            drawn: groups that the steps before have drawn.

        Raises:
            InfraError: no rollout of the step could be run at all.
        """
        started = time.perf_counter()
        batch = Batch()
        folder = self.run / "rollouts" / f"step-{step:06d}"
        shutil.rmtree(
            folder, ignore_errors=True
        )  # what a killed run left of it: other batches would be made of it
        while len(batch.groups) < self.config.groups and batch.drawn < self.config.most_drawn:
            wanted = min(self.config.groups - len(batch.groups), self.config.most_drawn - batch.drawn)
            numbers = scheduled(len(self.tasks), self.config.seed, drawn + batch.drawn, wanted)
            for place, chosen in _rounds(numbers):
                self._draw(
                    batch, step, folder / f"{batch.drawn:03d}-{place}", [self.tasks[at] for at in chosen]
                )
            batch.drawn += wanted
        batch.seconds = time.perf_counter() - started
        return batch

    def _draw(self, batch: Batch, step: int, folder: Path, tasks: Sequence[Subject]) -> None:
        self.server.expect(len(tasks) * self.config.group_size)
        found = run_rollouts(tasks, self._plan(step, len(tasks)), folder, progress=self._tell)
        if all(item.status is RolloutStatus.ERROR for item in found):
            raise InfraError(
                Boundary.SANDBOX,
                f"no rollout of step {step} could be run: {found[0].reason}",
                transient=False,
            )
        scores: Mapping[str, float | None] = self.scorer(folder, found) if self.scorer else {}
        order = {task.digest: at for at, task in enumerate(tasks)}
        groups = exported_groups(
            folder, found, scores=scores, config=self.config.reward, advantage=self.config.advantage,
            size=self.config.group_size,
        )  # fmt: skip
        for group in sorted(groups, key=lambda lines: order[lines[0]["task_digest"]]):
            batch.seen += group
            reason = reason_to_drop(
                [line["r"] if line["segments"] else None for line in group], self.config.spread
            )
            if reason is None:
                batch.groups.append(group)
            else:
                batch.dropped[reason.value] += 1

    def _tell(self, event: Event) -> None:
        if event.kind in {EventKind.DONE, EventKind.REUSED}:
            self.server.ended()

    def _plan(self, step: int, tasks: int) -> Plan:
        config, sampling = self.config, self.config.sampling
        waiting = 10 * PATIENCE_SEC
        options = {
            "api_base": self.server.base_url,
            "turns": sampling.turns,
            "max_output_tokens": sampling.max_new_tokens,
            "temperature": sampling.temperature,
            "seed": int(digest_of([config.seed, step])[7:15], 16),
            "command_sec": config.command_sec,
            "answer_sec": waiting,
        }
        return Plan(
            agent=ONE_COMMAND_AGENT,
            sandbox=self.sandbox,
            model=self.server.policy.name,
            attempts=config.group_size,
            agent_kwargs=options,
            timeouts=Timeouts(agent_sec=sampling.turns * (waiting + config.command_sec)),
            step=step,
            evidence=False,
            workers=tasks * config.group_size,
            attempt_option="attempt",
            passing=frozenset({"api_base", "answer_sec"}),
        )


def _rounds(numbers: Sequence[int]) -> list[tuple[int, list[int]]]:
    """The same task twice in one draw, where an order ends and the next begins, is two rounds."""
    rounds: list[list[int]] = []
    for number in numbers:
        free = next((item for item in rounds if number not in item), None)
        if free is None:
            rounds.append([number])
        else:
            free.append(number)
    return list(enumerate(rounds))


def summary(batch: Batch) -> dict[str, Any]:
    """Metrics of a batch, over all rollouts that were seen; means are None where there is nothing to take one of."""
    graded = [line for line in batch.seen if line["r_v"] is not None]
    sampled = [sum(map(sum, (segment["mask"] for segment in line["segments"]))) for line in batch.seen]
    scores = [line["score"] for line in batch.seen if line["score"] is not None]
    return {
        "drawn": batch.drawn,
        "kept": len(batch.groups),
        "dropped": dict(sorted(batch.dropped.items())),
        "rollouts": len(batch.seen),
        "statuses": dict(sorted(Counter(line["status"] for line in batch.seen).items())),
        "r_v": _mean([line["r_v"] for line in graded]),
        "r": _mean([line["r"] for line in batch.seen if line["r"] is not None]),
        "passed": _mean([float(line["passed"]) for line in graded]),
        "score": _mean(scores),
        "judged": len(scores),
        "length": _mean(sampled),
        # Minus log mu of what was sampled: an estimate of the entropy that there is also where no group teaches.
        "surprise": _mean([-value for line in batch.seen for value in _sampled(line)]),
        "breaks": sum(max(0, len(line["segments"]) - 1) for line in batch.seen),
        "tasks": {
            group[0]["task"]: _mean([line["r_v"] for line in group if line["r_v"] is not None])
            for group in _by_group(batch.seen)
        },
    }


def _sampled(line: Mapping[str, Any]) -> list[float]:
    """Log-probabilities of the tokens of a rollout that were sampled."""
    return [
        value
        for segment in line["segments"]
        for value, sampled in zip(segment["log_probs"], segment["mask"], strict=True)
        if sampled
    ]


def _by_group(lines: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        found.setdefault(line["group"], []).append(line)
    return list(found.values())


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
