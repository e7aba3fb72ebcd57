"""Licence evidence of a skill: what is said, where, and what it means in SPDX terms.

Strength follows `LicenceEvidence`: a licence file in the folder, the front matter, the author's own repository or package, a collection's licence.
"""

import functools
import json
import re
from pathlib import Path

from skill2env.ingest.quirks import note
from skill2env.ingest.text import decode
from skill2env.records import Diagnostic, Licence, LicenceEvidence

PROPRIETARY = "LicenseRef-Proprietary"
FILE_NAMES = (
    "LICENSE",
    "LICENSE.txt",
    "LICENSE.md",
    "LICENCE",
    "LICENCE.txt",
    "LICENCE.md",
    "COPYING",
    "COPYING.txt",
    "License.txt",
    "license.txt",
    "license",
)
_MAX_BYTES = 200_000
_UP_FOLDERS = 6

_TEXTS: tuple[tuple[str, str], ...] = (
    ("Apache-2.0", r"apache license,?\s+version 2\.0|www\.apache\.org/licenses/license-2\.0"),
    ("AGPL-3.0-only", r"gnu affero general public license"),
    ("LGPL-3.0-only", r"gnu lesser general public license"),
    ("GPL-3.0-only", r"gnu general public license\s+version 3"),
    ("GPL-2.0-only", r"gnu general public license\s+version 2"),
    ("MPL-2.0", r"mozilla public license,?\s+version 2\.0"),
    ("BSD-3-Clause", r"neither the name of[^.]{0,200}may be used to\s+endorse"),
    ("BSD-2-Clause", r"redistribution and use in source and binary forms"),
    ("ISC", r"permission to use, copy, modify, and/?(?:or)? distribute this software for any purpose"),
    ("MIT", r"permission is hereby granted, free of charge, to any person obtaining a copy"),
    ("CC0-1.0", r"cc0 1\.0 universal"),
    ("CC-BY-NC-SA-4.0", r"attribution-noncommercial-sharealike 4\.0"),
    ("CC-BY-NC-4.0", r"attribution-noncommercial 4\.0"),
    ("CC-BY-SA-4.0", r"attribution-sharealike 4\.0"),
    ("CC-BY-4.0", r"attribution 4\.0 international|creativecommons\.org/licenses/by/4\.0"),
    ("PolyForm-Noncommercial-1.0.0", r"polyform noncommercial license"),
    ("Unlicense", r"this is free and unencumbered software released into the public domain"),
    (
        PROPRIETARY,
        r"all rights reserved\.?\s*$|may not (?:copy|reproduce|distribute|extract|retain)|proprietary",
    ),
)
_ALIASES = {
    "mit license": "MIT", "the mit license": "MIT", "mit-0": "MIT-0", "apache 2.0": "Apache-2.0", "apache-2": "Apache-2.0", "apache2": "Apache-2.0",
    "apache license 2.0": "Apache-2.0", "apache license, version 2.0": "Apache-2.0", "apache": "Apache-2.0", "apache software license": "Apache-2.0",
    "bsd": "BSD-3-Clause", "bsd license": "BSD-3-Clause", "bsd-3": "BSD-3-Clause", "gpl": "GPL-3.0-only", "gplv3": "GPL-3.0-only", "gpl-3.0": "GPL-3.0-only",
    "gpl v3": "GPL-3.0-only", "gplv2": "GPL-2.0-only", "gpl-2.0": "GPL-2.0-only", "agpl-3.0": "AGPL-3.0-only", "lgpl-3.0": "LGPL-3.0-only",
    "cc0": "CC0-1.0", "cc-by": "CC-BY-4.0", "cc by 4.0": "CC-BY-4.0", "cc-by 4.0": "CC-BY-4.0", "cc by-sa 4.0": "CC-BY-SA-4.0", "public domain": "CC0-1.0",
    "proprietary": PROPRIETARY, "unlicensed": PROPRIETARY, "commercial": PROPRIETARY, "all rights reserved": PROPRIETARY,
}  # fmt: skip
_COPYLEFT = re.compile(r"GPL|MPL|EUPL|CC-BY(?:-NC)?-SA|-NC|Noncommercial|SSPL|OSL", re.IGNORECASE)


@functools.cache
def _spdx() -> "object":
    from license_expression import get_spdx_licensing

    return get_spdx_licensing()


@functools.lru_cache(maxsize=4096)
def normalise(statement: str) -> str:
    """SPDX expression of a short statement such as ``MIT License``; empty when it is not understood."""
    text = " ".join(statement.split()).strip(" .\"'`")
    if not text or len(text) > 200:
        return ""
    lowered = text.lower()
    if lowered in _ALIASES:
        return _ALIASES[lowered]
    stem = re.sub(
        r"\s*\(.*?\)\s*|\s*[,;-]?\s*see .*$|\s+licen[cs]ed?$|\s+licen[cs]e.*$", "", text, flags=re.IGNORECASE
    ).strip(" .,-")
    if stem.lower() in _ALIASES:
        return _ALIASES[stem.lower()]
    if "proprietary" in lowered:
        return PROPRIETARY
    for candidate in (text, stem):
        expression = _parse(candidate)
        if expression:
            return expression
    return ""


def _parse(text: str) -> str:
    if not text or not re.fullmatch(r"[A-Za-z0-9.+() -]{2,120}", text):
        return ""
    try:
        licensing = _spdx()
        parsed = licensing.parse(text, validate=True)  # type: ignore[attr-defined]
        return str(parsed) if parsed is not None else ""
    except Exception:
        # The parser has its own error tree and also raises plain errors on odd input; either means "not SPDX".
        return ""


def recognise(text: str) -> str:
    """SPDX id of a licence text, empty when none is recognised."""
    lowered = re.sub(r"\s+", " ", text.lower())
    return next((spdx for spdx, pattern in _TEXTS if re.search(pattern, lowered)), "")


def _read(path: Path) -> str:
    try:
        if not path.is_file() or path.is_symlink():
            return ""
        with path.open("rb") as file:
            return decode(file.read(_MAX_BYTES)).text
    except OSError:
        return ""


def _from_file(folder: Path, up: str, evidence: LicenceEvidence) -> Licence | None:
    for name in FILE_NAMES:
        text = _read(folder / name)
        if text.strip():
            first = next((line.strip() for line in text.split("\n") if line.strip()), "")
            return Licence(
                spdx=recognise(text), evidence=evidence, statement=first[:200], where=f"{up}{name}"
            )
    return None


def find_licence(root: Path, field: object) -> tuple[Licence, list[Diagnostic]]:
    """The strongest statement about a skill.

    Args:
        root: the skill's folder.
        field: the front matter's ``license`` value, or None.
    """
    statement = field.strip() if isinstance(field, str) else ""
    own = _from_file(root, "", LicenceEvidence.SKILL_FILE)
    from_field = (
        Licence(
            spdx=normalise(statement),
            evidence=LicenceEvidence.FRONT_MATTER,
            statement=statement[:200],
            where="SKILL.md",
        )
        if statement
        else None
    )
    found: list[Diagnostic] = []
    named = re.search(r"([\w./-]*(?:licen[cs]e|copying|notice)[\w.-]*\.(?:txt|md))", statement, re.IGNORECASE)
    if named and not (root / named[1]).is_file():
        found.append(note("licence-file-missing", named[1]))
    if own and from_field and from_field.spdx == PROPRIETARY:
        own = own.model_copy(update={"spdx": PROPRIETARY})  # a refusal is never outweighed
    chosen = (
        own
        if own and own.spdx
        else from_field
        if from_field and from_field.spdx
        else own or from_field or _around(root)
    )
    if chosen is None:
        return Licence(), [*found, note("no-licence")]
    if not chosen.spdx and not named:
        found.append(note("licence-unknown", chosen.statement[:80], chosen.where))
    elif chosen.spdx == PROPRIETARY:
        found.append(note("proprietary-licence", chosen.statement[:80], chosen.where))
    elif _COPYLEFT.search(chosen.spdx):
        found.append(note("restrictive-licence", chosen.spdx, chosen.where))
    return chosen, found


def _around(root: Path) -> Licence | None:
    """Walk up to the repository or package around the skill."""
    folder, up = root.absolute(), ""
    for _ in range(_UP_FOLDERS):
        if (folder / ".git").exists() or folder.parent == folder:
            break
        folder, up = folder.parent, up + "../"
        try:
            entries = {p.name for p in folder.iterdir()}
        except OSError:
            break
        found = _package(folder, up, entries) or (
            _from_file(folder, up, LicenceEvidence.REPOSITORY) if entries & set(FILE_NAMES) else None
        )
        if found:
            return found
    return None


def _package(folder: Path, up: str, entries: set[str]) -> Licence | None:
    if "package.json" in entries:
        try:
            value = json.loads(_read(folder / "package.json") or "{}").get("license")
        except (ValueError, AttributeError):
            value = None
        if isinstance(value, str) and value:
            return Licence(
                spdx=normalise(value),
                evidence=LicenceEvidence.REPOSITORY,
                statement=value[:200],
                where=f"{up}package.json",
            )
    for name in sorted(e for e in entries if e.endswith(".dist-info")):
        meta = _read(folder / name / "METADATA").split("\n\n", 1)[0]
        match = re.search(r"(?mi)^License-Expression:\s*(.+)$", meta) or re.search(
            r"(?mi)^License:\s*(\S.{0,99})$", meta
        )
        classifier = re.search(r"(?mi)^Classifier:\s*License :: (?:OSI Approved :: )?(.+)$", meta)
        value = match[1].strip() if match else classifier[1].strip() if classifier else ""
        if value:
            return Licence(
                spdx=normalise(value),
                evidence=LicenceEvidence.REPOSITORY,
                statement=value[:200],
                where=f"{up}{name}/METADATA",
            )
    return None
