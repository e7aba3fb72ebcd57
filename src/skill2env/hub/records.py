"""What the parts of the hub tell each other: sources as registered, skills as stored, and where each was found."""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from skill2env.records import Diagnostic, Licence, LicenceEvidence, Record

LOGIN = re.compile(r"(?<=://)[^/\s]*@")
"""User name and password of a URL."""


class SourceKind(StrEnum):
    """Where skills come from."""

    FOLDER = "folder"
    """A folder of this machine; read in place, never changed."""
    ARCHIVE = "archive"
    """A zip or tar file of this machine or at an address; a Claude `.skill` file is one."""
    GIT = "git"
    """A commit of a git repository, by URL or of a local mirror; nothing is checked out, nothing is run."""
    PYPI = "pypi"
    """A wheel or source archive of a Python package index, downloaded as data."""
    NPM = "npm"
    """A tarball of an npm registry, downloaded as data."""
    CORPUS = "corpus"
    """A folder with an ``index.jsonl`` that says of each skill where it is from; exports of a hub are of this kind."""


class SourceSpec(Record):
    """A source as ``hub.toml`` registers it."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")
    """Name within the hub."""
    kind: SourceKind
    location: str = Field(min_length=1, max_length=2000)
    """A path (relative to the hub folder), the URL of a repository or archive, or the name of a package."""
    revision: str = ""
    """What is pinned: a commit, or a package's version. Empty: whatever is there (packages need one)."""
    sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """Digest that the downloaded or given archive must have, as hex. Empty: recorded when first seen."""
    include: tuple[str, ...] = ()
    """Folders within the source that are searched for skills; empty means all of it."""
    exclude: tuple[str, ...] = ()
    """Folders within the source that are left out."""
    collection: bool = False
    """Holds other people's skills: the licence around them is then not their author's grant."""

    @field_validator("location")
    @classmethod
    def _without_login(cls, location: str) -> str:
        # Locations go into the index, the manifest and what is printed, and are handed on.
        login = LOGIN.search(location)
        if login and (":" in login[0] or not location.startswith("ssh://")):
            raise ValueError("a URL must not hold a login; git's credential helper keeps it")
        return location


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """What a corpus' index says about one skill."""

    origin: str
    licence: Licence | None
    sha256: str
    """Digest of the entry file as hex; empty when not stated."""
    notices: tuple[tuple[str, str], ...] = ()
    """Name of a notice -> path of its text in the corpus."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A source's files at rest."""

    root: Path
    revision: str
    """What was fetched: a commit, ``NAME==VERSION``, or a digest of the tree."""
    origin: str
    """How skills of it are called: ``git:URL@COMMIT``, ``pypi:NAME==VERSION``, an archive's URL; empty for a folder."""
    sha256: str = ""
    """Digest of the archive it was unpacked from, as hex; empty where there was none."""
    diagnostics: tuple[Diagnostic, ...] = ()
    index: dict[str, IndexEntry] = field(default_factory=dict[str, IndexEntry])
    """Folder of a skill -> what the corpus' own index says."""


class Origin(Record):
    """One place where a content was found."""

    source: str
    """Id of the source."""
    path: str
    """The skill's folder within the source, POSIX; ``.`` for the source's root."""
    digest: str
    """Digest of the content; see `Skill.digest`."""
    revision: str
    origin: str = ""
    """As in `Skill.origin`."""
    name: str
    """As declared, or the folder's name."""
    slug: str
    licence: Licence = Licence()
    notices: tuple[tuple[str, str], ...] = ()
    """Name -> digest of the licence and notice texts around the skill, which the store keeps."""
    fixture: bool = False
    """The path looks like a test fixture."""
    nested: bool = False
    """It lies inside another skill."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """What was odd about the place."""


@dataclass(frozen=True, slots=True)
class SeenPlace:
    """One skill as the last sync saw it."""

    state: str
    digest: str
    notices: tuple[str, ...]
    """Digests of the notices around it."""


EVIDENCE_RANK = {evidence: rank for rank, evidence in enumerate(LicenceEvidence)}
"""Strongest first."""


def understood(licence: Licence) -> LicenceEvidence:
    """Evidence of the terms; none where the words that were found were not understood."""
    return licence.evidence if licence.spdx else LicenceEvidence.NONE


class SkillRow(Record):
    """What a content is by itself, wherever it was found."""

    digest: str
    name: str
    slug: str
    description: str
    body: str
    language: str = ""
    """ISO 639-1; empty when there is too little prose to tell."""
    entry: str
    files: int
    size: int
    """Bytes of all files."""
    scripts: int
    """Number of script files."""
    missing: int
    """References that lead nowhere."""
    diagnostics: tuple[Diagnostic, ...] = ()


class SourceStatus(StrEnum):
    """How the last attempt to bring a source up to date ended."""

    FRESH = "fresh"
    """Everything it holds is in the store."""
    PARTIAL = "partial"
    """Work on it was begun and not finished; the next sync goes on."""
    FAILED = "failed"
    """It could not be had; what an earlier sync brought is kept."""


def storable(value: Any) -> Any:
    """Text as records and SQLite can hold it: lone surrogates become escapes."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "backslashreplace").decode()
    return value
