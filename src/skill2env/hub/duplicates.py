"""Which of several copies of a skill stands for all: the rank by which `near.cluster` chooses representatives."""

from skill2env.hub.records import EVIDENCE_RANK, understood
from skill2env.near import Rank
from skill2env.records import Licence, Skill


def rank(licence: Licence, *, missing: int, mirror: bool, files: int, chars: int) -> Rank:
    """Rank of a content among its copies. The rules, each deciding only where those before are equal.

    1. Stronger licence evidence first; terms that were not understood count as none.
    2. Complete before incomplete: fewer files that the text points to and the folder lacks.
    3. The author's own repository or package before a mirror.
    4. More files, then a longer text.

    Args:
        licence: its terms at the place that speaks for it.
        missing: files that its text points to and its folder lacks.
        mirror: whether its source gathers other people's skills.
        files: how many it has.
        chars: length of its body.
    """
    return EVIDENCE_RANK[understood(licence)], missing, int(mirror), -files, -chars


def rank_of(skill: Skill, *, mirror: bool = False) -> Rank:
    """`rank` of a skill as ingested."""
    return rank(
        skill.licence,
        missing=len(skill.missing_references),
        mirror=mirror,
        files=len(skill.files),
        chars=len(skill.body),
    )
