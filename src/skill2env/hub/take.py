"""What happens to one folder of a source: it is read, stored and examined. Runs in worker processes."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from skill2env.errors import UserError
from skill2env.hub.examine import LICENCE_CODES, PLACE_CODES, Examination, exam_key, examine, settled
from skill2env.hub.records import EVIDENCE_RANK, IndexEntry, Origin, SkillRow, storable
from skill2env.hub.sources.corpus import notice_name_problem
from skill2env.hub.store import Changed, Store
from skill2env.ingest import is_fixture, load_skill, notices_around
from skill2env.ingest.file_signs import SCRIPT_ENDINGS
from skill2env.ingest.language import guess_language
from skill2env.ingest.spdx import PROPRIETARY
from skill2env.records import Diagnostic, FileKind, Licence, LicenceEvidence, Severity, Skill


@dataclass(frozen=True, slots=True)
class Work:
    """What the jobs of one source have in common."""

    store: Path
    source: str
    root: Path
    """Root of the source's files."""
    revision: str
    origin: str
    bounded: bool
    """Nothing above the root belongs to the source."""
    collection: bool


@dataclass(frozen=True, slots=True)
class Job:
    """One folder to take."""

    path: str
    """Relative to the source's root, ``.`` for the root itself."""
    nested: bool = False
    """It lies inside another skill."""
    entry: IndexEntry | None = None
    """What the source's own index says."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of one folder."""

    path: str
    origin: Origin | None = None
    row: SkillRow | None = None
    exam: Examination | None = None
    exam_key: str = ""
    failed: Diagnostic | None = None
    """Why it was left out; nothing else is set then."""


def take_many(work: Work, jobs: Sequence[Job]) -> list[Taken]:
    """`take` for a chunk."""
    return [take(work, job) for job in jobs]


def take(work: Work, job: Job) -> Taken:
    """Read, store and examine one skill.

    Raises:
        InfraError: boundary ``storage``.
    """
    path, entry = job.path, job.entry
    if not path.isascii() and path != storable(path):
        return Taken(path, failed=_left_out("name-not-utf8", "the folder's name is not UTF-8", path))
    folder = work.root if path == "." else work.root / path
    within = work.root if work.bounded else None
    try:
        skill = load_skill(folder, origin=work.origin, within=within)
        texts = Store(work.store).put(skill, folder)
    except UserError as error:
        return Taken(path, failed=_left_out("unreadable", error.message, path))
    except Changed as error:
        return Taken(path, failed=_left_out("changed", f"{error} changed while it was read", path))
    if entry is not None and entry.sha256 and not _is_as_indexed(skill, entry):
        return Taken(path, failed=_left_out("not-as-indexed", "the entry is not the file of the index", path))
    origin = _origin(work, job, skill, folder)
    plain = settled(skill, name=origin.name, slug=origin.slug, fixture=origin.fixture)
    return Taken(
        path,
        origin=origin,
        row=_row(plain),
        exam=examine(plain, texts),
        exam_key=exam_key(name=origin.name, fixture=origin.fixture),
    )


def _left_out(code: str, message: str, path: str) -> Diagnostic:
    return Diagnostic(code=code, severity=Severity.WARN, message=storable(message), where=storable(path))


def _is_as_indexed(skill: Skill, entry: IndexEntry) -> bool:
    return any(
        f.path == skill.entry and f.sha256.removeprefix("sha256:") == entry.sha256 for f in skill.files
    )


def _origin(work: Work, job: Job, skill: Skill, folder: Path) -> Origin:
    licence, entry = skill.licence, job.entry
    if work.collection and licence.evidence is LicenceEvidence.REPOSITORY:
        licence = licence.model_copy(update={"evidence": LicenceEvidence.AGGREGATOR})
    if entry is not None and entry.licence is not None:
        licence = _stronger(licence, entry.licence)
    return Origin(
        source=work.source,
        path=job.path,
        digest=skill.digest,
        revision=work.revision,
        origin=entry.origin if entry is not None and entry.origin else skill.origin,
        name=skill.name,
        slug=skill.slug,
        licence=licence,
        notices=_notices(work, skill, folder, entry),
        fixture=is_fixture(job.path),
        nested=job.nested,
        diagnostics=tuple(item for item in skill.diagnostics if item.code in PLACE_CODES | LICENCE_CODES),
    )


def _stronger(found: Licence, told: Licence) -> Licence:
    """The better founded of two statements; a refusal by the skill itself is never outweighed."""
    itself = (LicenceEvidence.SKILL_FILE, LicenceEvidence.FRONT_MATTER)
    if found.spdx == PROPRIETARY and found.evidence in itself:
        return found
    if not found.spdx or EVIDENCE_RANK[told.evidence] < EVIDENCE_RANK[found.evidence]:
        return told
    return found


def _notices(work: Work, skill: Skill, folder: Path, entry: IndexEntry | None) -> tuple[tuple[str, str], ...]:
    store = Store(work.store)
    within = work.root if work.bounded else None
    places = {name: _within(folder, path) for name, path in notices_around(folder, skill.entry, within)}
    if entry is not None:
        places |= {name: (work.root, path) for name, path in entry.notices}
    kept = {
        name: store.put_notice(*place)
        for name, place in sorted(places.items())
        if not notice_name_problem(name)
    }
    return tuple((name, digest) for name, digest in kept.items() if digest)


def _within(folder: Path, path: Path) -> tuple[Path, str]:
    """The nearest folder above a skill that holds `path`, and the way from there: the part that links may bend."""
    real = Path(os.path.realpath(folder))
    base = next(above for above in (real, *real.parents) if path.is_relative_to(above))
    return base, path.relative_to(base).as_posix()


def _row(skill: Skill) -> SkillRow:
    scripts = sum(
        item.kind is FileKind.TEXT and item.path.lower().endswith(SCRIPT_ENDINGS) for item in skill.files
    )
    return SkillRow(
        digest=skill.digest,
        name=skill.name,
        slug=skill.slug,
        description=skill.description,
        body=skill.body,
        language=guess_language(skill.body),
        entry=skill.entry,
        files=len(skill.files),
        size=skill.size,
        scripts=scripts,
        missing=len(skill.missing_references),
        diagnostics=tuple(item for item in skill.diagnostics if item.code not in PLACE_CODES | LICENCE_CODES),
    )


def again_many(store: Path, origins: Sequence[Origin]) -> list[Taken]:
    """`again` for a chunk."""
    return [again(store, origin) for origin in origins]


def again(store: Path, origin: Origin) -> Taken:
    """Examine a stored skill once more, as the content that it is at one of its places.

    Raises:
        InfraError: boundary ``storage``.
    """
    folder = Store(store).skill(origin.digest)
    try:
        skill = load_skill(folder, within=Path(os.path.realpath(folder)))
        plain = settled(skill, name=origin.name, slug=origin.slug, fixture=origin.fixture)
        texts = Store(store).texts(skill, folder)
    except UserError as error:
        return Taken(origin.path, failed=_left_out("unreadable", error.message, origin.path))
    except Changed as error:
        return Taken(origin.path, failed=_left_out("changed", f"{error} is damaged", origin.path))
    key = exam_key(name=origin.name, fixture=origin.fixture)
    return Taken(origin.path, row=_row(plain), exam=examine(plain, texts), exam_key=key)
