"""Everything that is known of a skill, and why it was decided so, as plain data."""

import os
from pathlib import Path
from typing import Any

from skill2env.domains import load_classifier
from skill2env.errors import UserError
from skill2env.hub.database import Database
from skill2env.hub.folder import Hub
from skill2env.hub.queries import Known, identify, known
from skill2env.hub.store import Store
from skill2env.ingest import load_skill

_MOST = 20


def explain(hub: Hub, text: str) -> list[dict[str, Any]]:
    """What is known of the skills that a person means; see `queries.identify`. A skill's folder on disk will do too.

    Returns:
        One document a content, at least one, at most 20.

    Raises:
        UserError: the hub knows nothing of the kind; the hint says what it knows instead.
        InfraError: boundary ``storage``.
    """
    with Database.read(hub.index) as database:
        digests = identify(database, text)
        if not digests and os.path.lexists(text):
            digest = load_skill(Path(text)).digest
            digests = [digest] if known(database, digest) else []
        if not digests:
            raise _unknown(database, text)
        found = [known(database, digest) for digest in digests[:_MOST]]
        return [_document(hub, database, item) for item in found if item is not None]


def _unknown(database: Database, text: str) -> UserError:
    """Perhaps it was left out with a reason."""
    source, colon, path = text.partition(":")
    rows = database.rows(
        "SELECT sources.id AS id, value ->> 'message' AS message FROM sources, json_each(sources.diagnostics)"
        " WHERE value ->> 'where' = ? AND (? OR sources.id = ?)",
        (path if colon else text, not colon, source),
    )
    for row in rows:
        return UserError(f"{text} was left out of source {row['id']}: {row['message']}")
    return UserError(
        f"the hub knows no skill {text}",
        hint="give a digest, SOURCE:PATH or a name; `skill2env hub list WORDS` searches",
    )


def _document(hub: Hub, database: Database, item: Known) -> dict[str, Any]:
    facts = item.facts
    digest = facts["digest"]
    copy = facts["representative"] not in ("", digest)
    return {
        "digest": digest,
        "name": facts["name"],
        "description": facts["description"],
        "words": len(facts["body"].split()),
        "language": facts["language"],
        "files": facts["files"],
        "size": facts["size"],
        "scripts": facts["scripts"],
        "missing_references": facts["missing"],
        "folder": str(Store(hub.store).skill(digest)),
        "places": [
            {
                "place": f"{origin.source}:{origin.path}",
                "origin": origin.origin,
                "revision": origin.revision,
                "speaks": (origin.source, origin.path) == (facts["source"], facts["path"]),
                "licence": origin.licence.model_dump(mode="json"),
                "notices": [name for name, _ in origin.notices],
                "fixture": origin.fixture,
            }
            for origin in item.origins
        ],
        "licence": {
            "spdx": facts["spdx"],
            "evidence": facts["evidence"],
            "allowed": bool(facts["allowed"]),
            "reason": facts["licence_reason"],
        },
        "screening": {"verdict": facts["verdict"], "flags": [dict(flag) for flag in item.flags]},
        "copies": {
            "representative": facts["representative"],
            "represented_by": _name_of(database, facts["representative"]) if copy else "",
            "likeness": facts["likeness"],
            "jaccard": facts["jaccard"],
            "others": [dict(other) for other in item.copies],
        },
        "domain": _domain(facts),
        "export": {"chosen": bool(facts["chosen"]), "because": _because(facts, copy=copy)},
        "diagnostics": facts["diagnostics"],
    }


def _domain(facts: dict[str, Any]) -> dict[str, Any]:
    """The domain, and the words that decided it."""
    classifier = load_classifier()
    words = (facts["name"], facts["description"], facts["body"])
    return {
        "domain": facts["domain"],
        "confidence": facts["confidence"],
        "likeliest": classifier.classify(*words).likeliest,
        "words": [{"word": reason.word, "weight": reason.weight} for reason in classifier.explain(*words)],
    }


def _name_of(database: Database, digest: str) -> str:
    row = next(iter(database.rows("SELECT name, source, path FROM skills WHERE digest = ?", (digest,))), None)
    return f"{row['name']} ({row['source']}:{row['path']})" if row else ""


def _because(facts: dict[str, Any], *, copy: bool) -> list[str]:
    """What keeps it out of an export; one sentence that says what lets it in when nothing does."""
    told: list[str] = []
    if not facts["allowed"]:
        told.append(f"The licence policy refuses it: {facts['licence_reason']}")
    if facts["verdict"] != "compile":
        told.append(f"Screening says {facts['verdict'] or 'nothing yet'}.")
    if copy:
        told.append(f"It is {'an exact' if facts['likeness'] == 'exact' else 'a near'} copy.")
    return told or ["The policy allows it, screening says compile, and it stands for itself."]
