"""Texts as counts of words, all of them and without distinctive nouns; one pass over each text serves both.

A text is cut at white space into surfaces (``report.csv,``, ``the``). Each distinct surface is looked at once: which
words it holds, and whether its form is that of a noun that gives a source away. Counting words is then arithmetic on
sparse matrices, which is what lets thousands of tasks and skills be compared in seconds.

The rules of what is stripped (`Rule`) speak about occurrences. A word that stands in such a place in at least half of
its occurrences, over all texts together, is stripped everywhere, also where it is written in plain lower case.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Rule(StrEnum):
    """Which occurrences of words are distinctive nouns."""

    CODE = "code"
    """Everything in a code span or a fenced block."""
    PATH = "path"
    """Paths, URLs and names with a file extension."""
    IDENTIFIER = "identifier"
    """snake_case, camelCase, ``--flags``, ``$VARIABLES``, calls, dotted names, words with digits, ALL CAPITALS."""
    PROPER = "proper"
    """Words with a capital that begin neither a sentence nor a line."""
    TOOL = "tool"
    """Names of programs, languages, libraries, formats and vendors that stand in the list that ships with us."""


RULES: tuple[Rule, ...] = tuple(Rule)
_IN_CODE, _LINE = "\ue000", "\ue001"
_SPAN = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r"(?u)\b\w\w+\b")
_FORMS = re.compile(
    r"(?P<path>[a-z]+://|.*[\w.~*}>]/[\w.{<*$]|[~.]{0,2}/\w|.*\w\\\w|.*\w\.[A-Za-z]\w{0,4}(?:$|[^\w.])|\*?\.[a-z]\w{1,4}$)"
    r"|(?P<identifier>.*\w_\w|.*[a-z][A-Z]|\W*--?[A-Za-z]|\W*\$\w|.*\w\(\)|.*\w\.\w+\.\w|.*[A-Za-z]\d|.*\d[A-Za-z]"
    r"|\W*[A-Z][A-Z]+\b)"
)
_MARKS = ".,;:!?\"'()[]{}<>*`|" + _IN_CODE
_ENDS = frozenset(".!?:;|*#")


@cache
def tool_names() -> frozenset[str]:
    """The names that rule `tool` knows, in lower case."""
    text = resources.files("skill2env.analysis").joinpath("tool_names.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


@cache
def stop_words() -> frozenset[str]:
    """English words that say nothing about a topic, as scikit-learn lists them."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS)


@dataclass(frozen=True, slots=True)
class _Numbering:
    """Texts as numbers of surfaces."""

    ids: "NDArray[np.int32]"
    starts: "NDArray[np.int64]"
    """Where each text begins, and the end; shape (texts + 1)."""


class _Numbers(dict[str, int]):
    """Numbers surfaces as they come."""

    def __missing__(self, surface: str) -> int:
        number = len(self)
        self[surface] = number
        return number


class Wording:
    """Word counts of several groups of texts over one vocabulary."""

    def __init__(self, groups: Sequence[Sequence[str]]) -> None:
        """Read the texts.

        Args:
            groups: lists of texts; every group becomes a matrix with a row a text.
        """
        self._numbers = _Numbers()
        self._groups = [self._read(texts) for texts in groups]
        self._words, self._spread = _words_of(list(self._numbers))
        self._surfaces = _Surfaces.of(list(self._numbers))
        self.vocabulary: tuple[str, ...] = tuple(self._words)

    def _read(self, texts: Sequence[str]) -> _Numbering:
        number = self._numbers.__getitem__
        pieces: list[NDArray[np.int32]] = []
        for text in texts:
            found = _marked(text).split()
            pieces.append(np.fromiter(map(number, found), dtype=np.int32, count=len(found)))
        lengths = [len(piece) for piece in pieces]
        ids = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int32)
        return _Numbering(ids, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))

    def counts(self) -> "list[Any]":
        """All words: one sparse matrix a group, shape (texts, vocabulary)."""
        return [self._matrix(group, None) for group in self._groups]

    def stripped(self, rules: Iterable[Rule] = RULES) -> "tuple[list[Any], NDArray[np.bool_]]":
        """Words without distinctive nouns.

        Args:
            rules: those that apply.

        Returns:
            One sparse matrix a group, in which stripped words are columns of zeros, and which words are stripped
            everywhere.
        """
        wanted = frozenset(rules)
        marks = [self._noun(group, wanted) for group in self._groups]
        everywhere = self._everywhere(marks)
        kept = [
            self._matrix(group, ~mark[0], ~everywhere)
            for group, mark in zip(self._groups, marks, strict=True)
        ]
        return kept, everywhere

    def _noun(
        self, group: _Numbering, rules: frozenset[Rule]
    ) -> "tuple[NDArray[np.bool_], NDArray[np.bool_]]":
        """For each occurrence whether it is a noun by the rules, and whether it says nothing either way."""
        form = np.zeros(len(self._surfaces.capital), dtype=bool)
        for rule in rules & self._surfaces.forms.keys():
            form |= self._surfaces.forms[rule]
        noun = form[group.ids]
        neutral = np.zeros(len(noun), dtype=bool)
        if Rule.PROPER in rules:
            first = np.ones(len(noun), dtype=bool)
            first[1:] = self._surfaces.ends[group.ids[:-1]]
            first[group.starts[:-1][group.starts[:-1] < len(noun)]] = True
            capital = self._surfaces.capital[group.ids]
            noun |= capital & ~first
            neutral = capital & first & ~noun
        return noun, neutral

    def _everywhere(self, marks: "list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]") -> "NDArray[np.bool_]":
        many = len(self._numbers)
        total, nouns = np.zeros(many), np.zeros(many)
        for group, (noun, neutral) in zip(self._groups, marks, strict=True):
            total += np.bincount(group.ids[~neutral], minlength=many)
            nouns += np.bincount(group.ids[noun], minlength=many)
        by_word, as_noun = self._spread.T @ total, self._spread.T @ nouns
        return (as_noun > 0) & (2 * as_noun >= by_word)

    def _matrix(
        self, group: _Numbering, kept: "NDArray[np.bool_] | None", columns: "NDArray[np.bool_] | None" = None
    ) -> Any:
        from scipy import sparse

        ids, starts = group.ids, group.starts
        if kept is not None:
            before = np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])
            ids, starts = ids[kept], before[starts]
        library: Any = sparse
        # sum_duplicates sorts in place, and the order of the words is still needed.
        surfaces = library.csr_matrix(
            (np.ones(len(ids), dtype=np.float32), ids, starts),
            shape=(len(starts) - 1, len(self._numbers)),
            copy=True,
        )
        surfaces.sum_duplicates()
        spread = self._spread if columns is None else self._spread @ library.diags(columns.astype(np.float32))
        counted = (surfaces @ spread).tocsr()
        counted.eliminate_zeros()
        return counted


@dataclass(frozen=True, slots=True)
class _Surfaces:
    """What the form of each distinct surface says."""

    forms: "dict[Rule, NDArray[np.bool_]]"
    capital: "NDArray[np.bool_]"
    ends: "NDArray[np.bool_]"
    """What comes after begins a sentence or a line."""

    @classmethod
    def of(cls, surfaces: Sequence[str]) -> "_Surfaces":
        many = len(surfaces)
        forms = {
            rule: np.zeros(many, dtype=bool) for rule in (Rule.CODE, Rule.PATH, Rule.IDENTIFIER, Rule.TOOL)
        }
        capital, ends = np.zeros(many, dtype=bool), np.zeros(many, dtype=bool)
        tools = tool_names()
        path, identifier, code, tool = (forms[r] for r in (Rule.PATH, Rule.IDENTIFIER, Rule.CODE, Rule.TOOL))
        for at, surface in enumerate(surfaces):
            if surface.isalpha():  # most of them: a plain word without any mark
                if not surface.islower():
                    capital[at] = True
                    identifier[at] = not surface.istitle() and _FORMS.match(surface) is not None
                tool[at] = surface.lower() in tools
                continue
            ends[at] = surface[-1] in _ENDS or not any(map(str.isalnum, surface))
            code[at] = surface[0] == _IN_CODE
            bare = surface.strip(_MARKS)
            capital[at] = bare[:1].isupper()
            tool[at] = bare.lower() in tools
            if not (bare.isalpha() and (bare.islower() or bare.istitle())):
                match = _FORMS.match(bare)
                if match is not None:
                    (path if match.lastgroup == "path" else identifier)[at] = True
        return cls(forms, capital, ends)


def _marked(text: str) -> str:
    """The text with line ends and code made visible to a split at white space."""
    if "`" in text or "~~~" in text:
        text = _SPAN.sub(lambda match: " ".join(_IN_CODE + piece for piece in match[0].split()), text)
    return text.replace("\n", f" {_LINE} ")


def _words_of(surfaces: Sequence[str]) -> "tuple[dict[str, int], Any]":
    """Numbered words, and a sparse matrix surface x word that says how often each surface holds each word."""
    from scipy import sparse

    words, stop = _Numbers(), stop_words()
    columns: list[int] = []
    starts = [0]
    for surface in surfaces:
        word = surface.lower()
        if not word.isalpha():
            word = word.strip(
                _MARKS
            )  # marks are no part of a word, so what is left is the word, if it is one
        if word.isalpha():
            if len(word) > 1 and word not in stop:
                columns.append(words[word])
        else:
            columns.extend(words[found] for found in _WORD.findall(word) if found not in stop)
        starts.append(len(columns))
    library: Any = sparse
    spread = library.csr_matrix(
        (np.ones(len(columns), dtype=np.float32), np.asarray(columns, dtype=np.int32), np.asarray(starts)),
        shape=(len(surfaces), len(words)),
    )
    return words, spread
