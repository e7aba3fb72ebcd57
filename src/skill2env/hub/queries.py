"""Reading the index: search with filters, one skill with everything known, counts."""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from skill2env.errors import UserError
from skill2env.hub.database import Database
from skill2env.hub.records import Origin
from skill2env.records import SHA256_PREFIX

LISTED = (
    "digest, name, description, language, files, size, scripts, missing, verdict, domain, confidence, source, path,"
    " spdx, evidence, allowed, representative, likeness, jaccard, chosen"
)
_SHORT = 6
"""Least hex digits that name a digest."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which skills are wanted; what is empty does not matter."""

    words: str = ""
    """All of these words in name, description or body; ``"a phrase"``, ``begin*`` and ``name:word`` are understood."""
    sources: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    """``unsure`` for those without."""
    licences: tuple[str, ...] = ()
    """SPDX expressions; ``none`` for those without."""
    languages: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    """Rules of which at least one must have raised a flag."""
    without_flags: tuple[str, ...] = ()
    scripts: bool | None = None
    """Whether it must, or must not, have scripts."""
    allowed: bool | None = None
    """Whether the policy must, or must not, allow it."""
    copies: bool | None = None
    """Whether it must be a copy of another one, or must stand for itself."""
    chosen: bool | None = None
    """Whether it must be, or must not be, what an export takes."""


@dataclass(slots=True)
class _Where:
    parts: list[str] = field(default_factory=list[str])
    values: list[Any] = field(default_factory=list[Any])

    def add(self, part: str, *values: Any) -> None:
        self.parts.append(part)
        self.values += values

    def among(self, column: str, wanted: tuple[str, ...], empty: str) -> None:
        if wanted:
            marks = ", ".join("?" * len(wanted))
            self.add(f"{column} IN ({marks})", *("" if value == empty else value for value in wanted))

    def flag(self, column: str, wanted: bool | None) -> None:
        if wanted is not None:
            self.add(f"({column}) = ?", int(wanted))

    @property
    def sql(self) -> str:
        return " AND ".join(self.parts) or "1"


def _where(wanted: Filter) -> _Where:
    where = _Where()
    where.among("domain", wanted.domains, "unsure")
    where.among("spdx", wanted.licences, "none")
    where.among("language", wanted.languages, "unknown")
    where.among("verdict", wanted.verdicts, "none")
    where.flag("scripts > 0", wanted.scripts)
    where.flag("allowed", wanted.allowed)
    where.flag("representative <> digest", wanted.copies)
    where.flag("chosen", wanted.chosen)
    for names, form in ((wanted.flags, "EXISTS"), (wanted.without_flags, "NOT EXISTS")):
        if names:
            marks = ", ".join("?" * len(names))
            where.add(f"{form} (SELECT 1 FROM flags WHERE skill = skills.id AND rule IN ({marks}))", *names)
    if wanted.sources:
        marks = ", ".join("?" * len(wanted.sources))
        places = f"SELECT 1 FROM origins WHERE origins.digest = skills.digest AND origins.source IN ({marks})"
        where.add(f"EXISTS ({places})", *wanted.sources)
    return where


def find(
    database: Database, wanted: Filter, *, limit: int = -1, columns: str = LISTED
) -> Iterator[dict[str, Any]]:
    """Skills that pass a filter: by relevance when words are given, else by name and digest.

    Raises:
        UserError: the words are no search.
        InfraError: boundary ``storage``.
    """
    where = _where(wanted)
    if wanted.words:
        listed = ", ".join(f"skills.{name.strip()}" for name in columns.split(","))
        sql = (
            f"SELECT {listed} FROM texts JOIN skills ON skills.id = texts.rowid WHERE texts MATCH ? AND {where.sql}"
            " ORDER BY bm25(texts, 10.0, 4.0, 1.0), skills.digest LIMIT ?"
        )
        values = [match_of(wanted.words), *where.values, limit]
    else:
        sql = f"SELECT {columns} FROM skills WHERE {where.sql} ORDER BY name, digest LIMIT ?"
        values = [*where.values, limit]
    try:
        yield from database.rows(sql, values)
    except Exception as error:
        if isinstance(error.__cause__, sqlite3.OperationalError) and "fts5" in str(error.__cause__):
            raise UserError(f"not understood as a search: {wanted.words}", hint="give plain words") from None
        raise


def match_of(words: str) -> str:
    """FTS5 query of what a person typed: every word must occur, in any form of quoting that leaves no syntax error.

    Raises:
        UserError: there is no word in it.
    """
    terms: list[str] = []
    for at, piece in enumerate(words.split('"')):
        if at % 2:
            terms.append(f'"{piece}"' if piece.strip() else "")
            continue
        for word in piece.split():
            column, colon, rest = word.partition(":")
            known = bool(colon) and column in ("name", "description", "body") and bool(rest)
            plain = rest if known else word
            star = "*" if plain.endswith("*") and len(plain) > 1 else ""
            terms.append((f"{column} : " if known else "") + f'"{plain.rstrip("*")}"' + star)
    kept = [term for term in terms if any(map(str.isalnum, term))]
    if not kept:
        raise UserError(f"nothing to search for in {words!r}", hint="give one or more words")
    return " AND ".join(kept)


def identify(database: Database, text: str) -> list[str]:
    """Digests of what a person means: a digest or its beginning, a place ``SOURCE:PATH`` or a path, or a name.

    Raises:
        InfraError: boundary ``storage``.
    """
    plain = text.removeprefix(SHA256_PREFIX).lower()
    if len(plain) >= _SHORT and all(char in "0123456789abcdef" for char in plain):
        found = database.rows(
            "SELECT digest FROM skills WHERE digest >= ? AND digest < ? ORDER BY digest LIMIT 100",
            (SHA256_PREFIX + plain, SHA256_PREFIX + plain + "g"),
        )
        digests = [row["digest"] for row in found]
        if digests:
            return digests
    source, colon, path = text.partition(":")
    path = (path if colon else text).removesuffix("/SKILL.md").rstrip("/")
    found = database.rows(
        "SELECT digest FROM origins WHERE path = ? AND (? OR source = ?)"
        " UNION SELECT digest FROM skills WHERE name = ? ORDER BY digest LIMIT 100",
        (path, not colon, source, text),
    )
    return [row["digest"] for row in found]


@dataclass(frozen=True, slots=True)
class Known:
    """Everything that the index holds about one content."""

    facts: dict[str, Any]
    origins: tuple[Origin, ...]
    flags: tuple[dict[str, Any], ...]
    copies: tuple[dict[str, Any], ...]
    """Members of its cluster, itself left out."""


def known(database: Database, digest: str) -> Known | None:
    """What is known of a content; None when it is not in the index.

    Raises:
        InfraError: boundary ``storage``.
    """
    for row in database.rows("SELECT * FROM skills WHERE digest = ?", (digest,)):
        number = row.pop("id")
        row["diagnostics"] = json.loads(row["diagnostics"])
        places = database.rows("SELECT record FROM origins WHERE digest = ? ORDER BY source, path", (digest,))
        flags = database.rows(
            "SELECT rule, topic, verdict, score, file, start, stop, excerpt FROM flags WHERE skill = ? ORDER BY rowid",
            (number,),
        )
        copies = database.rows(
            "SELECT digest, name, source, path, likeness, jaccard FROM skills"
            " WHERE representative = ? AND representative <> '' AND digest <> ? ORDER BY jaccard DESC, digest",
            (row["representative"], digest),
        )
        origins = tuple(Origin.model_validate_json(place["record"]) for place in places)
        return Known(row, origins, tuple(flags), tuple(copies))
    return None


COUNTED = ("verdict", "domain", "language", "spdx", "evidence")


def stats(database: Database) -> dict[str, Any]:
    """Counts of everything, as plain data.

    Raises:
        InfraError: boundary ``storage``.
    """
    totals = next(
        iter(
            database.rows(
                "SELECT count(*) AS skills, coalesce(sum(size), 0) AS bytes, coalesce(sum(files), 0) AS files,"
                " coalesce(sum(scripts > 0), 0) AS with_scripts, coalesce(sum(missing > 0), 0) AS with_missing_files,"
                " coalesce(sum(allowed), 0) AS allowed, coalesce(sum(chosen), 0) AS chosen,"
                " coalesce(sum(representative <> '' AND representative <> digest), 0) AS copies,"
                " coalesce(sum(likeness = 'exact'), 0) AS exact_copies,"
                " coalesce(sum(likeness = 'near'), 0) AS near_copies FROM skills"
            )
        )
    )
    found: dict[str, Any] = {
        **totals,
        "places": database.value("SELECT count(*) FROM origins"),
        "clusters": database.value(
            "SELECT count(DISTINCT representative) FROM skills WHERE representative <> digest"
        ),
    }
    for column in COUNTED:
        rows = database.rows(
            f"SELECT {column} AS what, count(*) AS n FROM skills GROUP BY 1 ORDER BY n DESC, what"
        )
        found[f"by_{column}"] = {row["what"]: row["n"] for row in rows}
    licences = database.rows(
        "SELECT spdx, evidence, allowed, count(*) AS skills FROM skills GROUP BY 1, 2, 3 ORDER BY skills DESC, 1, 2"
    )
    found["licences"] = list(licences)
    flags = database.rows(
        "SELECT rule, count(DISTINCT skill) AS n FROM flags GROUP BY 1 ORDER BY n DESC, rule"
    )
    found["by_flag"] = {row["rule"]: row["n"] for row in flags}
    found["sources"] = list(
        database.rows(
            "SELECT id, status, revision, error, (SELECT count(*) FROM origins WHERE source = sources.id) AS places,"
            " (SELECT count(*) FROM skills WHERE source = sources.id) AS skills,"
            " (SELECT count(*) FROM skills WHERE source = sources.id AND chosen = 1) AS chosen,"
            " json_array_length(diagnostics) AS left_out FROM sources ORDER BY id"
        )
    )
    return found
