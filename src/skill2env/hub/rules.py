"""The screening rules as data: read from ``screening_rules.toml``, checked, compiled once.

A rule adds up signals. A signal counts lines of a skill on which its pattern stands (after a cheap look for plain
words), or looks at a measure of the text, or at what ingest noticed. A single mention seldom decides; the sum does.
"""

import functools
import re
import tomllib
from enum import StrEnum
from importlib import resources
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from skill2env.records import Record

RULES_FILE = "screening_rules.toml"


class ScreeningVerdict(StrEnum):
    """What becomes of a skill, mildest first."""

    COMPILE = "compile"
    """Nothing speaks against an offline, self-contained terminal task."""
    REVIEW = "review"
    """Possible with a stand-in or a narrower scope; a person or a model should look."""
    DROP = "drop"
    """No offline task can be made of it, or it must not be made."""


class Group(StrEnum):
    """What rules are about."""

    NEEDS_ACCOUNT = "needs_account"
    """An account, a key or a login."""
    SAAS = "saas"
    """A hosted service."""
    LIVE_NETWORK = "live_network"
    """The network while the work is done."""
    MCP = "mcp"
    """Tools of an MCP server or of a client's connector."""
    GUI = "gui"
    """A graphical program."""
    HARDWARE = "hardware"
    """A device."""
    GPU = "gpu"
    """A graphics processor."""
    FOREIGN_OS = "foreign_os"
    """An operating system other than Linux."""
    HUMAN_APPROVAL = "human_approval"
    """A person who answers or approves on the way."""
    PERSONA = "persona_or_copywriting"
    """A role to play or a style to write in, and no method."""
    TOO_THIN = "too_thin"
    """Too little to ground a task on."""
    NO_CHECKABLE_OUTCOME = "no_checkable_outcome"
    """Judgement in prose that no program can check."""
    FIXTURE = "fixture_or_template"
    """A test fixture, a template or an example of a skill."""
    HARMFUL = "harmful"
    """Work that harms people, or that most policies forbid."""
    MALWARE = "malware"
    """Malware, lures, hidden or fetched code."""
    INJECTION = "injection"
    """Orders to the reader beyond the skill's work."""
    HIDDEN_TEXT = "hidden_text"
    """Characters that people cannot see."""
    SECRET = "secret"
    """What looks like a working credential."""


class Region(StrEnum):
    """Where a signal looks."""

    NAME = "name"
    """The declared name."""
    DESCRIPTION = "description"
    """The declared description."""
    FRONT_MATTER = "front_matter"
    """The front matter as written."""
    PROSE = "prose"
    """The entry file outside fences and front matter."""
    CODE = "code"
    """The entry file inside fences."""
    NOTES = "notes"
    """Other prose files of the folder."""
    SCRIPTS = "scripts"
    """Programs and data files of the folder."""
    PATH = "path"
    """Origin and file names."""


class Measure(StrEnum):
    """Sizes of the entry file's body that a signal can look at."""

    CHARACTERS = "characters"
    """Characters of the body."""
    CODE_LINES = "code_lines"
    """Lines inside fences that are more than a comment, a bracket, an installation or the call of a script."""
    INLINE_CODE = "inline_code"
    """Stretches in single backquotes."""
    NUMBERS = "numbers"
    """Numbers in the prose."""
    TABLE_ROWS = "table_rows"
    """Lines that begin with a bar."""
    STEPS = "steps"
    """Numbered lines."""
    BULLETS = "bullets"
    """Lines that begin with a bullet."""
    SCRIPTS = "scripts"
    """Program files in the folder."""
    SUBSTANCE = "substance"
    """Code lines + half the inline code + table rows + numbers / 4 + 20 for each script, each capped at 60: how much
    there is that a program could check."""


class Signal(Record):
    """One thing that adds to the score of a rule: words, perhaps with a pattern, or a measure, or a diagnostic."""

    where: tuple[Region, ...] = ()
    words: tuple[str, ...] = ()
    """Lower-case text, at least one of which stands on a line before the pattern is tried; without a pattern, whole
    words that count by themselves. Empty for short regions."""
    pattern: str = ""
    """Regular expression over one line, without regard to letter case."""
    unless: str = ""
    """A line that this matches does not count: what takes the mention back."""
    weight: float = 1.0
    """Added for each line that counts; negative for what speaks against the rule."""
    least: int = Field(default=1, ge=1)
    """Fewer lines than this count as none."""
    most: float = Field(default=1, gt=0)
    """More than this count as this many; also the ceiling of a density."""
    dense: bool = False
    """Count lines per 1,000 characters of the body (at least 2,000) instead of lines."""
    measure: Measure | None = None
    at_least: float | None = None
    at_most: float | None = None
    diagnostic: str = ""
    """Code of an ingest diagnostic."""

    @field_validator("pattern", "unless")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern, re.IGNORECASE)
        except re.error as error:
            raise ValueError(f"no regular expression: {error}") from None
        return pattern

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if sum(map(bool, (self.pattern or self.words, self.measure, self.diagnostic))) != 1:
            raise ValueError("a signal has exactly one of words or pattern, measure, and diagnostic")
        if bool(self.pattern or self.words) != bool(self.where):
            raise ValueError("words and patterns need a place to look, and nothing else does")
        return self


class Rule(Record):
    """One reason not to compile a skill unseen."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    group: Group
    meaning: str
    """One sentence: what it means when the rule fires."""
    reason: str
    """One sentence for the owner of a skill: why that keeps it from being compiled."""
    review: float | None = None
    """Score from which the verdict is at least review."""
    drop: float | None = None
    """Score from which the verdict is drop."""
    note: float | None = None
    """Score from which it is worth a note that changes nothing."""
    signals: tuple[Signal, ...] = Field(min_length=1)

    def verdict(self, score: float) -> ScreeningVerdict | None:
        """What a score leads to; `compile` is a note, None says nothing."""
        for least, verdict in (
            (self.drop, ScreeningVerdict.DROP),
            (self.review, ScreeningVerdict.REVIEW),
            (self.note, ScreeningVerdict.COMPILE),
        ):
            if least is not None and score >= least - 1e-9:
                return verdict
        return None

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        if self.review is None and self.drop is None and self.note is None:
            raise ValueError(f"rule {self.id} leads to nothing")
        return self


class RuleSet(Record):
    """All rules and the vocabularies that their patterns share."""

    vocabulary: dict[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    """Name -> words; ``{name}`` stands for them."""
    rules: tuple[Rule, ...]


def _expanded(data: dict[str, Any]) -> dict[str, Any]:
    """`data` with the vocabularies put in: ``{name}`` in a pattern is any of its words, among `words` all."""
    vocabulary: dict[str, list[str]] = data.get("vocabulary", {})
    choices = {
        f"{{{name}}}": "(?:" + "|".join(map(re.escape, words)) + ")" for name, words in vocabulary.items()
    }
    for rule in data.get("rules", ()):
        for signal in rule.get("signals", ()):
            for key in ("pattern", "unless"):
                for name, choice in choices.items():
                    if name in signal.get(key, ""):
                        signal[key] = signal[key].replace(name, choice)
            words: list[str] = signal.get("words", [])
            signal["words"] = [
                one for word in words for one in (vocabulary[word[1:-1]] if word[:1] == "{" else [word])
            ]
    return data


def read_rules(text: str) -> tuple[Rule, ...]:
    """Rules from TOML.

    Raises:
        ValueError: it is no TOML, or no rule set; two rules with one id included.
    """
    found = RuleSet.model_validate(_expanded(tomllib.loads(text))).rules
    ids = [rule.id for rule in found]
    if len(set(ids)) != len(ids):
        raise ValueError(f"two rules have the id {next(one for one in ids if ids.count(one) > 1)}")
    return found


@functools.cache
def default_rules() -> tuple[Rule, ...]:
    """The rules that ship with the program."""
    return read_rules(resources.files("skill2env.hub").joinpath(RULES_FILE).read_text(encoding="utf-8"))
