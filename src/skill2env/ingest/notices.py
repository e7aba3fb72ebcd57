"""Licence and notice files around a skill: what its terms ask to be kept with everything derived from it."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from skill2env.ingest.package import Surrounding, is_plain, surroundings, telling_names

_NOTICE = re.compile(r"(?:licen[cs]e|copying|unlicense|notice|copyright|authors)(?:[-_.].*)?", re.IGNORECASE)


def notices_around(root: Path, entry: str, within: Path | None = None) -> list[tuple[str, Path]]:
    """Notice files of the repository or package that a skill belongs to; those of the skill's own folder not included.

    Args:
        root: the skill's folder.
        entry: its entry file.
        within: nothing above this folder belongs to the skill's source; free of links.

    Returns:
        Pairs of a plain name to keep the file under and the file, sorted by name. Regular files only.
    """
    found: dict[str, Path] = {}
    resolved = Path(os.path.realpath(root))
    for place in surroundings(resolved, entry, within):
        for name, path in _of(place):
            found.setdefault(name, path)
    return sorted(found.items())


def _of(place: Surrounding) -> Iterator[tuple[str, Path]]:
    if place.up:
        for path in _files(place.folder):
            yield path.name, path
    if place.declared_in.endswith(".dist-info/METADATA"):
        info = place.folder / Path(place.declared_in).parent
        for folder in (info, info / "licenses", info / "license_files"):
            for path in _files(folder):
                yield path.relative_to(place.folder).as_posix().replace("/", "__"), path


def _files(folder: Path) -> list[Path]:
    try:
        names = sorted(name for name in telling_names(folder) if _NOTICE.fullmatch(name))
    except OSError:
        return []
    return [folder / name for name in names if is_plain(folder, name)]
