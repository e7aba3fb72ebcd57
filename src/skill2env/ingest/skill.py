"""[1] Folder -> Skill: understand a bundle tolerantly, and say everything that was odd about it."""

import os
import re
import unicodedata
from pathlib import Path, PurePosixPath
from typing import Any

from skill2env.errors import UserError
from skill2env.ingest import content, front_matter
from skill2env.ingest.inventory import IngestLimits, take_inventory
from skill2env.ingest.licences import find_licence
from skill2env.ingest.quirks import note
from skill2env.ingest.text import Decoded, decode
from skill2env.ingest.upstream import upstream_verdict
from skill2env.records import Diagnostic, FileKind, Skill

ENTRY = "SKILL.md"
KNOWN_KEYS = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})
CLIENT_KEYS = frozenset(
    "version author tags requires domain homepage argument-hint triggers user-invocable when_to_use when-to-use disable-model-invocation model hooks context agent category keywords origin source".split()
)
_MISSPELLED = {
    "user-invokable": "user-invocable", "allowed_tools": "allowed-tools", "allowedtools": "allowed-tools", "licence": "license", "descripton": "description",
    "desc": "description", "title": "name", "argument_hint": "argument-hint", "arguments-hint": "argument-hint", "compatability": "compatibility",
}  # fmt: skip
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_STUB_CHARS = 200
_FIXTURE = re.compile(
    r"(?:^|/)(?:tests?|fixtures?|templates?|testdata|__tests__|malicious)(?:/|$)", re.IGNORECASE
)


def load_skill(
    path: Path, *, limits: IngestLimits | None = None, origin: str = "", upstream: bool = False
) -> Skill:
    """Understand one skill.

    Args:
        path: the skill's folder, or its entry file.
        limits: what of the bundle is taken.
        origin: where it came from, kept in the record.
        upstream: also ask the specification's reference validator (slow, information only).

    Raises:
        UserError: nothing there is a skill; the hint says what was found.
    """
    limits = limits or IngestLimits()
    root = path.parent if path.is_file() and path.name.lower() == ENTRY.lower() else path
    entry, found = find_entry(root)
    decoded = decode(_read_entry(root / entry, limits))
    text = decoded.text
    found += _byte_oddities(decoded, entry)
    matter = front_matter.read(text, entry)
    found += matter.found
    if not text.strip():
        found.append(note("empty-file", where=entry))
    inventory = take_inventory(root, entry, limits)
    found += inventory.found
    folder = root.absolute().name
    name = _name(matter.values, folder, found)
    description = _description(matter, found)
    _check_fields(matter.values, found)
    found += _check_text(text, matter, root, entry)
    known = {item.path for item in inventory.files}
    texts = {entry: text} | inventory.texts
    missing = _check_references(texts, known, found)
    for where, words in sorted(texts.items()):
        found += content.scan(words, where)
    licence, licence_notes = find_licence(root, matter.values.get("license"))
    found += licence_notes
    if upstream:
        found += upstream_verdict(root)
    return Skill(
        name=name,
        slug=slugify(name) if slugify(name) != "skill" else slugify(folder),
        description=description,
        triggers=content.triggers(description, matter.values, matter.body),
        body=matter.body,
        entry=entry,
        front_matter=matter.values,
        files=tuple(inventory.files),
        missing_references=tuple(missing),
        licence=licence,
        origin=origin,
        digest=inventory.digest,
        diagnostics=tuple(found),
    )


def _byte_oddities(decoded: Decoded, entry: str) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    if decoded.encoding != "utf-8":
        found.append(note("not-utf8", decoded.encoding, entry))
    if decoded.byte_order_mark:
        found.append(note("byte-order-mark", where=entry))
    if decoded.line_ends:
        found.append(note("line-ends", decoded.line_ends, entry))
    if decoded.control_characters:
        found.append(note("control-characters", f"{decoded.control_characters} of them", entry))
    return found


def slugify(name: str) -> str:
    """``[a-z0-9-]{1,64}`` made from any name; ``skill`` when nothing is left."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", ascii_name.lower()).strip("-")[:64].strip("-") or "skill"


def find_entry(root: Path) -> tuple[str, list[Diagnostic]]:
    """(file name of the entry as spelled, diagnostics).

    Raises:
        UserError: no such folder, or no entry file in it.
    """
    if not root.exists():
        raise UserError(f"{root} does not exist", hint="Give the folder that holds SKILL.md.")
    if not root.is_dir():
        raise UserError(
            f"{root} is no skill", hint="Give the folder that holds SKILL.md, or the SKILL.md itself."
        )
    try:
        names = sorted(os.listdir(root))
    except OSError as error:
        raise UserError(
            f"{root} cannot be read: {error.strerror}", hint="Check the permissions of the folder."
        ) from error
    spelled = [n for n in names if n.lower() == ENTRY.lower() and (root / n).is_file()]
    if not spelled:
        raise UserError(f"{root} holds no SKILL.md", hint=_what_is_there(root, names))
    chosen = ENTRY if ENTRY in spelled else spelled[0]
    found: list[Diagnostic] = []
    if len(spelled) > 1:
        found.append(note("several-entries", ", ".join(spelled), chosen))
    if chosen != ENTRY:
        found.append(note("wrong-case", chosen, chosen))
    if (root / chosen).is_symlink():
        real = os.path.realpath(root / chosen)
        if not real.startswith(os.path.realpath(root) + os.sep):
            raise UserError(
                f"{root / chosen} is a link out of the skill",
                hint="Copy the real file into the folder; links out of a skill are never followed.",
            )
    return chosen, found


def _what_is_there(root: Path, names: list[str]) -> str:
    if not names:
        return "The folder is empty."
    if any(n.lower() == ENTRY.lower() for n in names):
        return "A SKILL.md is there, but it is no regular file (a folder, or a link that leads nowhere)."
    below = sorted(p.parent.name for p in root.glob("*/SKILL.md"))[:3]
    if below:
        return (
            f"Skills lie one level below: {', '.join(below)}. Give one of them, or compile the whole folder."
        )
    other = [n for n in names if n in ("AGENTS.md", "CLAUDE.md", "README.md", "skill-card.md")]
    return (
        f"Found {', '.join(other)} only; a skill needs a SKILL.md."
        if other
        else f"Found {', '.join(names[:5])}."
    )


def _read_entry(path: Path, limits: IngestLimits) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(limits.entry_bytes)
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}", hint="Check the permissions of the file."
        ) from error


def _as_text(values: dict[str, Any], key: str, found: list[Diagnostic]) -> str:
    value = values.get(key)
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    found.append(note("non-string-field", key))
    return ", ".join(str(v) for v in value) if isinstance(value, list) else str(value)


def _name(values: dict[str, Any], folder: str, found: list[Diagnostic]) -> str:
    name = " ".join(_as_text(values, "name", found).split())
    if not name:
        found.append(note("missing-name", folder))
        return folder or "skill"
    if "/" in name or "\\" in name or ".." in name:
        found.append(note("path-in-name", name[:80]))
    if not _NAME.fullmatch(name) or len(name) > 64:
        found.append(note("invalid-name", name[:80]))
    if name != folder:
        found.append(note("name-differs-from-folder", f"{name[:60]} in {folder[:60]}"))
    return name


def _description(matter: front_matter.FrontMatter, found: list[Diagnostic]) -> str:
    description = _as_text(matter.values, "description", found)
    if not description:
        found.append(note("missing-description"))
        return _first_paragraph(matter.body)
    if len(description) > 1024:
        found.append(note("long-description", f"{len(description)} characters"))
    if re.search(r"</?[A-Za-z][\w-]*[^>\n]{0,80}>", description):
        found.append(note("markup-in-description"))
    if "\n" in description:
        found.append(note("multi-line-description"))
    return description


def _first_paragraph(body: str) -> str:
    for block in re.split(r"\n\s*\n", body):
        words = " ".join(
            line for line in block.split("\n") if not line.startswith(("#", "```", "|", "<"))
        ).strip()
        if len(words) > 20:
            return " ".join(words.split())[:1024]
    return ""


def _check_fields(values: dict[str, Any], found: list[Diagnostic]) -> None:
    unknown = sorted(k for k in values if k not in KNOWN_KEYS and k.lower() not in _MISSPELLED)
    if unknown:
        found.append(note("unknown-key", ", ".join(k[:40] for k in unknown[:6])))
    for key in sorted(k for k in values if k.lower() in _MISSPELLED and k not in KNOWN_KEYS | CLIENT_KEYS):
        found.append(note("misspelled-key", f"{key} for {_MISSPELLED[key.lower()]}"))
    tools = values.get("allowed-tools")
    if isinstance(tools, list) or (isinstance(tools, str) and "," in tools):
        found.append(note("allowed-tools-form"))
    metadata = values.get("metadata")
    if metadata is not None and (
        not isinstance(metadata, dict) or any(not isinstance(v, str) for v in metadata.values())
    ):
        found.append(note("metadata-form"))
    compatibility = values.get("compatibility")
    if compatibility is not None and not (isinstance(compatibility, str) and 0 < len(compatibility) <= 500):
        found.append(note("compatibility-form"))


def _check_text(text: str, matter: front_matter.FrontMatter, root: Path, entry: str) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    lines = text.split("\n")
    if len(text) > 100_000 or len(lines) > 500 or any(len(line) > 5000 for line in lines):
        found.append(note("huge-entry", f"{len(text):,} characters, {len(lines)} lines", entry))
    if text.strip() and len(matter.body.strip()) < _STUB_CHARS:
        found.append(note("stub", f"{len(matter.body.strip())} characters", entry))
    if _FIXTURE.search("/".join(root.absolute().parts[-4:])):
        found.append(note("test-fixture", "/".join(root.absolute().parts[-3:])))
    if not content.mostly_english(matter.body):
        found.append(note("not-english", where=entry))
    wanted = content.needs(text)
    if wanted:
        found.append(note("external-need", ", ".join(wanted), entry))
    return found


def _check_references(texts: dict[str, str], known: set[str], found: list[Diagnostic]) -> list[str]:
    """Only documents point with their own folder as base; scripts are scanned for words alone."""
    missing: set[str] = set()
    outside: set[str] = set()
    for where, words in texts.items():
        if not where.lower().endswith(".md"):
            continue
        base = str(PurePosixPath(where).parent)
        for path in content.references(words[: content.MAX_SCAN_CHARS]):
            spelled = [path] if base == "." else [path, f"{base}/{path}"]
            absent = [content.sort_references([s], known) for s in spelled]
            if all(a[0] for a in absent):
                missing.add(absent[-1][0][0])
            elif all(a[1] for a in absent):
                outside.add(path)
    if missing:
        found.append(
            note(
                "missing-reference",
                ", ".join(sorted(missing)[:4])
                + (f" and {len(missing) - 4} more" if len(missing) > 4 else ""),
            )
        )
    if outside:
        found.append(note("outside-reference", ", ".join(sorted(outside)[:4])))
    has_code = any("```" in words for path, words in texts.items() if path.endswith(".md"))
    if not has_code and not any(
        p.endswith((".py", ".sh", ".js", ".ts", ".rb", ".pl", ".r", ".R", ".ps1")) for p in known
    ):
        found.append(note("no-code"))
    return sorted(missing)
