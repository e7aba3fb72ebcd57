"""Which of the thirteen domains a skill belongs to: a linear classifier over its words, without a model server.

The weights are plain numbers in ``domain_weights.tsv``, a line for each word, trained by ``scripts/train_domains.py``
from seeds of our own and labelled skills. Every guess can be explained by the words that decided it.
"""

import functools
import math
import re
import string
from collections import Counter
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise

from skill2env.records import Domain, Record

WEIGHTS_FILE = "domain_weights.tsv"
BODY_CHARS = 3000
"""Characters of the body that count; what a skill is for stands at its beginning."""
NAME_WEIGHT, DESCRIPTION_WEIGHT = 3, 2
"""How often a word of the name and of the description counts, against once in the body."""
LEAST_WORDS = 5
"""With fewer known words than this nothing is guessed."""
BIAS = "(bias)"
"""The line of the weights file that holds what counts without any word."""
SCALE = 100.0
"""Weights in the file are whole numbers of this many to one."""
_SHORT = 3
"""Words of so many letters are no plurals."""
_SIGNS = bytes(byte if chr(byte) in f"{string.ascii_lowercase}+#" else 0x20 for byte in range(256))


class DomainGuess(Record):
    """What the classifier says about one skill."""

    domain: str
    """A `Domain`; empty when unsure."""
    confidence: float
    """Estimated chance that `likeliest` is right, in [0,1]."""
    likeliest: str
    """The likeliest `Domain`, however unlikely."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One word that counted."""

    word: str
    """A word, or two in a row."""
    weight: float
    """What it added to the score of the likeliest domain over the mean of all; negative when it spoke against it."""


def features(name: str, description: str, body: str) -> dict[str, float]:
    """Words, and pairs of words of name and description, with a damped count of each."""
    return {word: 1 + math.log(count) for word, count in _counted(name, description, body).items()}


def _counted(name: str, description: str, body: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for run, count in Counter(_runs(body[:BODY_CHARS])).items():
        if word := _word(run):
            counts[word] = counts.get(word, 0) + count
    for text, weight in ((name, NAME_WEIGHT), (description, DESCRIPTION_WEIGHT)):
        words = [word for run in _runs(text) if (word := _word(run))]
        for word in words:
            counts[word] = counts.get(word, 0) + weight
        for one, other in pairwise(words):
            pair = f"{one} {other}"
            counts[pair] = counts.get(pair, 0) + weight
    return counts


def _runs(text: str) -> list[str]:
    """Runs of letters, ``+`` and ``#``, in lower case."""
    return text.lower().encode("ascii", "replace").translate(_SIGNS).decode().split()


@functools.lru_cache(maxsize=1 << 16)
def _word(run: str) -> str:
    """What begins with a letter, without the s of a plural; empty for a single letter."""
    word = run.lstrip("+#")
    if len(word) > _SHORT and word[-1] == "s" and word[-2] not in "sui":
        return word[:-1]
    return word if len(word) > 1 else ""


class DomainClassifier:
    """Reads words, says a domain. Made by `load_classifier`."""

    def __init__(self, text: str) -> None:
        """Take the weights.

        Args:
            text: the weights file: ``# key value`` lines, a header, then word, rarity and a weight for each domain.

        Raises:
            ValueError: it is no such file.
        """
        settings = dict(re.findall(r"^# (\w+) ([\d.]+)$", text, re.MULTILINE))
        rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
        if not rows or not {"temperature", "unsure"} <= settings.keys():
            raise ValueError("no domain weights")
        self.temperature = float(settings["temperature"])
        self.unsure = float(settings["unsure"])
        self.domains = tuple(Domain(name) for name in rows[0][2:])
        self._rarity: dict[str, float] = {}
        self._weights: dict[str, tuple[float, ...]] = {}
        for word, rarity, *numbers in rows[1:]:
            self._rarity[word] = float(rarity)
            self._weights[word] = tuple(int(number) / SCALE for number in numbers)
        self._bias = self._weights.pop(BIAS)
        del self._rarity[BIAS]

    def classify(self, name: str, description: str, body: str) -> DomainGuess:
        """Guess the domain of a skill; the same words give the same guess on any machine."""
        known = self._known(name, description, body)
        scores = self._scores(known)
        best = max(range(len(scores)), key=lambda place: (scores[place], -place))
        total = sum(math.exp((score - scores[best]) / self.temperature) for score in scores)
        confidence = 1 / total
        sure = confidence >= self.unsure and len(known) >= LEAST_WORDS
        likeliest = self.domains[best].value
        return DomainGuess(
            domain=likeliest if sure else "", confidence=round(confidence, 4), likeliest=likeliest
        )

    def explain(self, name: str, description: str, body: str, most: int = 8) -> tuple[Reason, ...]:
        """The words that decided, strongest first, those against it last.

        Args:
            name: as in `classify`.
            description: as in `classify`.
            body: as in `classify`.
            most: words at most.
        """
        known = self._known(name, description, body)
        scores = self._scores(known)
        best = max(range(len(scores)), key=lambda place: (scores[place], -place))
        found: list[Reason] = []
        for word, size in known.items():
            weights = self._weights[word]
            added = size * (weights[best] - sum(weights) / len(scores))
            found.append(Reason(word, round(added, 4)))
        found.sort(key=lambda reason: (-abs(reason.weight), reason.word))
        return tuple(sorted(found[:most], key=lambda reason: (-reason.weight, reason.word)))

    def _known(self, name: str, description: str, body: str) -> dict[str, float]:
        """Known words and how much each counts: damped count times rarity, all together of length 1."""
        counts = _counted(name, description, body)
        sizes = {
            word: (1 + math.log(counts[word])) * rarity
            for word in counts
            if (rarity := self._rarity.get(word)) is not None
        }
        length = math.sqrt(sum([size * size for size in sizes.values()])) or 1.0
        return {word: size / length for word, size in sizes.items()}

    def _scores(self, known: dict[str, float]) -> list[float]:
        sizes = list(known.values())
        columns = zip(*map(self._weights.__getitem__, known), strict=True)
        added = [math.sumprod(sizes, column) for column in columns] or [0.0] * len(self.domains)
        return [bias + more for bias, more in zip(self._bias, added, strict=True)]


@functools.cache
def load_classifier() -> DomainClassifier:
    """The classifier that ships with the program."""
    return DomainClassifier(resources.files("skill2env").joinpath(WEIGHTS_FILE).read_text(encoding="utf-8"))
