"""The fields of the front matter: name, description and the rest of the specification, taken with what they deserve."""

import hashlib
import re
import unicodedata
from typing import Any, cast

from skill2env.ingest.front_matter import FrontMatter
from skill2env.ingest.quirks import note
from skill2env.ingest.text import clean
from skill2env.records import Diagnostic

SPECIFIED = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
_TEXT_FIELDS = ("name", "description", "license", "compatibility")
_CLIENT = ("argument-hint", "user-invocable", "disable-model-invocation", "when_to_use")
"""Keys of clients that are well known enough to be misspelled."""
_MISSPELLED = {
    "user-invokable": "user-invocable",
    "user_invocable": "user-invocable",
    "licence": "license",
    "licenses": "license",
    "desc": "description",
    "title": "name",
    "compatability": "compatibility",
    "tools-allowed": "allowed-tools",
}
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][\w-]*(?:\s[^<>\n]{0,80})?/?>")
MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 1024
MAX_COMPATIBILITY_CHARS = 500


def slugify(name: str) -> str:
    """``[a-z0-9-]{1,64}`` made from any name; without a Latin letter or digit, ``skill-`` and a hash."""
    plain = unicodedata.normalize("NFKD", name.casefold()).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:MAX_NAME_CHARS].strip("-")
    return slug or f"skill-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


def as_text(value: Any) -> str:
    """Any JSON value as one text: lists joined by commas, maps as ``key: value``, None as nothing."""
    if isinstance(value, list):
        return ", ".join(filter(None, map(as_text, value)))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value)
        return ", ".join(f"{key}: {as_text(inner)}" for key, inner in pairs.items())
    return "" if value is None else str(value)


def corrected(values: dict[str, Any], found: list[Diagnostic], where: str) -> dict[str, Any]:
    """Fields of the specification under their right names; misspelled keys stand in for missing ones."""
    result = {key: value for key, value in values.items() if key in SPECIFIED}
    for key in sorted(values):
        right = _meant(key)
        if right and right not in values:
            found.append(note("misspelled-key", f"{key} for {right}", where))
            if right in SPECIFIED:
                result.setdefault(right, values[key])
    unknown = sorted(key for key in values if key not in SPECIFIED)
    if unknown:
        found.append(note("unknown-key", ", ".join(unknown[:8]), where))
    return result


def _meant(key: str) -> str:
    """The known key that a key is a misspelling of; empty when it is known or something else."""
    if key in SPECIFIED or key in _CLIENT:
        return ""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", key).lower().replace("_", "-")
    if plain in _MISSPELLED:
        return _MISSPELLED[plain]
    known = (*SPECIFIED, *_CLIENT)
    for right in known:
        if plain == right.replace("_", "-"):
            return right
    return next((right for right in known if len(right) > 6 and _one_edit(plain, right)), "")


def _one_edit(one: str, other: str) -> bool:
    """Whether one insertion, deletion, replacement or swap of neighbours makes two words equal."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    a, b = one[start:], other[start:]
    return a[1:] == b or a == b[1:] or a[1:] == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


def read_name(fields: dict[str, Any], folder: str, found: list[Diagnostic], where: str) -> str:
    """The declared name, or the folder's; what is odd about it goes to `found`."""
    name = " ".join(as_text(fields.get("name")).split())
    if not name:
        found.append(note("missing-name", folder, where))
        return clean(folder) or "skill"
    hazard = any(part in name for part in ("/", "\\", "..")) or name[0] in ".~-" or _RESERVED.fullmatch(name)
    if hazard:
        found.append(note("path-in-name", name[:80], where))
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME_CHARS:
        found.append(note("invalid-name", name[:80], where))
    if unicodedata.normalize("NFKC", name) != unicodedata.normalize("NFKC", folder):
        found.append(note("name-differs-from-folder", f"{name[:60]} in {folder[:60]}", where))
    return name[:1000]


def read_description(fields: dict[str, Any], matter: FrontMatter, found: list[Diagnostic], where: str) -> str:
    """The declared description, or the first paragraph of the text."""
    description = as_text(fields.get("description")).strip()
    if not description:
        found.append(note("missing-description", where=where))
        return first_paragraph(matter.body)
    if len(description) > MAX_DESCRIPTION_CHARS:
        found.append(note("long-description", f"{len(description):,} characters", where))
    tag = _TAG.search(description)
    if tag:
        found.append(note("markup-in-description", tag[0][:60], where))
    if "\n" in description or "description" in matter.block.multi_line:
        found.append(note("multi-line-description", where=where))
    return description


def first_paragraph(body: str) -> str:
    """The first prose of a text as one line of at most 1,024 characters; empty when there is none."""
    fenced = False
    words: list[str] = []
    for line in body.split("\n"):
        text = line.strip()
        if text.startswith(("```", "~~~")):
            fenced = not fenced
        prose = bool(text) and not fenced and not text.startswith(("#", "|", "<", "```", "~~~", "---", "!["))
        if prose:
            words.append(text)
        elif words:
            if len(" ".join(words)) >= 20:
                break
            words = []
    return " ".join(" ".join(words).split())[:MAX_DESCRIPTION_CHARS]


def check_fields(fields: dict[str, Any], matter: FrontMatter, found: list[Diagnostic], where: str) -> None:
    """Note what the specification would not accept about the fields."""
    for key in _TEXT_FIELDS:
        kind = matter.block.not_text.get(key, "")
        if kind and kind != "null":
            found.append(note("non-string-field", f"{key} is of type {kind}", where))
    tools = fields.get("allowed-tools")
    # Commas inside brackets belong to one tool's own arguments.
    if isinstance(tools, list) or (isinstance(tools, str) and "," in re.sub(r"\([^)]*\)", "", tools)):
        found.append(note("allowed-tools-form", as_text(tools)[:80], where))
    metadata: Any = fields.get("metadata")
    if metadata is not None and not (
        isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values())  # pyright: ignore[reportUnknownVariableType]
    ):
        found.append(note("metadata-form", where=where))
    compatibility = fields.get("compatibility")
    if "compatibility" in fields and not (
        isinstance(compatibility, str) and 0 < len(compatibility) <= MAX_COMPATIBILITY_CHARS
    ):
        found.append(note("compatibility-form", where=where))
