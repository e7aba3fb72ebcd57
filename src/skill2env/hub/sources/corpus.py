"""A folder whose ``index.jsonl`` says of each skill where it is from and on what terms; exports of a hub are like this.

Each line is a JSON object. ``path`` names the entry file, relative to the folder or to the root of the one archive in
it. ``origin``, ``license``, ``license_evidence``, ``license_statement``, ``sha256`` (of the entry
file) and ``notices`` (name -> path of a text) are optional, and other keys are ignored.
"""

import json
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from skill2env.authors.workspace import name_problem, path_problem
from skill2env.errors import UserError
from skill2env.hub.folder import Hub, resolved
from skill2env.hub.records import Fetched, IndexEntry, SourceSpec
from skill2env.hub.sources.archive_file import file_sha256, unpacked
from skill2env.hub.sources.base import Place
from skill2env.hub.tree import folder_state
from skill2env.ingest.package import ORIGIN_NAME
from skill2env.ingest.spdx import normalise
from skill2env.records import Diagnostic, Licence, LicenceEvidence, Severity
from skill2env.store.files import storage

INDEX_NAME = "index.jsonl"
_ARCHIVES = ("*.tar.xz", "*.tar.gz", "*.tgz", "*.tar.bz2", "*.tar", "*.zip")
_MAX_LINE = 100_000
_MAX_NAME_BYTES = 200
_EVIDENCE = {
    "skill_file": LicenceEvidence.SKILL_FILE,
    "frontmatter+file": LicenceEvidence.SKILL_FILE,
    "frontmatter": LicenceEvidence.FRONT_MATTER,
    "front_matter": LicenceEvidence.FRONT_MATTER,
    "ancestor": LicenceEvidence.REPOSITORY,
    "repository": LicenceEvidence.REPOSITORY,
    "aggregator": LicenceEvidence.AGGREGATOR,
}


@dataclass(frozen=True, slots=True)
class CorpusSource:
    """Reads the index, and the skills beside it or in the one archive beside it."""

    hub: Hub
    spec: SourceSpec

    @property
    def root(self) -> Path:
        """The folder, free of links."""
        return resolved(self.hub, self.spec.location).resolve()

    def state(self) -> str:
        """See `Source.state`."""
        index = self.root / INDEX_NAME
        if not index.is_file():
            raise UserError(
                f"source {self.spec.id}: {self.root} holds no {INDEX_NAME}",
                hint="mend its location in hub.toml",
            )
        archive = self._archive()
        if archive is None:
            return folder_state(self.root)
        return f"sha256:{file_sha256(index)}+{file_sha256(archive)}"

    def fetch(self, place: Place) -> Fetched:
        """See `Source.fetch`."""
        revision = self.state()
        entries, found = read_index(self.root / INDEX_NAME)
        archive = self._archive()
        if archive is None:
            return Fetched(self.root, revision, "", index=entries, diagnostics=tuple(found))
        fetched = unpacked(self.spec, archive, place, revision=revision, origin="")
        return replace(fetched, index=entries, diagnostics=(*fetched.diagnostics, *found))

    def _archive(self) -> Path | None:
        """The archive that holds the skills, or None when they lie in the folder itself."""
        held = sorted(path for pattern in _ARCHIVES for path in self.root.glob(pattern) if path.is_file())
        folders = any(path.is_dir() and not path.name.startswith(".") for path in self.root.iterdir())
        if folders or not held:
            return None
        if len(held) > 1:
            raise UserError(
                f"source {self.spec.id}: {self.root} holds {len(held)} archives and no skill beside them",
                hint="leave the one that holds the skills of the index",
            )
        return held[0]


def read_index(path: Path) -> tuple[dict[str, IndexEntry], list[Diagnostic]]:
    """Read a corpus' index: folder of a skill -> what is said of it, and what could not be understood.

    Raises:
        InfraError: boundary ``storage``.
    """
    entries: dict[str, IndexEntry] = {}
    found: list[Diagnostic] = []
    with storage("reading", path), path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            told = _entry(line)
            if isinstance(told, str):
                found.append(
                    Diagnostic(
                        code="index-line",
                        severity=Severity.WARN,
                        message=told,
                        where=f"{INDEX_NAME}:{number}",
                    )
                )
            elif told is not None:
                entries[told[0]] = told[1]
    return entries, found[:100]


def _entry(line: bytes) -> tuple[str, IndexEntry] | str | None:
    """Folder and entry, or why the line is not understood; None for lines that are about something else."""
    if len(line) > _MAX_LINE:
        return "the line is too long"
    try:
        data: Any = json.loads(line)
    except (ValueError, RecursionError):
        return "not JSON"
    if not isinstance(data, dict):
        return "no JSON object"
    record = cast("dict[str, Any]", data)
    path = record.get("path")
    if not isinstance(path, str):
        return None if "path" not in record else "path is no text"
    problem = path_problem(path)
    if problem:
        return f"path: {problem}"
    notices: Any = record.get("notices")
    return posixpath.dirname(path) or ".", IndexEntry(
        origin=_text(record, "origin"),
        licence=_licence(record),
        sha256=_text(record, "sha256").removeprefix("sha256:").lower(),
        notices=_notices(cast("Mapping[Any, Any]", notices)) if isinstance(notices, Mapping) else (),
    )


def _licence(record: Mapping[str, Any]) -> Licence | None:
    stated = _text(record, "license")
    told, _, where = _text(record, "license_evidence").partition(":")
    evidence = _EVIDENCE.get(told)
    if not stated or evidence is None:
        return None
    return Licence(
        spdx=normalise(stated),
        evidence=evidence,
        statement=(_text(record, "license_statement") or stated)[:200],
        where=where or INDEX_NAME,
    )


def _notices(told: Mapping[Any, Any]) -> tuple[tuple[str, str], ...]:
    pairs = ((name, path) for name, path in told.items() if isinstance(name, str) and isinstance(path, str))
    return tuple(
        sorted(
            (name, path) for name, path in pairs if not path_problem(path) and not notice_name_problem(name)
        )
    )


def notice_name_problem(name: str) -> str:
    """Why a notice may not be kept beside skills under a name; empty when it may."""
    if name.startswith(".") or len(name.encode("utf-8", "replace")) > _MAX_NAME_BYTES:
        return "hidden, or too long"
    if name.casefold() in {ORIGIN_NAME, INDEX_NAME, "skill.md"}:
        return "a name that says something else"
    return name_problem(name)


def _text(record: Mapping[str, Any], key: str) -> str:
    value = record.get(key)
    return value if isinstance(value, str) and value.isprintable() else ""
