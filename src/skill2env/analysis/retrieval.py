"""Which skill a text is nearest to, by TF-IDF and cosine, for thousands of texts at once and exactly.

The same measure as scikit-learn's `TfidfVectorizer` with its English stop words: raw counts, smoothed inverse document
frequencies of the skills, rows of length 1. Only ranks within a row matter, so queries need no length of their own,
and the score of two texts together is the sum of their scores.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FREQUENT = 0.1
"""Words of more than this share of the skills are multiplied as a dense matrix, the rest as a sparse one."""
CHUNK = 1024
"""Queries at once; 3,400 skills and four kinds of query then take some 60 MB."""
_SAME = 1e-5
"""Scores this near to each other, relatively, are equal: sums of 32-bit numbers in another order differ that much."""


class Index:
    """The skills, weighted."""

    def __init__(self, counts: Any) -> None:
        """Weigh the skills.

        Args:
            counts: sparse, shape (skills, vocabulary).
        """
        from scipy import sparse

        library: Any = sparse
        self.size: int = counts.shape[0]
        frequency = np.bincount(counts.indices, minlength=counts.shape[1])
        self._rarity = (np.log((1 + self.size) / (1 + frequency)) + 1).astype(np.float32)
        self._rarity[frequency == 0] = 0.0
        weighted = counts @ library.diags(self._rarity)
        lengths = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
        self.skills = (
            library.diags((1 / np.where(lengths > 0, lengths, 1)).astype(np.float32)) @ weighted
        ).tocsr()
        often = np.flatnonzero(frequency > max(8, _FREQUENT * self.size))
        rare = np.flatnonzero((frequency <= max(8, _FREQUENT * self.size)) & (frequency > 0))
        self._often, self._rare = often, rare
        columns = self.skills.tocsc()
        self._dense = np.ascontiguousarray(columns[:, often].T.toarray(), dtype=np.float32)
        self._sparse = columns[:, rare].T.tocsr()

    def weigh(self, counts: Any) -> Any:
        """Queries over the same vocabulary as weighted rows; words that no skill has are left out."""
        from scipy import sparse

        library: Any = sparse
        weighted = (counts @ library.diags(self._rarity)).tocsr().astype(np.float32)
        weighted.eliminate_zeros()
        return weighted

    def scores(self, weighted: Any) -> "NDArray[np.float32]":
        """Scores of weighted queries, shape (queries, skills); each row is right up to a positive factor."""
        columns = weighted.tocsc()
        dense = columns[:, self._often].toarray() @ self._dense
        dense += (columns[:, self._rare].tocsr() @ self._sparse).toarray()
        return dense

    def own(self, weighted: Any, sources: "NDArray[np.int64]") -> "NDArray[np.float32]":
        """Score of each query with one skill of its own, shape (queries,)."""
        return np.asarray(weighted.multiply(self.skills[sources]).sum(axis=1), dtype=np.float32).ravel()


@dataclass(frozen=True, slots=True)
class Ranks:
    """Where the sources came out."""

    above: "NDArray[np.int64]"
    """Skills with a higher score than the source."""
    level: "NDArray[np.int64]"
    """Skills with the same score, the source included; all of them when nothing matches."""

    def top(self, k: int) -> "NDArray[np.float64]":
        """Chance that the source is among the first k, skills of equal score being in random order."""
        return np.clip((k - self.above) / self.level, 0.0, 1.0)

    def reciprocal(self) -> "NDArray[np.float64]":
        """Expected 1/rank, likewise."""
        harmonic = np.concatenate(
            [[0.0], np.cumsum(1 / np.arange(1, int((self.above + self.level).max(initial=1)) + 1))]
        )
        return (harmonic[self.above + self.level] - harmonic[self.above]) / self.level


def rank_rows(scores: "NDArray[np.float32]", sources: "NDArray[np.int64]") -> Ranks:
    """Ranks of the sources in the rows of a matrix of scores."""
    own = scores[np.arange(len(scores)), sources][:, None]
    slack = np.abs(own) * np.float32(_SAME) + np.float32(1e-9)
    above = np.count_nonzero(scores > own + slack, axis=1)
    level = np.count_nonzero(scores >= own - slack, axis=1) - above
    return Ranks(above.astype(np.int64), level.astype(np.int64))


def join_ranks(pieces: "list[Ranks]") -> Ranks:
    """Ranks of chunks as one."""
    nothing = np.zeros(0, dtype=np.int64)
    if not pieces:
        return Ranks(nothing, nothing)
    return Ranks(np.concatenate([p.above for p in pieces]), np.concatenate([p.level for p in pieces]))
