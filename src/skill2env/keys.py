"""Looking for the keys that an author was given, wherever they may have got to.

Looked for are the exact values: plain, reversed, in base64, hex, percent-encoding, rot13 and UTF-16, also wrapped over
lines, in names of files, and in archives and compressed files. What is encrypted or cut into pieces is not found; the
built-in agent therefore never has its key in the sandbox at all.
"""

import base64
import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote

from skill2env.packed import members

LEAST_CHARS = 8
"""Shorter keys are not looked for: they would be found everywhere."""
UNNAMED = "a file whose name is left out"
"""Stands for a name that holds a key itself."""
_DEPTH = 2
"""Archives within archives that are opened."""
_SPACE = b" \t\r\n"
_BETWEEN_HEX = re.compile(rb"\\x|0x|[\s:,%-]")


@dataclass(frozen=True, slots=True)
class Held:
    """A key that was found."""

    where: str
    name: str
    """What the key is called; its value is part of no message."""
    how: str
    """Its encoding, as the end of a sentence; empty when it is plain."""

    @property
    def words(self) -> str:
        """What is said about the place."""
        return f"holds the value of {self.name}{self.how}"


def keys_held(contents: Iterable[tuple[str, bytes]], keys: Mapping[str, str]) -> Iterator[Held]:
    """The keys that `contents` hold, in their order.

    Args:
        contents: (where, bytes).
        keys: what each is called -> its value.
    """
    known = {name: key for name, key in sorted(keys.items()) if len(key) >= LEAST_CHARS}
    if not known:
        return
    for where, data in contents:
        for name, key in known.items():
            how = how_held(data, key)
            if how is not None:
                yield Held(_shown(where, known), name, how)


def _shown(where: str, known: Mapping[str, str]) -> str:
    """A place as messages may name it: names of files can hold keys themselves."""
    data = where.encode("utf-8", "surrogateescape")
    return UNNAMED if any(how_held(data, key) is not None for key in known.values()) else where


def contents_of(folder: Path, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """(where, bytes) of the names of files and of what they and archives in them hold; links are not followed.

    Args:
        folder: what `paths` are relative to.
        paths: files and folders.
    """
    for where in paths:
        yield where, where.encode("utf-8", "surrogateescape")
        path = folder / where
        if path.is_file() and not path.is_symlink():
            yield from _opened(where, path.read_bytes(), 0)


def _opened(where: str, data: bytes, depth: int) -> Iterator[tuple[str, bytes]]:
    yield where, data
    if depth < _DEPTH:
        for member in members(where, data):
            inner = f"{where}!{member.name}"
            yield inner, member.name.encode("utf-8", "replace")
            yield from _opened(inner, member.data, depth + 1)


def how_held(data: bytes, key: str) -> str | None:
    """How `data` holds `key`, as the end of a sentence; None when it does not."""
    plain, joined = data, data.translate(None, _SPACE)
    hexed = _BETWEEN_HEX.sub(b"", data.lower())
    for how, kind, needle in _needles(key):
        if needle in (hexed if kind == "hex" else joined) or (kind == "plain" and needle in plain):
            return how
    return None


@cache
def _needles(key: str) -> tuple[tuple[str, str, bytes], ...]:
    """(how, kind, bytes to look for) of every encoding of a key."""
    found: list[tuple[str, str, bytes]] = []
    for turn, text in (("", key), (" backwards", key[::-1])):
        data = text.encode()
        found.append((turn, "plain", data))
        found += [(f"{turn} in base64", "plain", core) for core in _base64_cores(data)]
        found.append((f"{turn} in hex", "hex", data.hex().encode()))
        found.append((f"{turn} percent-encoded", "plain", quote(text, safe="").encode()))
    found.append((" in rot13", "plain", codecs.encode(key, "rot13").encode()))
    found += [(" in UTF-16", "plain", key.encode(kind)) for kind in ("utf-16-le", "utf-16-be")]
    return tuple(found)


def _base64_cores(data: bytes) -> Iterator[bytes]:
    """What base64 of any text around `data` has in common, for each of three positions and both alphabets."""
    for before in range(3):
        first = -(-before * 8 // 6)
        last = (before + len(data)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(b"\0" * before + data)[first:last]
