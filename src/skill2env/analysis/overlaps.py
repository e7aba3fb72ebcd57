"""What texts share: an exact join over n-grams of words (or of any steps), with the shared passages.

Every n-gram becomes a 64-bit number (`shingling` explains how). Numbers of the smaller side are kept sorted; the other
side is looked up in them through a table of bits that says no to nearly all that is not there. Pairs are then counted
by a sparse product over the shared n-grams only. Nothing is sampled or sketched.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skill2env.shingling import split_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORDS = 13
"""Words in an n-gram, as published decontaminations have it."""
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_BITS = 24
_PAIRS = 8_000_000
"""Pairs that are counted at once."""
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Grams:
    """Distinct n-grams of many texts."""

    numbers: "NDArray[np.uint64]"
    """Those of the first text, then those of the second, and so on; ascending within a text."""
    owners: "NDArray[np.int32]"
    """Text of each number."""
    sizes: "NDArray[np.int64]"
    """Distinct n-grams of each text."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts with something in common."""

    one: int
    other: int
    shared: int
    """Distinct n-grams that both have."""
    jaccard: float
    contained: float
    """Share of the n-grams of `other` that `one` has."""
    containing: float
    """Share of the n-grams of `one` that `other` has."""


def grams_of_texts(texts: Sequence[str], size: int = WORDS) -> Grams:
    """N-grams of words, as `similarity.shingles` makes them: a shorter text is one, an empty one has none."""
    return _grams((map(hash, split_words(text)) for text in texts), size)


def grams_of_steps(steps: Sequence[Sequence[str]], size: int) -> Grams:
    """N-grams of any steps; a shorter sequence is one, an empty one has none."""
    return _grams((map(hash, item) for item in steps), size)


def _grams(texts: Iterator[Any], size: int) -> Grams:
    pieces = [np.asarray(list(hashes), dtype=np.int64).astype(np.uint64) for hashes in texts]
    lengths = np.asarray([len(piece) for piece in pieces], dtype=np.int64)
    words = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.uint64)
    # One roll over all texts at once; windows that reach into the next text are never looked at.
    rolled = words.copy()
    for step in range(1, size):
        rolled *= _MULTIPLIER
        rolled[:-step] += words[step:]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    found: list[NDArray[np.uint64]] = []
    for at, length in enumerate(lengths.tolist()):
        begin = int(starts[at])
        if length < size:
            found.append(_short(words[begin : begin + length]))
        else:
            found.append(distinct(rolled[begin : begin + length - size + 1].copy()))
    sizes = np.asarray([len(item) for item in found], dtype=np.int64)
    numbers = np.concatenate(found) if found else words
    return Grams(numbers, np.repeat(np.arange(len(sizes), dtype=np.int32), sizes), sizes)


def _short(words: "NDArray[np.uint64]") -> "NDArray[np.uint64]":
    """A text shorter than an n-gram as one number, which is that of no beginning of a longer text."""
    if not len(words):
        return words
    return np.asarray([hash((len(words), *words.tolist()))], dtype=np.int64).astype(np.uint64)


def distinct(numbers: "NDArray[np.uint64]") -> "NDArray[np.uint64]":
    """Distinct numbers, ascending; sorts in place. Faster than `numpy.unique`, which hashes first."""
    if len(numbers) < 2:
        return numbers
    numbers.sort()
    return numbers[np.concatenate([[True], numbers[1:] != numbers[:-1]])]


def join(one: Grams, other: Grams, *, jaccard: float, containment: float) -> list[Pair]:
    """Pairs that reach one of the thresholds, in order of `one`, then `other`.

    Args:
        one: the tasks.
        other: what they are compared with.
        jaccard: least share of common n-grams among all of both.
        containment: least share of one text's n-grams that the other has, either way round.
    """
    mine, theirs, columns = _shared(one, other)
    if not columns:
        return []
    found: list[Pair] = []
    step = max(1, int(_PAIRS / max(1, _density(mine, theirs))))
    transposed = theirs.T.tocsr()
    for start in range(0, mine.shape[0], step):
        product = (mine[start : start + step] @ transposed).tocoo()
        rows, cols, shared = product.row + start, product.col, product.data
        size, with_size = one.sizes[rows], other.sizes[cols]
        measure = shared / (size + with_size - shared)
        contained, containing = shared / with_size, shared / size
        kept = (measure >= jaccard) | (contained >= containment) | (containing >= containment)
        found.extend(
            Pair(int(row), int(col), int(common), float(alike), float(inside), float(around))
            for row, col, common, alike, inside, around in zip(
                rows[kept],
                cols[kept],
                shared[kept],
                measure[kept],
                contained[kept],
                containing[kept],
                strict=True,
            )
        )
    return sorted(found, key=lambda pair: (pair.one, pair.other))


def _shared(one: Grams, other: Grams) -> tuple[Any, Any, int]:
    """Both sides as sparse matrices text x shared n-gram; n-grams that occur in the same texts are one column."""
    from scipy import sparse

    library: Any = sparse
    known = distinct(other.numbers.copy())
    bits = np.zeros(1 << _BITS, dtype=bool)
    shift = np.uint64(64 - _BITS)
    bits[known >> shift] = True
    likely = np.flatnonzero(bits[one.numbers >> shift])
    numbers = one.numbers[likely]
    places = np.searchsorted(known, numbers)
    places[places == len(known)] = 0
    hit = known[places] == numbers if len(known) else np.zeros(0, dtype=bool)
    places, owners = places[hit], one.owners[likely[hit]]
    used, columns = np.unique(places, return_inverse=True)
    back = np.full(len(known), -1, dtype=np.int64)
    back[used] = np.arange(len(used))
    theirs = back[np.searchsorted(known, other.numbers)] if len(known) else np.zeros(0, dtype=np.int64)
    kept = theirs >= 0

    def matrix(rows: "NDArray[np.int32]", cols: "NDArray[np.int64]", many: int) -> Any:
        ones = np.ones(len(rows), dtype=np.int32)
        return library.csr_matrix((ones, (rows, cols)), shape=(many, len(used)))

    mine = matrix(owners, columns, len(one.sizes))
    return mine, matrix(other.owners[kept], theirs[kept], len(other.sizes)), len(used)


def _density(mine: Any, theirs: Any) -> float:
    """Mean number of products for a row of the result, the largest rows counting more."""
    work = mine @ np.asarray(theirs.sum(axis=0), dtype=np.float64).ravel()
    return float(np.percentile(work, 99)) + 1


@dataclass(frozen=True, slots=True)
class Span:
    """A passage that two texts share."""

    text: str
    """As the first text writes it, shortened."""
    words: int


def shared_spans(
    one: str, other: str, size: int = WORDS, *, most: int = 5, chars: int = 240
) -> tuple[Span, ...]:
    """The longest shared passages of at least `size` words, longest first; the whole text where it is shorter.

    This compares the words themselves, so it also proves that a pair was no accident of numbering.
    """
    words = list(_WORD.finditer(one))
    mine, theirs = (
        [match[0].lower() for match in words],
        [match[0].lower() for match in _WORD.finditer(other)],
    )
    size = max(1, min(size, len(mine), len(theirs)))
    known = {tuple(theirs[at : at + size]) for at in range(len(theirs) - size + 1)}
    runs: list[tuple[int, int]] = []
    for at in range(len(mine) - size + 1):
        if tuple(mine[at : at + size]) not in known:
            continue
        if runs and at <= runs[-1][1] - size + 1:
            runs[-1] = (runs[-1][0], at + size)
        else:
            runs.append((at, at + size))
    runs.sort(key=lambda run: (run[0] - run[1], run[0]))
    return tuple(
        Span(" ".join(one[words[begin].start() : words[end - 1].end()].split())[:chars], end - begin)
        for begin, end in runs[:most]
    )
