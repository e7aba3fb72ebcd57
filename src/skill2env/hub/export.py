"""`hub export`: chosen skills as a folder that `skill2env compile` takes, with terms kept and secrets redacted.

Layout::

    index.jsonl                     one record a skill: origin, terms, digests; another hub reads it as a source
    skills/GROUP/                   one folder for each origin and terms
        skill2env-origin.json       what ingest reads as the package around the skills
        LICENSE, NOTICE, ...        the texts that were found around them
        SLUG/                       a skill
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

from skill2env.errors import UserError
from skill2env.hub.database import Database
from skill2env.hub.folder import Hub
from skill2env.hub.queries import Filter, find
from skill2env.hub.records import Origin
from skill2env.hub.redaction import redact
from skill2env.hub.sources.corpus import INDEX_NAME, notice_name_problem
from skill2env.hub.store import Store, contents
from skill2env.ingest.package import ORIGIN_NAME
from skill2env.records import SHA256_PREFIX, FileKind, LicenceEvidence, SkillFile, canonical_json, digest_of
from skill2env.store.files import copy_tree, staged_folder, storage, write_text

_EVIDENCE = {
    LicenceEvidence.SKILL_FILE: "skill_file",
    LicenceEvidence.FRONT_MATTER: "front_matter",
    LicenceEvidence.REPOSITORY: "repository",
    LicenceEvidence.AGGREGATOR: "aggregator",
}


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    out: Path
    skills: int
    redacted: int
    """Skills in which secrets were replaced; their digest differs from that in the hub."""

    def document(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {"out": str(self.out), "skills": self.skills, "redacted": self.redacted}


@dataclass(frozen=True, slots=True)
class _Chosen:
    origin: Origin
    entry: str
    domain: str
    language: str


def export_skills(hub: Hub, out: Path, wanted: Filter, *, limit: int = 0) -> Exported:
    """Write the skills that pass a filter into a new folder, or in place of an earlier export.

    Raises:
        UserError: nothing passes, or `out` holds something else.
        InfraError: boundary ``storage``; `out` is then as it was.
    """
    _refuse_foreign(out)
    with Database.read(hub.index) as database:
        chosen = list(_chosen(database, wanted, limit))
    if not chosen:
        raise UserError(
            "no skill passes", hint="`skill2env hub stats` shows what there is and what was refused"
        )
    store = Store(hub.store)
    records: list[dict[str, Any]] = []
    with staged_folder(out.absolute().parent) as staged:
        for group, members in sorted(_groups(chosen).items()):
            folder = staged / "skills" / group
            folder.mkdir(parents=True)
            _write_terms(store, folder, members[0].origin)
            names = _names(members)
            for member in sorted(members, key=lambda item: names[item.origin.digest]):
                place = f"skills/{group}/{names[member.origin.digest]}"
                records.append(_write_skill(store, staged, place, member))
        text = "".join(f"{canonical_json(record)}\n" for record in sorted(records, key=lambda r: r["path"]))
        write_text(staged / INDEX_NAME, text)
        _replace(staged, out)
    return Exported(out, len(records), sum(bool(record["redacted"]) for record in records))


def _chosen(database: Database, wanted: Filter, limit: int) -> Iterator[_Chosen]:
    columns = "digest, source, path, entry, domain, language"
    rows = list(find(database, wanted, limit=limit or -1, columns=columns))
    for row in rows:
        record = database.value(
            "SELECT record FROM origins WHERE source = ? AND path = ?", (row["source"], row["path"])
        )
        yield _Chosen(Origin.model_validate_json(record), row["entry"], row["domain"], row["language"])


def _groups(chosen: list[_Chosen]) -> dict[str, list[_Chosen]]:
    """Skills of equal surroundings, by the name of their folder."""
    found: dict[str, list[_Chosen]] = {}
    for item in chosen:
        origin = item.origin
        facts = [_origin_of(origin), origin.notices, origin.licence.spdx, origin.licence.evidence.value]
        label = re.sub(r"[^a-z0-9.]+", "-", _origin_of(origin).lower()).strip("-.")[-48:].strip("-.")
        name = f"{label or origin.source}-{digest_of(facts).removeprefix(SHA256_PREFIX)[:8]}"
        found.setdefault(name, []).append(item)
    return found


def _origin_of(origin: Origin) -> str:
    return origin.origin or origin.source


def _names(members: list[_Chosen]) -> dict[str, str]:
    """Digest -> folder: the slug, with digits of the digest for all that share one, or share it with a notice."""
    counts = Counter(item.origin.slug for item in members)
    taken = {name.casefold() for item in members for name, _ in _notices(item.origin)} | {ORIGIN_NAME}
    names: dict[str, str] = {}
    for item in sorted(members, key=lambda item: (item.origin.slug, item.origin.digest)):
        slug, digits = item.origin.slug, item.origin.digest.removeprefix(SHA256_PREFIX)
        choices = [slug] if counts[slug] == 1 else []
        more = (f"{slug}-{digits[:8]}{f'-{number}' if number else ''}" for number in count())
        # A stranger may call a notice whatever a folder would be called.
        name = next(choice for choice in chain(choices, more) if choice.casefold() not in taken)
        names[item.origin.digest] = name
        taken.add(name.casefold())
    return names


def _notices(origin: Origin) -> list[tuple[str, str]]:
    """Name and digest of its notices; names that an older version took from a stranger are judged again."""
    return [(name, digest) for name, digest in origin.notices if not notice_name_problem(name)]


def _write_terms(store: Store, folder: Path, origin: Origin) -> None:
    facts = {
        "origin": _origin_of(origin),
        "licence": origin.licence.spdx,
        "statement": origin.licence.statement,
        "collection": origin.licence.evidence is LicenceEvidence.AGGREGATOR,
    }
    write_text(folder / ORIGIN_NAME, json.dumps(facts, sort_keys=True, indent=2, ensure_ascii=False) + "\n")
    for name, digest in _notices(origin):
        with storage("writing notices to", folder):
            (folder / name).write_bytes(store.notice(digest).read_bytes())


def _write_skill(store: Store, root: Path, place: str, item: _Chosen) -> dict[str, Any]:
    origin = item.origin
    target = root / place
    source = store.skill(origin.digest)
    copy_tree(source, target)
    held = contents(source)
    _copy_links(held.files, source, target)
    redacted = _redact(held.files, target)
    if redacted:
        held = contents(target)
    entry = next(file.sha256 for file in held.files if file.path == item.entry)
    group = place.rpartition("/")[0]
    return {
        "path": f"{place}/{item.entry}",
        "name": origin.name,
        "origin": _origin_of(origin),
        "source_path": f"{origin.path}/{item.entry}".removeprefix("./"),
        "revision": origin.revision,
        "license": origin.licence.spdx,
        "license_evidence": _EVIDENCE.get(origin.licence.evidence, ""),
        "license_statement": origin.licence.statement,
        "lang": item.language,
        "domain": item.domain,
        "sha256": entry.removeprefix(SHA256_PREFIX),
        "digest": held.digest,
        "hub_digest": origin.digest,
        "redacted": redacted,
        "notices": {name: f"{group}/{name}" for name, _ in _notices(origin)},
    }


def _copy_links(files: Iterable[SkillFile], source: Path, target: Path) -> None:
    """Links that stay inside a skill are part of it; `copy_tree` leaves all of them out."""
    for item in files:
        if item.kind is FileKind.SYMLINK:
            with storage("writing to", target):
                (target / item.path).parent.mkdir(parents=True, exist_ok=True)
                (target / item.path).symlink_to((source / item.path).readlink())


def _redact(files: Iterable[SkillFile], folder: Path) -> list[str]:
    """Replace secrets in the text files of a copy; returns the paths that were changed."""
    changed: list[str] = []
    for item in files:
        if item.kind is not FileKind.TEXT:
            continue
        path = folder / item.path
        with storage("redacting", path):
            data = path.read_bytes()
            cleaned = redact(data.decode("utf-8")).encode("utf-8")
            if cleaned != data:
                path.write_bytes(cleaned)
                changed.append(item.path)
    return changed


def _refuse_foreign(out: Path) -> None:
    if (
        out.is_dir()
        and any(out.iterdir())
        and not ((out / INDEX_NAME).is_file() and (out / "skills").is_dir())
    ):
        raise UserError(f"{out} holds something else than an export", hint="give a new folder")
    if out.exists() and not out.is_dir():
        raise UserError(
            f"{out} is no folder", hint="give a folder, or a name that ends in .jsonl or .parquet"
        )


def _replace(staged: Path, out: Path) -> None:
    with storage("moving the export to", out), staged_folder(out.absolute().parent) as grave:
        if out.exists():
            out.rename(grave / "old")
        staged.chmod(0o755)
        staged.rename(out)
