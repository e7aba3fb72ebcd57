"""[1] Folder -> Skill: understand a bundle tolerantly, and say everything that was odd about it."""

import os
import re
from pathlib import Path

from skill2env.ingest.entry import find_entry, is_entry_name, read_entry, skill_folder
from skill2env.ingest.fields import (
    as_text,
    check_fields,
    corrected,
    read_description,
    read_name,
    slugify,
)
from skill2env.ingest.file_signs import SCRIPT_ENDINGS, shortened
from skill2env.ingest.front_matter import FrontMatter
from skill2env.ingest.front_matter import read as read_front_matter
from skill2env.ingest.inventory import Inventory, take_inventory
from skill2env.ingest.language import guess_language
from skill2env.ingest.licences import find_licence
from skill2env.ingest.limits import IngestLimits
from skill2env.ingest.quirks import note, ordered
from skill2env.ingest.references import check_references
from skill2env.ingest.screening import needs, screen
from skill2env.ingest.text import Decoded, clean, decode
from skill2env.ingest.triggers import find_triggers
from skill2env.ingest.upstream import upstream_verdict
from skill2env.records import Diagnostic, FileKind, Severity, Skill

_STUB_BYTES = 200
_HUGE_BYTES, _HUGE_LINES, _HUGE_LINE_CHARS = 100_000, 500, 5_000
_FIXTURE = re.compile(r"(?:^|/)(?:[\w-]*fixtures?|__tests__|testdata|test-data)(?:/|$)", re.IGNORECASE)
_PROSE_ENDINGS = (".md", ".txt", ".rst", ".mdx")


def load_skill(
    path: Path,
    *,
    limits: IngestLimits | None = None,
    origin: str = "",
    upstream: bool = False,
    within: Path | None = None,
) -> Skill:
    """Understand one skill.

    Args:
        path: the skill's folder, or its entry file. The folder may be a link; links inside are never followed out.
        limits: what of the bundle is taken; see `IngestLimits`.
        origin: where it came from. When empty, the package that the folder was unpacked from, if one is around it.
        upstream: also report the verdict of the specification's reference validator, when that is installed. Off by
            default, so that a record does not depend on what is installed.
        within: root of the source that the skill is part of, free of links: nothing above it is looked at.

    Returns:
        The skill, however odd: `blocking` names what makes one unusable. Neither the digest nor the files depend on
        where the folder lies; the licence and a few diagnostics do, because they look around it.

    Raises:
        UserError: nothing there is a skill, or it cannot be read; the hint says what was found.
    """
    limits = limits or IngestLimits()
    root = Path(os.path.realpath(skill_folder(path)))
    entry, found = find_entry(root)
    data, more = read_entry(root / entry, limits.entry_bytes)
    if more:
        found.append(note("entry-cut", f"{limits.entry_bytes:,} bytes are read", entry))
    decoded = decode(data)
    found += _about_bytes(decoded, data, entry)
    text = "" if decoded.binary else decoded.text
    matter = read_front_matter(text, entry)
    found += matter.found
    fields = corrected(matter.values, found, entry)
    check_fields(fields, matter, found, entry)
    name = read_name(fields, root.name, found, entry)
    inventory = take_inventory(root, entry, limits)
    found += inventory.found
    references = check_references(text, (item.path for item in inventory.files))
    for code, paths in (
        ("missing-reference", references.missing),
        ("reference-case", references.misspelled),
        ("outside-reference", references.outside),
    ):
        if paths:
            found.append(note(code, shortened(list(paths)), entry))
    description = read_description(fields, matter, found, entry)
    if not decoded.binary:
        found += _about_words(text, matter, entry, inventory)
    found += _about_place(root, entry, inventory)
    terms = find_licence(root, entry, as_text(fields.get("license")), within)
    if upstream:
        found += upstream_verdict(root, entry, text)
    return Skill(
        name=name,
        slug=slugify(name),
        description=description,
        triggers=find_triggers(description, matter.values, matter.body),
        body=matter.body,
        entry=entry,
        front_matter=matter.values,
        files=inventory.files,
        missing_references=references.missing,
        licence=terms.licence,
        origin=clean(origin or terms.package),
        digest=inventory.digest,
        diagnostics=ordered([*found, *terms.found]),
    )


def blocking(skill: Skill) -> tuple[Diagnostic, ...]:
    """The diagnostics that make a skill unusable: it is empty, is no text, or looks like a lure for malware."""
    return tuple(item for item in skill.diagnostics if item.severity is Severity.ERROR)


def is_fixture(path: str) -> bool:
    """Whether a path looks like that of a test fixture."""
    return bool(_FIXTURE.search(path))


def _about_bytes(decoded: Decoded, data: bytes, entry: str) -> list[Diagnostic]:
    if decoded.binary:
        return [note("not-text", where=entry)]
    found: list[Diagnostic] = []
    if decoded.encoding != "utf-8":
        found.append(note("not-utf8", decoded.encoding, entry))
    if decoded.byte_order_mark:
        found.append(note("byte-order-mark", where=entry))
    if decoded.line_ends:
        found.append(note("line-ends", decoded.line_ends, entry))
    if decoded.control_characters:
        found.append(note("control-characters", f"{decoded.control_characters} of them", entry))
    lines = decoded.text.split("\n")
    longest = max(map(len, lines))
    if len(data) > _HUGE_BYTES or len(lines) > _HUGE_LINES or longest > _HUGE_LINE_CHARS:
        found.append(
            note("huge-entry", f"{len(data):,} bytes, {len(lines)} lines, the longest {longest:,}", entry)
        )
    return found


def _about_words(text: str, matter: FrontMatter, entry: str, inventory: Inventory) -> list[Diagnostic]:
    if not text.strip():
        return [note("empty-file", where=entry)]
    found = list(screen(text, entry))
    for path, words in sorted(inventory.texts.items()):
        found += screen(words, path, prose=path.lower().endswith(_PROSE_ENDINGS))
    size = len(matter.body.strip().encode("utf-8", "replace"))
    if size < _STUB_BYTES:
        found.append(note("stub", f"{size} bytes", entry))
    language = guess_language(matter.body)
    if language not in {"en", ""}:
        found.append(note("not-english", f"probably {language}", entry))
    wanted = needs(text)
    if wanted:
        found.append(note("external-need", ", ".join(wanted), entry))
    scripts = any(
        item.path.lower().endswith(SCRIPT_ENDINGS) and item.kind is FileKind.TEXT for item in inventory.files
    )
    if not scripts and "```" not in text and "~~~" not in text:
        found.append(note("no-code", where=entry))
    return found


def _about_place(root: Path, entry: str, inventory: Inventory) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    around = "/".join(root.parts[-5:])
    if is_fixture(around):
        found.append(note("test-fixture", around))
    nested = [
        item.path.rpartition("/")[0]
        for item in inventory.files
        if item.path != entry and "/" in item.path and is_entry_name(item.path.rpartition("/")[2])
    ]
    if nested:
        found.append(note("nested-skill", shortened(nested), sorted(nested)[0]))
    return found
