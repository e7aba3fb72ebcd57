"""What a skill's own ``evals/evals.json`` offers: what people ask of it, and files that such requests come with.

The texts are strangers': they are quoted in pieces and never followed. A file that is malformed offers nothing.
"""

import json
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

PLACE = "evals/evals.json"
MAX_BYTES = 512 * 1024
MAX_REQUESTS = 24
MAX_FILES = 24
MIN_CHARS, MAX_CHARS = 24, 200
_PROMPTS = ("prompt", "question")
"""Keys of the request in the two dialects that are in use."""
_STRANGE = frozenset('`<>{}[]\\|"')


@dataclass(frozen=True, slots=True)
class Seeds:
    """Requests and files."""

    requests: tuple[str, ...] = ()
    """The first sentence of each, as it stands; those that are short and plain enough to be quoted."""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Base name -> text of the files that requests name, sorted."""


def read_seeds(texts: Mapping[str, str]) -> Seeds:
    """Take what can be used from a skill's text files, by path; nothing when there is none, or it is malformed."""
    text = texts.get(PLACE, "")
    if not text or len(text) > MAX_BYTES:
        return Seeds()
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return Seeds()
    listed: Any = cast("dict[str, Any]", data).get("evals") if isinstance(data, dict) else data
    if not isinstance(listed, list):
        return Seeds()
    requests: dict[str, None] = {}
    files: dict[str, str] = {}
    for item in cast("list[Any]", listed):
        if isinstance(item, dict):
            entry = cast("dict[str, Any]", item)
            request = next((_sentence(entry[key]) for key in _PROMPTS if key in entry), "")
            if request:
                requests.setdefault(request)
            files.update(_files(entry.get("files"), texts))
    return Seeds(tuple(requests)[:MAX_REQUESTS], dict(sorted(files.items())[:MAX_FILES]))


def _sentence(value: Any) -> str:
    """First sentence of a request, when it can be quoted in running text; else empty."""
    if not isinstance(value, str):
        return ""
    text = " ".join(value.split())
    ends = [at + 1 for mark in (". ", "! ", "? ") if (at := text.find(mark)) >= 0]
    first = text[: min(ends, default=len(text))]
    plain = first.isprintable() and not _STRANGE & set(first) and "://" not in first
    return first if plain and MIN_CHARS <= len(first) <= MAX_CHARS else ""


def _files(value: Any, texts: Mapping[str, str]) -> dict[str, str]:
    """Text files that an eval names, relative to the skill or to ``evals/``."""
    found: dict[str, str] = {}
    for name in cast("list[Any]", value) if isinstance(value, list) else []:
        if isinstance(name, str):
            places = (posixpath.normpath(name), posixpath.normpath(posixpath.join("evals", name)))
            text = next((texts[place] for place in places if place in texts), None)
            if text is not None:
                found[posixpath.basename(name)] = text
    return found
