"""Licence evidence of a skill: what is said, where, and what it means in SPDX terms.

Strength follows `LicenceEvidence`: a licence file in the folder, the front matter, the author's own repository or
package, the licence of a collection. A refusal is never outweighed by a permission.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from skill2env.ingest.package import Surrounding, licence_file_names, read_text, surroundings
from skill2env.ingest.quirks import note
from skill2env.ingest.spdx import PROPRIETARY, is_restrictive, normalise, recognise
from skill2env.records import Diagnostic, Licence, LicenceEvidence

_NAMED_FILE = re.compile(
    r"\b[\w./-]*(?:(?i:licen[cs]e|copying|notice|terms)[\w-]*\.(?:txt|md|rst)|LICEN[CS]E|COPYING|NOTICE)\b"
)
_COLLECTION = re.compile(r"awesome|registry|marketplace|mirror|collection|archive", re.IGNORECASE)
_OWNER_AT_REPOSITORY = re.compile(r"[\w.-]+@[\w.-]+")
_SOURCE_SIDECARS = ("skill-report.json", "_meta.json", "TOME.json")
_STATEMENT_CHARS = 200


@dataclass(frozen=True, slots=True)
class Terms:
    """What was found."""

    licence: Licence = field(default_factory=Licence)
    package: str = ""
    """The package around the skill, empty when there is none."""
    found: list[Diagnostic] = field(default_factory=list[Diagnostic])


def find_licence(root: Path, entry: str, statement: str, within: Path | None = None) -> Terms:
    """The strongest statement about a skill's terms.

    Args:
        root: the skill's folder, free of links.
        entry: name of the entry file.
        statement: the front matter's ``license`` value as text, empty when there is none.
        within: nothing above this folder belongs to the skill's source; free of links.
    """
    found: list[Diagnostic] = []
    around = list(surroundings(root, entry, within))
    package = next((place.package for place in around if place.package), "")
    own = _from_files(root, "", LicenceEvidence.SKILL_FILE, licence_file_names(root))
    field_says = _from_field(root, entry, statement, found)
    candidates = [item for item in (own, field_says, *_from_surroundings(root, around)) if item is not None]
    if own and field_says and own.spdx and field_says.spdx and own.spdx != field_says.spdx:
        found.append(
            note("licence-conflict", f"{own.where} says {own.spdx}, the field {field_says.spdx}", entry)
        )
    licence = _strongest(candidates)
    if licence is None:
        found.append(note("no-licence"))
        return Terms(package=package, found=found)
    if not licence.spdx:
        found.append(note("licence-unknown", licence.statement, licence.where))
    elif licence.spdx == PROPRIETARY:
        found.append(note("proprietary-licence", licence.statement, licence.where))
    elif is_restrictive(licence.spdx):
        found.append(note("restrictive-licence", licence.spdx, licence.where))
    return Terms(licence, package, found)


def _strongest(candidates: list[Licence]) -> Licence | None:
    """The first understood one; a refusal by the skill itself before all; else the first that says anything."""
    itself = {LicenceEvidence.SKILL_FILE, LicenceEvidence.FRONT_MATTER}
    for item in candidates:
        if item.spdx == PROPRIETARY and item.evidence in itself:
            return item
    said_by_itself = [item for item in candidates if item.evidence in itself]
    understood = [item for item in candidates if item.spdx]
    if said_by_itself and not any(item.spdx for item in said_by_itself):
        # Words of its own that nobody understood must not be overruled by the repository, unless they point there.
        pointing = any(_NAMED_FILE.search(item.statement) for item in said_by_itself)
        return understood[0] if pointing and understood else said_by_itself[0]
    return understood[0] if understood else candidates[0] if candidates else None


def _from_field(root: Path, entry: str, statement: str, found: list[Diagnostic]) -> Licence | None:
    if not statement.strip():
        return None
    spdx = normalise(statement)
    named = _NAMED_FILE.search(statement)
    path = named[0] if named else ""
    if path and not read_text(root / path):
        found.append(note("licence-file-missing", path, entry))
    elif path and not spdx:
        spdx = recognise(read_text(root / path))
    return Licence(
        spdx=spdx,
        evidence=LicenceEvidence.FRONT_MATTER,
        statement=" ".join(statement.split())[:_STATEMENT_CHARS],
        where=entry,
    )


def _from_files(folder: Path, up: str, evidence: LicenceEvidence, names: tuple[str, ...]) -> Licence | None:
    told: Licence | None = None
    for name in names:
        text = read_text(folder / name)
        if text.strip():
            first = next(" ".join(line.split()) for line in text.split("\n") if line.strip())
            licence = Licence(
                spdx=recognise(text),
                evidence=evidence,
                statement=first[:_STATEMENT_CHARS],
                where=f"{up}{name}",
            )
            if licence.spdx:
                return licence
            told = told or licence
    return told


def _from_surroundings(root: Path, around: list[Surrounding]) -> Iterator[Licence]:
    collection = _is_collection(root, around)
    evidence = LicenceEvidence.AGGREGATOR if collection else LicenceEvidence.REPOSITORY
    for place in around:
        from_file = _from_files(place.folder, place.up, evidence, place.licence_files)
        if from_file is not None:
            yield from_file
        if place.declared:
            yield Licence(
                spdx=normalise(place.declared),
                evidence=evidence,
                statement=" ".join(place.declared.split())[:_STATEMENT_CHARS],
                where=f"{place.up}{place.declared_in}",
            )


def _is_collection(root: Path, around: list[Surrounding]) -> bool:
    """Signs that the folder around holds other people's skills, so that its licence is not the author's grant."""
    if any((root / name).is_file() for name in _SOURCE_SIDECARS):
        return True
    if any(place.gathers for place in around):
        return True
    inner = [place.folder.name for place in around]
    if any(_OWNER_AT_REPOSITORY.fullmatch(name) for name in inner):
        return True
    top = around[-1]
    # An address says where an archive lay ("/archive/v1.tar.gz"), not what it is.
    package = "" if top.package.startswith(("https://", "http://")) else top.package
    return top.owner and bool(_COLLECTION.search(f"{top.folder.name} {package}"))
