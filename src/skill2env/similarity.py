"""How much two texts have in common: one home for hub, plan, verify and analysis.

Words are runs of letters and digits in lower case; a shingle is `size` words in a row. Exact, no sketches.
"""

import re
from collections.abc import Set as AbstractSet

_WORD = re.compile(r"[^\W_]+")
DEFAULT_SIZE = 5
"""Words in a shingle; the measure that others use for near-duplicates of skills."""


def words(text: str) -> list[str]:
    """Lower-case words of a text, in order; punctuation, markup and underscores separate."""
    return _WORD.findall(text.lower())


def shingles(text: str, size: int = DEFAULT_SIZE) -> frozenset[tuple[str, ...]]:
    """The set of word n-grams of a text; a text shorter than `size` words is one shingle, an empty one has none.

    Raises:
        ValueError: `size` is below 1.
    """
    if size < 1:
        raise ValueError(f"a shingle has at least one word, not {size}")
    found = words(text)
    if not found:
        return frozenset()
    return frozenset(tuple(found[at : at + size]) for at in range(max(len(found) - size, 0) + 1))


def jaccard(one: AbstractSet[tuple[str, ...]], other: AbstractSet[tuple[str, ...]]) -> float:
    """Shared shingles over all shingles, in [0,1]; two empty texts are equal (1)."""
    if not one and not other:
        return 1.0
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)


def containment(part: AbstractSet[tuple[str, ...]], whole: AbstractSet[tuple[str, ...]]) -> float:
    """Share of the shingles of `part` that `whole` has, in [0,1]; an empty part is contained in everything (1)."""
    return len(part & whole) / len(part) if part else 1.0
