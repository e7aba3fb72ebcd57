"""How much two texts have in common: one home for hub, plan, verify and analysis.

Words are runs of letters and digits in lower case; a shingle is `size` words in a row. Exact, no sketches.
"""

import re
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from difflib import SequenceMatcher

_TOKEN = re.compile(r"[^\W\d_]+|\d+(?:\.\d+)?|[^\w\s]")
NUMBER = "0"
"""What `tokens` writes for every number."""
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


def tokens(text: str, limit: int = 1200) -> tuple[str, ...]:
    """Words in lower case, marks, and `NUMBER` for every number, in order; at most `limit` of them."""
    found: list[str] = []
    for match in _TOKEN.finditer(text):
        if len(found) == limit:
            break
        token = match[0]
        found.append(NUMBER if token[0].isdigit() else token.lower())
    return tuple(found)


def renamed_ratio(one: Sequence[str], other: Sequence[str]) -> float:
    """How much of two texts is the same once names are exchanged, in [0,1]; symmetric up to ties.

    Tokens count that are equal in the same order, and words that stand in each other's place at least twice and more
    often than any other partner: a text whose nouns were replaced throughout is the same text. Two empty texts are
    equal (1).

    Args:
        one: made by `tokens`, which bounds the time (quadratic).
        other: likewise.
    """
    if not one or not other:
        return float(not one and not other)
    equal, pairs = 0, Counter[tuple[str, str]]()
    for kind, start, end, begin, stop in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if kind == "equal":
            equal += end - start
        elif kind == "replace":
            pairs.update(
                (mine, theirs)
                for mine, theirs in zip(one[start:end], other[begin:stop], strict=False)
                if mine[0].isalpha() and theirs[0].isalpha()
            )
    return 2 * (equal + _renamed(pairs)) / (len(one) + len(other))


def _renamed(pairs: Counter[tuple[str, str]]) -> int:
    """How many tokens belong to pairs that are each other's favourites and no chance."""
    best: Counter[tuple[int, str]] = Counter()
    for pair, count in pairs.items():
        for side, word in enumerate(pair):
            best[side, word] = max(best[side, word], count)
    return sum(
        count
        for pair, count in pairs.items()
        if count > 1 and all(best[side, word] == count for side, word in enumerate(pair))
    )
