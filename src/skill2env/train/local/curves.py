"""How a run went: its curves as a picture, and whether it got better by more than chance."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from skill2env.analysis.statistics import bootstrap
from skill2env.errors import UserError
from skill2env.records import digest_of

DRAWS = 10_000
_BLUE, _GREY = "#0072B2", "#999999"
_PANELS = (
    ("r_v", "mean r_V", (0.0, 1.0)),
    ("passed", "share that passed", (0.0, 1.0)),
    ("score", "judge's score", (-5.0, 5.0)),
    ("length", "tokens sampled a rollout", None),
    ("entropy", "entropy, nats a token", None),
    ("divergence", "divergence from the sampling policy", None),
    ("masked", "share of tokens masked", None),
    ("log_ratio", "mean |log pi - log mu| before the update", None),
)


@dataclass(frozen=True, slots=True)
class Gain:
    """First against last steps of one or more runs."""

    seeds: int
    steps: int
    """Steps in each block."""
    first: float
    last: float
    first_by_run: tuple[float, ...]
    last_by_run: tuple[float, ...]
    low: float
    high: float
    """95 % interval of the difference, over tasks: each is compared with itself."""
    tasks: int
    """Tasks that occur in both blocks."""

    @property
    def beyond_chance(self) -> bool:
        """The interval does not hold 0."""
        return self.low > 0 or self.high < 0


def gain(runs: Sequence[Sequence[Mapping[str, Any]]], *, block: int) -> Gain:
    """Compare the first and the last `block` steps.

    The interval resamples tasks, not rollouts: the mean of a task in the last block, over all runs, minus its mean in
    the first one. Paired bootstrap, percentiles.

    Args:
        runs: metrics of each run.
        block: steps in each block.

    Raises:
        UserError: a run is too short, or no task occurs in both blocks.
    """
    for lines in runs:
        if len(lines) < 2 * block:
            raise UserError(
                f"a run of {len(lines)} steps has no two blocks of {block}", hint="give a smaller --block"
            )
    first = tuple(_mean_of(lines[:block]) for lines in runs)
    last = tuple(_mean_of(lines[-block:]) for lines in runs)
    before, after = _by_task(runs, slice(0, block)), _by_task(runs, slice(-block, None))
    both = sorted(before.keys() & after.keys())
    if not both:
        raise UserError("no task occurs in the first and the last block", hint="give a larger --block")
    change = np.array([_mean(after[task]) - _mean(before[task]) for task in both])
    seed = int(digest_of([both, block, len(runs)])[7:15], 16)
    low, high = bootstrap(change[:, None], seed=seed, resamples=DRAWS)[0]
    return Gain(len(runs), block, _mean(first), _mean(last), first, last, float(low), float(high), len(both))


def draw(runs: Mapping[str, Sequence[Mapping[str, Any]]], to: Path, *, window: int = 5) -> None:
    """Write the curves of some runs as PNG, SVG or PDF, by the ending of `to`.

    Args:
        runs: name -> metrics.
        to: the file.
        window: steps of the moving mean that is drawn over the single steps.

    Raises:
        UserError: matplotlib is missing, or the ending means no format.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError("curves need matplotlib", hint="pip install 'skill2env[train]'") from error
    if to.suffix not in {".png", ".svg", ".pdf"}:
        raise UserError(f"{to} names no kind of picture", hint="end it in .png, .svg or .pdf")
    panels = [panel for panel in _PANELS if any(_points(lines, panel[0]) for lines in runs.values())]
    columns = 2
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(9, 2.3 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for at, (key, title, limits) in enumerate(panels):
        axis = axes[at // columns][at % columns]
        for lines in runs.values():
            points = _points(lines, key)
            axis.plot(*zip(*points, strict=True), ".", color=_GREY, markersize=3, alpha=0.6)
            axis.plot(*zip(*_moving(points, window), strict=True), color=_BLUE, linewidth=1.4)
        axis.set_title(title, fontsize=9, loc="left", fontweight="bold")
        axis.set_xlabel("step", fontsize=8)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
        if limits:
            axis.set_ylim(
                limits[0] - 0.02 * (limits[1] - limits[0]), limits[1] + 0.02 * (limits[1] - limits[0])
            )
        else:
            axis.set_ylim(bottom=0)
    for at in range(len(panels), rows * columns):
        axes[at // columns][at % columns].set_visible(False)
    names = ", ".join(runs)
    figure.suptitle(f"{names}: points are steps, lines means over {window} steps", fontsize=9)
    to.parent.mkdir(parents=True, exist_ok=True)
    metadata = (
        {"Software": None}
        if to.suffix == ".png"
        else {"Date": None}
        if to.suffix == ".svg"
        else {"CreationDate": None}
    )
    figure.savefig(to, dpi=130, metadata=metadata)


def _points(lines: Sequence[Mapping[str, Any]], key: str) -> list[tuple[int, float]]:
    return [(line["step"], float(line[key])) for line in lines if line.get(key) is not None]


def _moving(points: Sequence[tuple[int, float]], window: int) -> list[tuple[int, float]]:
    return [
        (step, _mean([value for _, value in points[max(0, at - window + 1) : at + 1]]))
        for at, (step, _) in enumerate(points)
    ]


def _by_task(runs: Sequence[Sequence[Mapping[str, Any]]], steps: slice) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for lines in runs:
        for line in lines[steps]:
            for task, value in line["tasks"].items():
                if value is not None:
                    found.setdefault(task, []).append(value)
    return found


def _mean_of(lines: Sequence[Mapping[str, Any]]) -> float:
    return _mean([line["r_v"] for line in lines if line["r_v"] is not None])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
