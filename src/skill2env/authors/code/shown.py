"""Which recorded cases are shown and which stay hidden, so that what is shown is enough to know what is hidden.

Used by the families in which code is written anew. Small wrong versions of the original stand for what a careful solver
might write: whenever the hidden cases would fault such a version, so must a shown one.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from skill2env.records import digest_of


@dataclass(frozen=True, slots=True)
class Split:
    """Ids of cases, sorted by how they are numbered."""

    shown: tuple[str, ...]
    hidden: tuple[str, ...]


def split(
    ranked: Sequence[str],
    showable: AbstractSet[str],
    wrong: Mapping[str, AbstractSet[str]],
    *,
    least: int,
    most: int,
    hidden: int,
) -> Split | None:
    """Choose shown cases that tell the right version from every wrong one that hidden cases tell from it.

    Args:
        ranked: all cases, those first that are best to show.
        showable: cases that can be shown at all.
        wrong: wrong version -> cases that it gets wrong.
        least: fewest shown cases.
        most: most shown cases. Wrong versions that these do not cover excuse the hidden cases that would fault them.
        hidden: most hidden cases.

    Returns:
        None when fewer than `least` cases can be shown.
    """
    can = [i for i in ranked if i in showable]
    place = {i: number for number, i in enumerate(can)}
    open_versions = {name: found & showable for name, found in wrong.items() if found & showable}
    shown: list[str] = []
    while open_versions and len(shown) < most:
        gains: dict[str, int] = {}
        for found in open_versions.values():
            for i in found:
                gains[i] = gains.get(i, 0) + 1
        best = min(gains, key=lambda i: (-gains[i], place.get(i, len(can)), i))
        shown.append(best)
        open_versions = {name: found for name, found in open_versions.items() if best not in found}
    shown += [i for i in can if i not in shown][: max(0, least - len(shown))]
    if len(shown) < least:
        return None
    covered = set(shown)
    unfair = {i for found in wrong.values() if not found & covered for i in found}
    rest = [i for i in ranked if i not in covered and i not in unfair]
    chosen = sorted(rest, key=digest_of)[:hidden]
    return Split(tuple(sorted(shown, key=lambda i: place[i])), tuple(sorted(chosen)))
