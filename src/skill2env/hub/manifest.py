"""The hub's manifest: pins of every source and every skill, in bytes that are equal for equal corpora.

One JSON object a line, keys sorted: a head, then the sources by id, then the skills by source and path. A source line
holds everything needed to fetch it again (kind, location, revision, sha256) and a digest over the skills it gave.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from skill2env.errors import UserError
from skill2env.hub.database import Database
from skill2env.hub.records import Origin, SourceSpec
from skill2env.records import canonical_json, digest_of
from skill2env.store.files import write_bytes

FORMAT = "skill2env-hub-manifest/1"
_MAX_BYTES = 2 * 2**30


@dataclass(frozen=True, slots=True)
class Pin:
    """One skill as a manifest pins it."""

    source: str
    path: str
    digest: str
    licence: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a manifest says."""

    sources: tuple[SourceSpec, ...]
    pins: tuple[Pin, ...]


def manifest_lines(database: Database) -> Iterator[str]:
    """Lines of the manifest of what an index holds.

    Raises:
        InfraError: boundary ``storage``.
    """
    yield canonical_json({"format": FORMAT})
    places = database.rows("SELECT record FROM origins ORDER BY source, path")
    pins = {
        source: [_pin(origin) for origin in group]
        for source, group in groupby(
            (Origin.model_validate_json(row["record"]) for row in places), key=lambda origin: origin.source
        )
    }
    rows = {row["id"]: row for row in database.rows("SELECT id, spec, revision, sha256 FROM sources")}
    for source in sorted(pins):
        spec = json.loads(rows[source]["spec"])
        pinned = {
            "id": source,
            "kind": spec["kind"],
            "location": spec["location"],
            "revision": spec["revision"] or _portable(rows[source]["revision"]),
            "sha256": rows[source]["sha256"],
            "include": spec["include"],
            "exclude": spec["exclude"],
            "collection": spec["collection"],
        }
        content = digest_of([[pin.path, pin.digest] for pin in pins[source]])
        yield canonical_json({"source": pinned, "skills": len(pins[source]), "content": content})
    for source in sorted(pins):
        for pin in pins[source]:
            yield canonical_json({
                "skill": pin.digest,
                "source": pin.source,
                "path": pin.path,
                "licence": pin.licence,
                "evidence": pin.evidence,
            })  # fmt: skip


def _portable(revision: str) -> str:
    """A commit pins a repository; digests of trees and archives are written as ``content`` and ``sha256``."""
    return "" if ":" in revision else revision


def _pin(origin: Origin) -> Pin:
    licence = origin.licence
    return Pin(origin.source, origin.path, origin.digest, licence.spdx, licence.evidence.value)


def write_manifest(database: Database, path: Path) -> bool:
    """Write the manifest when it differs from what is there; returns whether it did.

    Raises:
        InfraError: boundary ``storage``.
    """
    data = "".join(f"{line}\n" for line in manifest_lines(database)).encode("utf-8", "backslashreplace")
    try:
        if path.read_bytes() == data:
            return False
    except OSError:
        pass  # not there yet, or unreadable: write_bytes says why when it cannot be replaced
    write_bytes(path, data)
    return True


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Raises:
        UserError: it cannot be read, or is no manifest of this format; the message names the line.
    """
    sources: list[SourceSpec] = []
    pins: list[Pin] = []
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UserError(f"{path} is too large for a manifest")
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                _read_line(line, number, path, sources, pins)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", hint="give a hub's manifest.jsonl") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is no manifest: it is not UTF-8") from None
    if not sources and not pins:
        raise UserError(f"{path} pins nothing", hint="give a hub's manifest.jsonl")
    return Manifest(tuple(sources), tuple(pins))


def _read_line(line: str, number: int, path: Path, sources: list[SourceSpec], pins: list[Pin]) -> None:
    problem = ""
    try:
        data: Mapping[str, Any] = json.loads(line)
        if number == 1:
            problem = "" if data["format"] == FORMAT else f"its format is not {FORMAT}"
        elif "skill" in data:
            names = ("source", "path", "skill", "licence", "evidence")
            pins.append(Pin(*(str(data[name]) for name in names)))
        else:
            sources.append(SourceSpec.model_validate(data["source"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        first = error.errors()[0]["msg"] if isinstance(error, ValidationError) else "not understood"
        problem = f"line {number}: {first}"
    if problem:
        raise UserError(f"{path} is no manifest: {problem}", hint="give a hub's manifest.jsonl")


def differences(pinned: Iterable[Pin], database: Database) -> list[str]:
    """What of a manifest an index lacks, has otherwise, or has too much: one sentence each, sorted.

    Raises:
        InfraError: boundary ``storage``.
    """
    wanted = {(pin.source, pin.path): pin.digest for pin in pinned}
    rows = database.rows("SELECT source, path, digest FROM origins ORDER BY source, path")
    found = {(row["source"], row["path"]): row["digest"] for row in rows}
    told: list[str] = []
    for place in sorted(wanted.keys() | found.keys()):
        name = ":".join(place)
        if place not in found:
            told.append(f"{name} is missing")
        elif place not in wanted:
            told.append(f"{name} is not in the manifest")
        elif found[place] != wanted[place]:
            told.append(f"{name} has {found[place]}, not {wanted[place]}")
    return told
