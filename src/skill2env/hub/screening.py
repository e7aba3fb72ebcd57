"""Can a skill become an offline, self-contained terminal task? A verdict, and a flag with its evidence for each reason.

Signs, not proof: the rules weigh mentions (`rules`), and the figures of `tests/hub/test_labels.py` say how often they
are right. Texts are data here and never obeyed. A secret is never quoted.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from skill2env.hub.pages import ENTRY, Evidence, Page, make_pages, measure
from skill2env.hub.redaction import redact
from skill2env.hub.rules import Group, Measure, Region, Rule, ScreeningVerdict, Signal, default_rules
from skill2env.ingest.lookout import Lookout
from skill2env.records import Record, Skill

EXCERPT_CHARS = 160
_LEVELS = list(ScreeningVerdict)


class Flag(Record):
    """One rule that fired on one skill."""

    rule: str
    """Id of the rule."""
    group: Group
    verdict: ScreeningVerdict
    """What the rule leads to; ``compile`` for a note that changes nothing."""
    score: float
    where: str
    """File of the strongest evidence, relative to the skill's folder; empty when the whole skill is meant."""
    span: tuple[int, int] = (0, 0)
    """First character of the evidence in that file and the one after its last; (0, 0) for the whole."""
    excerpt: str = ""
    """The evidence on one line, at most 160 characters; for a secret only how long it is."""


class Screening(Record):
    """What screening says about one skill."""

    verdict: ScreeningVerdict
    flags: tuple[Flag, ...] = ()
    """Strictest first, then in the order of the rules."""


@dataclass(frozen=True, slots=True)
class _Search:
    """A signal that looks for words or a pattern, made ready."""

    where: frozenset[Region]
    words: tuple[str, ...]
    hints: frozenset[str]
    """The words."""
    pattern: re.Pattern[str] | None
    unless: re.Pattern[str] | None
    least: int


@dataclass(frozen=True, slots=True)
class _Ready:
    """Rules made ready."""

    rules: tuple[tuple[Rule, tuple[tuple[Signal, _Search | None], ...]], ...]
    lookout: Lookout


type _Mark = tuple[Page, int, int]
"""A page, and where the evidence begins and ends on it."""


def judge_skill(skill: Skill, texts: Mapping[str, str], rules: Sequence[Rule] | None = None) -> Screening:
    """Judge one skill by its words.

    Args:
        skill: as ingest understood it; its diagnostics count too.
        texts: relative path -> text of the text files, the entry file among them; without it the body is used.
        rules: other rules than the default ones.

    Returns:
        The strictest verdict of all rules that fired. The same skill and texts give the same screening.
    """
    ready = _default_ready() if rules is None else _made_ready(rules)
    pages = make_pages(skill, texts, ready.lookout)
    measures = measure(skill)
    flags: list[Flag] = []
    for rule, signals in ready.rules:
        score, evidence = _score(signals, skill, pages, measures)
        verdict = rule.verdict(score)
        if verdict is not None:
            shown = _evidence(*evidence, pages) if isinstance(evidence, tuple) else evidence
            flags.append(_flag(rule, verdict, score, shown))
    flags.sort(key=lambda flag: -_LEVELS.index(flag.verdict))
    return Screening(verdict=flags[0].verdict if flags else ScreeningVerdict.COMPILE, flags=tuple(flags))


def _flag(rule: Rule, verdict: ScreeningVerdict, score: float, evidence: Evidence | None) -> Flag:
    shown, where, span = "", "", (0, 0)
    if evidence:
        where, span = evidence.where, (evidence.start, evidence.end)
        shown = " ".join(evidence.text.split())[:EXCERPT_CHARS]
        if rule.group is Group.SECRET:
            shown = f"{evidence.end - evidence.start} characters that are not shown"
    return Flag(
        rule=rule.id,
        group=rule.group,
        verdict=verdict,
        score=round(score, 2),
        where=where,
        span=span,
        excerpt=shown,
    )


def _score(
    signals: Sequence[tuple[Signal, _Search | None]],
    skill: Skill,
    pages: list[Page],
    measures: Mapping[Measure, float],
) -> tuple[float, _Mark | Evidence | None]:
    """Score of a rule, and the first evidence of its strongest signal."""
    total, strongest, best = 0.0, 0.0, None
    for signal, search in signals:
        if search is not None:
            count, evidence = _count(search, pages)
            if count < search.least:
                continue
            if signal.dense:
                count *= 1000 / max(measures[Measure.CHARACTERS], 2000)
        elif signal.measure is not None:
            size = measures[signal.measure]
            low = signal.at_least is None or size >= signal.at_least
            high = signal.at_most is None or size <= signal.at_most
            total += signal.weight if low and high else 0
            continue
        else:
            evidence = _noticed(skill, signal.diagnostic, pages)
            count = float(evidence is not None)
        added = min(count, signal.most) * signal.weight
        total += added
        if added > strongest:
            strongest, best = added, evidence
    return total, best


def _count(search: _Search, pages: list[Page]) -> tuple[float, _Mark | None]:
    pattern, unless = search.pattern, search.unless
    count, first = 0, None
    for page in pages:
        if (search.hints and search.hints.isdisjoint(page.possible)) or search.where.isdisjoint(page.present):
            continue
        for start, end, *word in page.lines(search.words, search.where, whole=pattern is None):
            begin, stop = word
            if pattern is not None:
                match = pattern.search(page.text, start, end)
                if match is None:
                    continue
                begin, stop = match.span() if match[0] else (start, end)
            if unless is None or not unless.search(page.text, start, end):
                count += 1
                first = first or (page, begin, stop)
    return float(count), first


def _evidence(page: Page, begin: int, stop: int, pages: list[Page]) -> Evidence:
    """What stands there, and where in its file; name and description are looked up in the entry file."""
    text = page.quoted(begin, stop)
    if page.present & {Region.NAME, Region.DESCRIPTION}:
        at = pages[ENTRY].text.find(page.text[begin:stop])
        span = (at, at + stop - begin) if at >= 0 else (0, 0)
        return Evidence(page.where, *span, text)
    return Evidence(page.where, begin, stop, text) if page.where else Evidence("", 0, 0, text)


def _noticed(skill: Skill, code: str, pages: list[Page]) -> Evidence | None:
    """Ingest's evidence for one of its diagnostics: the line that it names."""
    for item in skill.diagnostics:
        if item.code == code:
            path, _, line = item.where.rpartition(":")
            page = next((page for page in pages[ENTRY:] if page.where == path and path), None)
            if page is None or not line.isdigit():
                return Evidence(item.where, 0, 0, item.message)
            rows = page.text.split("\n")
            at = min(int(line), len(rows)) - 1
            start = sum(len(row) + 1 for row in rows[:at])
            stop = start + len(rows[at])
            return Evidence(path, start, stop, page.quoted(start, stop))
    return None


@cache
def _default_ready() -> _Ready:
    return _made_ready(default_rules())


def _made_ready(rules: Sequence[Rule]) -> _Ready:
    words = [word for rule in rules for signal in rule.signals for word in signal.words]
    ready = tuple((rule, tuple((signal, _search(signal)) for signal in rule.signals)) for rule in rules)
    return _Ready(ready, Lookout(words))


def _search(signal: Signal) -> _Search | None:
    """None for a signal that looks at a measure or at what ingest noticed."""
    if not signal.where:
        return None
    return _Search(
        where=frozenset(signal.where),
        words=signal.words,
        hints=frozenset(signal.words),
        pattern=_compiled(signal.pattern),
        unless=_compiled(signal.unless),
        least=signal.least,
    )


@cache
def _compiled(pattern: str) -> re.Pattern[str] | None:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE) if pattern else None


__all__ = ["Flag", "Screening", "judge_skill", "redact"]
