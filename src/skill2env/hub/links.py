"""Where the links of an archive lead, before any of them is made."""

import unicodedata
from collections.abc import Mapping

_MAX_STEPS = 256
"""Segments that are looked at to find where one link leads."""


def spelling_key(path: str) -> str:
    """What names of one file have in common where file systems do not tell letter cases or accents apart."""
    return unicodedata.normalize("NFC", path).casefold()


def stays_inside(path: str, links: Mapping[str, str]) -> bool:
    """Whether a link of an archive leads into it, however the other links bend its way.

    Worked out before any of them is made, by the steps that a kernel would take.
    """
    here: list[str] = []
    todo = path.split("/")[::-1]
    for _ in range(_MAX_STEPS):
        if not todo:
            return True
        segment = todo.pop()
        if segment in ("", "."):
            continue
        if segment == "..":
            if not here:
                return False
            here.pop()
            continue
        target = links.get(spelling_key("/".join([*here, segment])))
        if target is None:
            here.append(segment)
        elif target.startswith("/"):
            return False
        else:
            todo += target.split("/")[::-1]
    return False
