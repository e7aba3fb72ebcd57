"""What an instruction says about the form of a delivered file, read with care: in doubt it has asked for the form."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

_EXACT = re.compile(
    r"\bbyte[- ]?(for|by|wise|identical|exact|compar|level)|(same|input|output|file).{0,12} bytes\b|"
    r"verbatim|\bidentical|exactly (as|like|the following|these lines|this (line|text|form|layout|content)|in th)|"
    r"exact (format|layout|text|form|output|content|wording|match)|"
    r"checksum|\bsha-?\d|\bmd5\b|\bdigest|\bdiff\b|\bcmp\b|golden",
    re.IGNORECASE,
)
_ENDS = re.compile(
    r"new-?line|line[- ](feed|end|break)|trailing|\bLF\b|\bCRLF\b|no blank|whitespace", re.IGNORECASE
)
_KEYS = re.compile(
    r"(key|field|propert|attribute)[a-z]* (are |is |must be |should be |come |appear )?(in |by )?"
    r"(\w+ )?(order|sort|alphabet)|order of (the |its )?(key|field|propert)|"
    r"(sort|order)(ed|ing)? (the )?(by )?(key|field|propert)|in (this|that|the following|the given) order|sort_keys",
    re.IGNORECASE,
)
_LAYOUT = re.compile(
    r"indent|pretty|compact|minif|(one|single) line\b|whitespace|no spaces|two spaces|four spaces|json ?lines|jsonl",
    re.IGNORECASE,
)
_QUOTES = re.compile(r"quot", re.IGNORECASE)
_NUMBERS = re.compile(r"decimal|digit|places|float|\d\.0\b", re.IGNORECASE)
_ASCII = re.compile(r"ascii|escape|utf-?8|unicode", re.IGNORECASE)
_FREE = re.compile(
    r"\b(in )?(any|whatever|arbitrary|no particular|no specific) (row |line |list )?order\b|"
    r"order( of (the |its )?\w+)? (is|are) (up to you|free|irrelevant|arbitrary|not important|your choice)|"
    r"order[^.]{0,30}(does not|doesn't|do not|don't) matter|unordered|order is free",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"sort|order|ascend|descend|alphabet|chronolog|\bfirst|\blast\b|earliest|latest|newest|oldest|sequence|\btop\b|"
    r"rank|highest|lowest|most |least |\bthen by\b|preserv|\bkeep",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"readable|free[- ]form|however you like|as you (like|see fit)|your (own )?choice|up to you|"
    r"any (sensible |reasonable |suitable )?(format|form|layout)|nicely|tidy|neat|at a glance",
    re.IGNORECASE,
)
_SHAPED = re.compile(
    r"format|\bper line|(each|every|one|single|first|second|last|per) (line|row)|header|column|separat|delimit|"
    r"followed by|written (as|like)|of the form|\bform\b|line by line|template|like this|such as|example|e\.g\.|"
    r"single (number|integer|word|value)|nothing else|only the|the (number|integer|count|value)\b",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^ *(```|~~~)|^(    |\t)\S", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?:])\s+|\n\s*\n|\n(?=\s*[-*\d])")


class Wording:
    """The part of an instruction that speaks of one file, and what it settles."""

    def __init__(self, instruction: str, path: str, others: Iterable[str]) -> None:
        self._whole = instruction
        self._part = _part(instruction, path, [other for other in others if other != path])

    @property
    def exact(self) -> bool:
        """It asks for exact text anywhere."""
        return bool(_EXACT.search(self._whole))

    @property
    def ends(self) -> bool:
        """It speaks of line ends or blanks."""
        return bool(_ENDS.search(self._whole))

    @property
    def keys(self) -> bool:
        """It asks for an order of keys."""
        return bool(_KEYS.search(self._whole))

    @property
    def layout(self) -> bool:
        """It speaks of the layout of structured files."""
        return bool(_LAYOUT.search(self._whole))

    @property
    def quotes(self) -> bool:
        """It speaks of quotes, or shows the file."""
        return bool(_QUOTES.search(self._whole)) or self.shown

    @property
    def numbers(self) -> bool:
        """It speaks of how numbers are written."""
        return bool(_NUMBERS.search(self._whole))

    @property
    def letters(self) -> bool:
        """It speaks of encodings."""
        return bool(_ASCII.search(self._whole))

    @property
    def shown(self) -> bool:
        """A block of code or output may show the form."""
        return bool(_FENCE.search(self._whole))

    @property
    def order_free(self) -> bool:
        """It leaves the order of this file's entries free, and asks for none beside."""
        return bool(_FREE.search(self._part)) and not _ORDER.search(_FREE.sub("", self._part))

    @property
    def order_silent(self) -> bool:
        """Nothing in the whole text sounds like an order."""
        return not _ORDER.search(self._whole)

    @property
    def shape_open(self) -> bool:
        """It leaves the layout of this file to the author in so many words, and does not describe one beside."""
        return bool(_OPEN.search(self._part)) and not _SHAPED.search(self._part) and not self.shown

    @property
    def shape_silent(self) -> bool:
        """It says nothing of how this file is laid out."""
        return not _SHAPED.search(self._part) and not self.shown


def _part(instruction: str, path: str, others: list[str]) -> str:
    """From the sentence that first names the file to the one that names another; everything when none names it."""
    sentences = [sentence for sentence in _SENTENCE.split(instruction) if sentence]
    first = next((n for n, sentence in enumerate(sentences) if _names(sentence, path)), None)
    if first is None:
        return instruction
    part = [sentences[first]]
    for sentence in sentences[first + 1 :]:
        if any(_names(sentence, other) for other in others) and not _names(sentence, path):
            break
        part.append(sentence)
    return " ".join(part)


def _names(sentence: str, path: str) -> bool:
    return path in sentence or PurePosixPath(path).name in sentence
