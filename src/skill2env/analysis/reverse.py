"""The probe the other way round: from a skill to the tasks that were made from it."""

from typing import TYPE_CHECKING, Any

import numpy as np

from skill2env.analysis.retrieval import Ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SAME = np.float32(1e-5)


class Reverse:
    """Counts, a chunk of tasks at a time, how many strangers beat the best task of each skill."""

    def __init__(self, weighted: Any, own: "NDArray[np.float32]", sources: "NDArray[np.int64]") -> None:
        """Find the best own task of each skill.

        Args:
            weighted: queries as sparse rows of any length; None when they have length 1 already.
            own: score of each task with its source, before division by its length; shape (tasks,).
            sources: place of the source of each task, shape (tasks,).
        """
        lengths = (
            np.ones(len(own))
            if weighted is None
            else np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
        )
        self._scale = (1 / np.where(lengths > 0, lengths, 1)).astype(np.float32)
        self._sources = sources
        self.skills: NDArray[np.int64] = np.unique(sources)
        self._place = np.full(int(sources.max(initial=0)) + 1, -1, dtype=np.int64)
        self._place[self.skills] = np.arange(len(self.skills))
        self._best = np.full(len(self.skills), -np.inf, dtype=np.float32)
        np.maximum.at(self._best, self._place[sources], own * self._scale)
        self._above = np.zeros(len(self.skills), dtype=np.int64)
        self._level = np.zeros(len(self.skills), dtype=np.int64)
        self._tasks = len(own)

    def add(self, scores: "NDArray[np.float32]", start: int) -> None:
        """Take the scores of some tasks with all skills, shape (tasks, skills), beginning with task `start`."""
        part = slice(start, start + len(scores))
        columns = scores[:, self.skills] * self._scale[part, None]
        slack = np.abs(self._best) * _SAME + np.float32(1e-9)
        rows = np.arange(len(scores))
        columns[rows, self._place[self._sources[part]]] = -np.inf  # its own skill's column: no stranger there
        above = np.count_nonzero(columns > self._best + slack, axis=0)
        self._above += above
        self._level += np.count_nonzero(columns >= self._best - slack, axis=0) - above

    def ranks(self) -> Ranks:
        """Rank of the best own task of each skill among it and all strangers, in the order of `skills`."""
        return Ranks(self._above, self._level + 1)

    def chances(self) -> "NDArray[np.float64]":
        """Share of its own tasks among all, for each skill: the chance to draw one."""
        return np.bincount(self._place[self._sources], minlength=len(self.skills)) / max(1, self._tasks)
