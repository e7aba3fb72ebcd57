"""What the rules and the classifier say of one content; the key says when that has to be found out anew."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from skill2env import __version__
from skill2env.domains import load_classifier
from skill2env.hub.screening import Flag, judge_skill
from skill2env.ingest.quirks import note, ordered
from skill2env.records import Licence, Skill, digest_bytes, digest_of

PLACE_CODES = frozenset({"name-differs-from-folder", "test-fixture"})
"""Diagnostics about where a skill lies, not about what it is."""
LICENCE_CODES = frozenset({"licence-unknown", "proprietary-licence", "restrictive-licence", "no-licence"})
"""Diagnostics about its terms, which its surroundings decide too."""
_DATA = ("hub/screening_rules.toml", "domain_weights.tsv")
"""Files that decide what an examination says."""


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found."""

    verdict: str
    """Value of a `ScreeningVerdict`."""
    flags: tuple[Flag, ...]
    domain: str
    """Value of a `Domain`; empty when unsure."""
    confidence: float


def settled(skill: Skill, *, name: str, slug: str, fixture: bool) -> Skill:
    """The skill as the same record wherever it is read from, so that equal contents are judged alike.

    Args:
        skill: as read at a source or in the store.
        name: as declared, or the folder's name at the source.
        slug: of that name.
        fixture: whether its place at the source looks like a test fixture.
    """
    kept = [item for item in skill.diagnostics if item.code not in PLACE_CODES | LICENCE_CODES]
    if fixture:
        kept.append(note("test-fixture"))
    changes = {"name": name, "slug": slug, "licence": Licence(), "origin": "", "diagnostics": ordered(kept)}
    return skill.model_copy(update=changes)


def exam_key(*, name: str, fixture: bool) -> str:
    """Equal exactly when an examination of one content need not be repeated."""
    return digest_of([rules_digest(), name, fixture])


@cache
def rules_digest() -> str:
    """Equal exactly when the rules and the classifier are the same."""
    folder = resources.files("skill2env")
    return digest_of([__version__, *(digest_bytes((folder / name).read_bytes()) for name in _DATA)])


def examine(skill: Skill, texts: Mapping[str, str]) -> Examination:
    """Judge one settled skill.

    Args:
        skill: see `settled`.
        texts: path -> content of its text files.
    """
    screening = judge_skill(skill, texts)
    guess = load_classifier().classify(skill.name, skill.description, skill.body)
    return Examination(screening.verdict.value, screening.flags, str(guess.domain), guess.confidence)
