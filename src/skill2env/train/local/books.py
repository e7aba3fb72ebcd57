"""What a training run writes down: one line of metrics a step, one of times, and the same for TensorBoard.

``metrics.jsonl`` depends on nothing but the settings, the tasks and the model: a run that was killed and went on has
the same bytes as one that was not. Times are kept apart in ``times.jsonl``.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from skill2env.errors import UserError
from skill2env.records import canonical_json
from skill2env.store.files import storage, write_text

METRICS, TIMES = "metrics.jsonl", "times.jsonl"
BOARD = "tensorboard"


class Books:
    """Use as a context manager; the folder is there."""

    def __init__(self, run: Path, *, start: int) -> None:
        """Go on at step `start`: what an earlier run wrote of it and later is dropped."""
        self._run = run
        for name in (METRICS, TIMES):
            kept = [line for line in _lines(run / name) if line.get("step", start) < start]
            write_text(run / name, "".join(canonical_json(line) + "\n" for line in kept))
        self._board = _board(run / BOARD, start)

    def __enter__(self) -> "Books":
        return self

    def __exit__(self, *_: object) -> None:
        if self._board is not None:
            self._board.close()

    def write(self, metrics: Mapping[str, Any], times: Mapping[str, float]) -> None:
        """Add one step; `metrics` names it ``step``.

        Raises:
            InfraError: boundary ``storage``.
        """
        step = int(metrics["step"])
        for name, line in ((METRICS, metrics), (TIMES, {"step": step, **times})):
            with storage("writing", self._run / name), (self._run / name).open("a", encoding="utf-8") as file:
                file.write(canonical_json(dict(line)) + "\n")
        if self._board is not None:
            for key, value in (
                *metrics.items(),
                *((f"seconds/{name}", value) for name, value in times.items()),
            ):
                if isinstance(value, int | float) and key != "step":
                    self._board.add_scalar(key if "/" in key else f"train/{key}", value, step)
            self._board.flush()


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """The lines of a run, in order.

    Raises:
        UserError: there are none.
    """
    found = _lines(run / METRICS)
    if not found:
        raise UserError(
            f"{run} holds no metrics of a training run", hint="skill2env train run DATASET --out DIR"
        )
    return found


def read_times(run: Path) -> list[dict[str, Any]]:
    """Seconds of each step; empty when there are none."""
    return _lines(run / TIMES)


def _lines(file: Path) -> list[dict[str, Any]]:
    """Lines that are whole; a kill may have cut the last one."""
    if not file.is_file():
        return []
    found: list[dict[str, Any]] = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            value: Any = json.loads(line)
        except ValueError:
            break
        if isinstance(value, dict):
            found.append(cast("dict[str, Any]", value))
    return found


def _board(folder: Path, start: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None  # the metrics are in the JSON lines as well
    return SummaryWriter(str(folder), purge_step=start)
