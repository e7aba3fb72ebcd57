"""Which files the text of a skill points to, and which of them are not there.

Markdown links count with any path; paths in code spans and commands count only below the folders that skills use for
their own files, because prose also names files of the reader's project.
"""

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote

MAX_TEXT_CHARS = 1_000_000
_OWN_FOLDERS = "scripts|references|reference|assets|templates|examples|resources|workflows|prompts|schemas"
_LINK = re.compile(
    r"!?\[[^\]\n]{0,300}\]\(\s*(?:<([^>\n]{1,300})>|([^)\s]{1,300}))(?:\s+[\"'(][^\n)]*)?\s*\)"
)
_PATH = re.compile(
    rf"(?<![\w/.~${{}}-])((?:\.{{1,2}}/)*(?:{_OWN_FOLDERS})/[\w./-]*[\w-]\.[A-Za-z0-9]{{1,8}})(?![\w/*{{<-])"
)
_UP = re.compile(r"(?<=[`\s(\"'])((?:\.\./)+[\w./-]*[\w-]\.(?:md|py|sh|json|ya?ml|txt))(?=[`\s)\"'#])")
_PLACEHOLDER = re.compile(
    r"[*{}<>$|%]|\.\.\.|\bxxx|path/to|your[-_]|example\.|/foo|\bfoo\b|NAME|YYYY", re.IGNORECASE
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|#|/|~")


@dataclass(frozen=True, slots=True)
class References:
    """Paths the text points to, sorted, relative to the skill's folder."""

    missing: tuple[str, ...] = ()
    misspelled: tuple[str, ...] = ()
    """There, but in another letter case: ``written -> real``."""
    outside: tuple[str, ...] = ()


def check_references(text: str, known: Iterable[str]) -> References:
    """Sort the references of an entry file by whether they can be followed.

    Args:
        text: the entry file.
        known: paths of all files of the folder.
    """
    files = set(known)
    folders = {parent for path in files for parent in _parents(path)}
    folded = {path.casefold(): path for path in (*folders, *files)}
    missing: set[str] = set()
    misspelled: set[str] = set()
    outside: set[str] = set()
    for written in _written(text[:MAX_TEXT_CHARS]):
        path = posixpath.normpath(written)
        if path == ".." or path.startswith("../"):
            outside.add(written)
        elif path in files or path in folders or path == ".":
            continue
        elif path.casefold() in folded:
            misspelled.add(f"{path} -> {folded[path.casefold()]}")
        else:
            missing.add(path)
    return References(tuple(sorted(missing)), tuple(sorted(misspelled)), tuple(sorted(outside)))


def _written(text: str) -> set[str]:
    """Relative paths as written, without fragments, queries, placeholders and addresses."""
    links = {one or other for one, other in _LINK.findall(text)} if "](" in text else set[str]()
    paths = {path for path in links if "/" in path or re.search(r"\.[A-Za-z0-9]{1,8}(?:[#?]|$)", path)}
    # No path goes over the end of a line, and few lines hold a slash.
    paths |= set(_PATH.findall("\n".join(line for line in text.split("\n") if "/" in line)))
    paths |= set(_UP.findall(text)) if "../" in text else set()
    cleaned: set[str] = set()
    for path in paths:
        bare = unquote(path.partition("#")[0].partition("?")[0]).strip()
        if bare and bare.isprintable() and not _SCHEME.match(bare) and not _PLACEHOLDER.search(bare):
            cleaned.add(bare)
    return cleaned


def _parents(path: str) -> Iterable[str]:
    while path := posixpath.dirname(path):
        yield path
