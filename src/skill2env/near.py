"""Copies and near-copies among many texts: every document ends in exactly one cluster, none is dropped.

Two texts are near when the Jaccard measure of their word 5-grams reaches a threshold. The join is exact (prefix and
positional filtering over shingles ordered from rare to common), so nothing that is near enough is missed: there is no
sketch and no recall to tune.

Clusters are stars, not chains. Documents are taken from the best rank to the worst; each joins the best-ranked
representative that it is near to, or becomes one. So every member is near to its representative, and no two
representatives are near to each other. With single links, A could stand for C only because both resemble B.
"""

import hashlib
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from skill2env.shingling import Numbers, number_shingles, overlap, overlap_bounds
from skill2env.similarity import DEFAULT_SIZE

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEFAULT_THRESHOLD = 0.80
_MANY = 24
"""From this many candidates on, a cheap bound is taken of all before one is compared exactly."""
_TABLE_BITS = (16, 28)
_EPSILON = 1e-9

type Rank = tuple[int | float | str, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """One text to compare."""

    key: str
    """What the caller calls it; unique."""
    text: str
    rank: Rank = ()
    """Smallest is preferred as representative; ties go to the smaller key."""


class Likeness(StrEnum):
    """How a member resembles its representative."""

    EXACT = "exact"
    """The same words in the same order, up to letter case and punctuation, or the same set of shingles."""
    NEAR = "near"
    """The Jaccard measure of their shingles reaches the threshold."""


@dataclass(frozen=True, slots=True)
class Member:
    """A document that another one represents."""

    key: str
    likeness: Likeness
    jaccard: float
    """Of its shingles and the representative's, in [threshold,1]."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A representative and what resembles it."""

    representative: str
    members: tuple[Member, ...] = ()
    """In rank order, the representative itself left out."""


def cluster(
    documents: Iterable[Document], *, threshold: float = DEFAULT_THRESHOLD, size: int = DEFAULT_SIZE
) -> tuple[Cluster, ...]:
    """Group copies and near-copies; the result does not depend on the order of `documents`.

    Args:
        documents: with distinct keys; read once, one after the other, so that a generator need not hold all texts.
            100,000 skills take about a minute and some 1.5 GB.
        threshold: least Jaccard measure of near-copies, in (0,1].
        size: words in a shingle.

    Returns:
        The clusters, best-ranked representative first; those of one document included.

    Raises:
        ValueError: keys occur twice, or threshold or size is out of range.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"a threshold lies in (0,1], not {threshold}")
    ordered, sets = _read(documents, size)
    if len({key for _, key, _ in ordered}) != len(ordered):
        raise ValueError("two documents have the same key")
    places = {text: place for place, text in enumerate(dict.fromkeys(text for _, _, text in ordered))}
    join = Join([sets[text] for text in places], threshold)
    stars = dict(_stars(join))
    members: dict[int, list[Member]] = {}
    representatives: dict[int, str] = {}
    for _, key, text in ordered:
        star, jaccard = stars[places[text]]
        if star not in representatives:
            representatives[star] = key
            members[star] = []
        else:
            likeness = Likeness.EXACT if jaccard == 1 else Likeness.NEAR
            members[star].append(Member(key, likeness, jaccard))
    return tuple(Cluster(key, tuple(members[star])) for star, key in representatives.items())


def near_pairs(
    texts: Sequence[str], *, threshold: float = DEFAULT_THRESHOLD, size: int = DEFAULT_SIZE
) -> Iterator[tuple[int, int, float]]:
    """Every pair of texts whose Jaccard measure reaches the threshold: later index, earlier index, measure.

    Quadratic where many texts resemble each other, because then so many pairs exist; `cluster` is not.

    Raises:
        ValueError: `size` is below 1.
    """
    join = Join([number_shingles(text, size) for text in texts], threshold)
    for item in range(len(texts)):
        yield from ((item, other, jaccard) for other, jaccard in join.near(item))
        join.add(item)


def _read(documents: Iterable[Document], size: int) -> tuple[list[tuple[Rank, str, int]], list[Numbers]]:
    """Rank, key and place of the text of each document, best first; and the shingles of each distinct text.

    No text is kept: those of 100,000 skills take as much memory as their shingles.
    """
    places: dict[bytes, int] = {}
    found: list[tuple[Rank, str, int]] = []
    sets: list[Numbers] = []
    for document in documents:
        text = hashlib.sha256(document.text.encode("utf-8", "surrogatepass")).digest()
        if text not in places:
            places[text] = len(sets)
            sets.append(number_shingles(document.text, size))
        found.append((document.rank, document.key, places[text]))
    found.sort(key=lambda item: item[:2])
    return found, sets


def _stars(join: "Join") -> Iterator[tuple[int, tuple[int, float]]]:
    """Item -> its representative (perhaps itself) and their Jaccard measure."""
    for item in range(len(join.sets)):
        best = next(join.near(item), None)
        if best is None:
            join.add(item)
        yield item, best or (item, 1.0)


class Join:
    """Finds which of the sets added so far are near to another one."""

    def __init__(self, sets: list[Numbers], threshold: float) -> None:
        """Index the prefixes of all sets.

        Args:
            sets: ascending distinct numbers; items are called by their place here.
            threshold: in (0,1].
        """
        self.sets = sets
        self._threshold = threshold
        self._sizes: list[int] = [len(item) for item in sets]
        self._groups, self._positions, self._starts = _prefixes(sets, threshold)
        # Group -> sizes, ascending, and items of the sets added so far that have this shingle in their prefix.
        self._sizes_of: dict[int, list[int]] = {}
        self._items_of: dict[int, list[tuple[int, int]]] = {}
        self._empty: list[int] = []

    def add(self, item: int) -> None:
        """Have `near` consider this set from now on."""
        size = self._sizes[item]
        if not size:
            self._empty.append(item)
        for group, position in self._entries(item):
            sizes = self._sizes_of.setdefault(group, [])
            at = bisect_right(sizes, size)
            sizes.insert(at, size)
            # The largest partner for which a first common shingle here can still reach the threshold.
            largest = self._largest_partner(size, position)
            self._items_of.setdefault(group, []).insert(at, (item, largest))

    def near(self, item: int) -> Iterator[tuple[int, float]]:
        """Added sets near to this one with their Jaccard measure, in the order of items."""
        size = self._sizes[item]
        if not size:
            yield from ((other, 1.0) for other in self._empty)
            return
        least = math.ceil(self._threshold * size - _EPSILON)
        found: set[int] = set()
        for group, position in self._entries(item):
            sizes = self._sizes_of.get(group)
            if sizes:
                begin = bisect_left(sizes, least)
                end = bisect_right(sizes, self._largest_partner(size, position), begin)
                if begin < end:
                    items = self._items_of[group][begin:end]
                    found.update(other for other, largest in items if size <= largest)
        yield from self._compare(item, sorted(found))

    def _entries(self, item: int) -> Iterator[tuple[int, int]]:
        part = slice(self._starts[item], self._starts[item + 1])
        return zip(self._groups[part].tolist(), self._positions[part].tolist(), strict=True)

    def _largest_partner(self, size: int, position: int) -> int:
        """Size up to which a partner can be near when the first shingle in common is the one at `position`.

        At most size - position are shared then, and a pair is near only when threshold / (1 + threshold) of both sizes
        are.
        """
        factor = (1 + self._threshold) / self._threshold
        return math.floor((size - position) * factor - size + _EPSILON)

    def _compare(self, item: int, others: list[int]) -> Iterator[tuple[int, float]]:
        own, size = self.sets[item], self._sizes[item]
        share = self._threshold / (1 + self._threshold)
        if len(others) >= _MANY:
            bounds = overlap_bounds(own, [self.sets[other] for other in others]).tolist()
            others = [
                other
                for other, bound in zip(others, bounds, strict=True)
                if bound >= share * (size + self._sizes[other]) - _EPSILON
            ]
        for other in others:
            shared = overlap(own, self.sets[other])
            both = size + self._sizes[other]
            if shared >= share * both - _EPSILON:
                yield other, shared / (both - shared)


def _prefixes(
    sets: list[Numbers], threshold: float
) -> tuple["NDArray[np.int64]", "NDArray[np.int64]", "NDArray[np.int64]"]:
    """For each set the shingles of its prefix that other prefixes have too: group, position; and where sets begin.

    Two near sets share a shingle among the first (1 - threshold) of each in any common order; from rare to common is
    the order that leaves the fewest chance meetings.
    """
    table, shift = _frequencies(sets)
    numbers: list[Numbers] = []
    positions: list[NDArray[np.int64]] = []
    counts: list[int] = []
    for item in sets:
        frequency = table[item >> shift]
        length = len(item) - math.ceil(threshold * len(item) - _EPSILON) + 1 if len(item) else 0
        order = np.argsort(frequency, kind="stable")[:length]
        shared = np.flatnonzero(frequency[order] > 1)  # what only one set has leads nowhere
        numbers.append(item[order[shared]])
        positions.append(shared)
        counts.append(len(shared))
    if not numbers:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, np.zeros(1, dtype=np.int64)
    flat, where = np.concatenate(numbers), np.concatenate(positions)
    owners = np.repeat(np.arange(len(sets)), counts)
    distinct, groups, sizes = np.unique(flat, return_inverse=True, return_counts=True)
    del distinct
    kept = sizes[groups] > 1
    starts = np.concatenate(([0], np.cumsum(np.bincount(owners[kept], minlength=len(sets)))))
    return groups[kept], where[kept], starts


def _frequencies(sets: list[Numbers]) -> tuple["NDArray[np.uint8]", np.uint64]:
    """How many sets have a shingle, by the upper bits of its number: exact or too high, never too low below 255."""
    total = sum(len(item) for item in sets)
    bits = min(max(total.bit_length() + 2, _TABLE_BITS[0]), _TABLE_BITS[1])
    shift = np.uint64(64 - bits)
    table = np.zeros(1 << bits, dtype=np.uint8)
    for item in sets:
        slots = item >> shift
        before = table[slots]
        table[slots] = before + (before < 255)
    return table, shift
