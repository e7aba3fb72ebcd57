"""Says quickly which of hundreds of words a text cannot hold, so that few patterns are ever tried on it."""

from collections.abc import Iterable
from functools import lru_cache

_SIGNS = bytes(
    byte if (chr(byte).isascii() and chr(byte).isalnum()) or byte >= 0xDF else 0x20 for byte in range(256)
)
_MOST_TOKENS = 300_000
"""Tokens that are remembered at most; some 40 MB."""
# Letters that patterns which ignore letter case take for an ASCII letter, and `str.lower` does not make one.
_LOOK_ALIKE = str.maketrans({"\u0130": "i", "\u0131": "i", "\u017f": "s"})


def folded(text: str) -> str:
    """`text` in lower case with every character at its place, as patterns that ignore letter case read it."""
    lowered = text.lower()
    if lowered.isascii():
        return lowered
    if len(lowered) != len(text):  # a few letters grow in lower case, and then places would be wrong
        lowered = "".join(low if len(low := sign.lower()) == 1 else sign for sign in text)
    return lowered.translate(_LOOK_ALIKE) if any(chr(sign) in lowered for sign in _LOOK_ALIKE) else lowered


def tokens(lowered: str) -> frozenset[bytes]:
    """The runs of letters and digits of a text in lower case; a letter that is not Latin ends a run."""
    return frozenset(lowered.encode("latin-1", "replace").translate(_SIGNS).split())


@lru_cache(maxsize=4)
def prepared(text: str) -> tuple[str, frozenset[bytes]]:
    """A text `folded`, and its `tokens`; remembered, because ingest and the hub look at the same texts in turn."""
    lowered = folded(text)
    return lowered, tokens(lowered)


def _fragment(word: str) -> bytes:
    """The longest token of a word: a text without it, even as a part of its tokens, does not hold the word."""
    return max(sorted(tokens(word)), key=len, default=b"")


class Lookout:
    """Knows the words of all rules, and says quickly which of them a text cannot hold.

    Looking for hundreds of words in each text takes most of the time of screening. Texts share their tokens, so what
    was found out about a token once is remembered.
    """

    def __init__(self, words: Iterable[str]) -> None:
        """Take the words: ASCII, in lower case."""
        self._words: dict[bytes, list[str]] = {}
        for word in words:
            self._words.setdefault(_fragment(word), []).append(word)
        self._always = frozenset(self._words.pop(b"", ()))
        self._told: dict[bytes, frozenset[str]] = {}
        """Token -> the words that it has a part of; tokens without any are left out, and most have none."""
        self._known: set[bytes] = set()

    def possible(self, found: frozenset[bytes]) -> frozenset[str]:
        """The words that a text with these tokens may hold; the others it does not."""
        if len(self._known) > _MOST_TOKENS:
            self._told.clear()
            self._known.clear()
        fresh = found - self._known
        if fresh:
            self._learn(fresh)
        told = self._told
        # Not by the keys of a dict: a set that takes part with them goes through all of these, and they grow.
        return self._always.union(*[told[token] for token in found if token in told])

    def _learn(self, fresh: frozenset[bytes]) -> None:
        """Find out which words have a part in common with new tokens; few do, so all are looked at together first."""
        together = b" ".join(fresh)
        parts = [part for part in self._words if part in together]
        for part in parts:
            words = frozenset(self._words[part])
            for token in fresh:
                if part in token:
                    self._told[token] = self._told.get(token, frozenset()) | words
        self._known |= fresh
