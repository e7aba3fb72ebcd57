"""Runs inside a sandbox on the base image's own Python: look for private content in the layers above the base.

Reads one JSON object from standard input and prints one; imports nothing of skill2env. The layers are data to it:
nothing in them is executed, links are not followed.
"""

import base64
import hashlib
import json
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Private = list[dict[str, Any]]
Hits = list[tuple[str, str, str]]

READ_LIMIT = 64 * 1024 * 1024
TEXT_LIMIT = 8 * 1024 * 1024
PACK_LIMIT = 256 * 1024 * 1024
HIT_LIMIT = 200
GRADER_SHARE = 0.6
HISTORY_SHARE = 0.5
LOOSE_NAME_LENGTH = 38
OFFSET_DELTA, REFERENCE_DELTA = 6, 7
HISTORIES = frozenset(
    {
        ".bash_history",
        ".python_history",
        ".zsh_history",
        ".sh_history",
        ".viminfo",
        ".lesshst",
        ".node_repl_history",
    }
)


def read(path: Path, limit: int) -> bytes | None:
    """Content of a regular file, at most `limit` bytes of it; None otherwise."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as stream:
        return stream.read(limit)


def is_whiteout(path: Path) -> bool:
    """Whether overlayfs, or the archive of an engine, marks the name as deleted."""
    if os.path.lexists(path.parent / (".wh." + path.name)):
        return True
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def is_covered(relative: Path, above: list[Path]) -> bool:
    """Whether a higher layer replaces or deletes the path, or deletes a folder on the way to it."""
    ways = [relative, *relative.parents]
    return any(
        os.path.lexists(layer / relative) or any(is_whiteout(layer / way) for way in ways if way.parts)
        for layer in above
    )


def lines_of(data: bytes) -> set[str]:
    """Stripped lines of a text."""
    return {line.strip() for line in data[:TEXT_LIMIT].decode("utf-8", errors="replace").splitlines()}


def share(wanted: list[str], present: set[str]) -> float:
    """How many of the wanted lines are present, from 0 to 1."""
    return sum(line in present for line in wanted) / len(wanted) if wanted else 0.0


def canonical_digest(data: bytes) -> str:
    """Digest of a text without its layout: JSON by value, lines in any order, blanks left out."""
    text = data.decode("utf-8", errors="replace")
    try:
        plain = json.dumps(json.loads(text), sort_keys=True)
    except (ValueError, RecursionError):
        plain = "\n".join(sorted(filter(None, ("".join(line.split()) for line in text.splitlines()))))
    return hashlib.sha256(plain.encode("utf-8", errors="replace")).hexdigest()


def result_held(data: bytes, private: Private) -> str:
    """Which result a text states, in the same or another layout, or by all of its computed values; else empty."""
    canonical = ""
    words: set[bytes] = set()
    for item in private:
        if item["kind"] != "result" or len(data) > 8 * item["size"] + 256:
            continue
        if item["size"] <= 8 * len(data):
            canonical = canonical or canonical_digest(data)
            if item["canonical"] == canonical:
                return str(item["path"])
        if item["values"]:
            words = words or set(re.findall(rb"[\w.-]*\w", data))
            if all(value.encode() in words for value in item["values"]):
                return str(item["path"])
    return ""


def forms(data: bytes) -> Iterator[bytes]:
    """The content, and what it holds when it is base64 or compressed."""
    yield data
    packed = data
    if re.fullmatch(rb"[A-Za-z0-9+/\s]{24,}={0,2}\s*", data[:TEXT_LIMIT]):
        try:
            packed = base64.b64decode(data[:TEXT_LIMIT])
        except ValueError:
            packed = data
        else:
            yield packed
    if packed[:2] == b"\x1f\x8b":
        try:
            yield zlib.decompressobj(31).decompress(packed, TEXT_LIMIT)
        except zlib.error:
            return


def content_hit(data: bytes, private: Private) -> tuple[str, str] | None:
    """Code and message for one file's content."""
    digest = hashlib.sha256(data).hexdigest()
    for item in private:
        if item["size"] == len(data) and item["sha256"] == digest:
            if item["kind"] == "result":
                return "answer", item["path"]
            code = "leak-answer-name" if item["kind"] == "named" else "leak-content"
            return code, f"is a copy of {item['path']}"
    if b"\0" in data[:4096] or len(data) > TEXT_LIMIT:
        return None
    path = result_held(data, private)
    if path:
        return "answer", path
    present = lines_of(data)
    for item in private:
        least = 2 if item["kind"] == "rubric" else 4
        needed = 1.0 if item["kind"] == "solution" else GRADER_SHARE
        if len(item["lines"]) >= least and share(item["lines"], present) >= needed:
            return "leak-lines", f"holds the lines of {item['path']}"
    return None


def path_hit(relative: Path) -> tuple[str, str] | None:
    """Code and message for one path."""
    if relative.parts[0] in ("tests", "solution") and len(relative.parts) > 1:
        return "leak-path", "lies where the verifier's or the solution's files are put"
    if relative.name in ("solve.sh", "rubric.md"):
        return "leak-path", "has the name of a private file"
    if relative.name in HISTORIES:
        return "history", "is the history of a shell or editor"
    return None


def pack_objects(data: bytes) -> Iterator[bytes]:
    """Inflated entries of a git pack, deltas as they are: inserted text stays readable in them."""
    at, end = 12, len(data) - 20
    while at < end:
        kind = (data[at] >> 4) & 7
        while data[at] & 0x80:
            at += 1
        at += 1
        if kind == OFFSET_DELTA:
            while data[at] & 0x80:
                at += 1
            at += 1
        elif kind == REFERENCE_DELTA:
            at += 20
        inflate = zlib.decompressobj()
        yield inflate.decompress(data[at:], READ_LIMIT)
        if not inflate.eof:
            return
        at = len(data) - len(inflate.unused_data)


def repository_objects(folder: Path) -> Iterator[bytes]:
    """Contents of the objects of a git repository; unreadable ones are left out."""
    for place, _, names in os.walk(folder / "objects"):
        for name in names:
            data = read(Path(place) / name, PACK_LIMIT)
            if data is None:
                continue
            try:
                if name.endswith(".pack"):
                    yield from pack_objects(data)
                elif len(name) == LOOSE_NAME_LENGTH:
                    yield zlib.decompressobj().decompress(data, READ_LIMIT).partition(b"\0")[2]
            except (zlib.error, IndexError):
                continue


def history_hit(folder: Path, private: Private, visible: set[str]) -> tuple[str, str] | None:
    """Whether commits of a repository hold a private file, or what the solution adds to the visible files."""
    wanted = {
        line for item in private if item["kind"] == "solution" for line in item["distinctive"]
    } - visible
    secret = {(item["size"], item["sha256"]): item["path"] for item in private}
    held: set[str] = set()
    for data in repository_objects(folder):
        path = secret.get((len(data), hashlib.sha256(data).hexdigest()))
        if path:
            return "leak-history", f"a commit holds {path}"
        held |= wanted & lines_of(data)
    if len(wanted) >= 2 and len(held) >= max(2, HISTORY_SHARE * len(wanted)):
        return "leak-history", "commits hold the lines that the solution adds"
    return None


def is_repository(folder: Path, names: list[str]) -> bool:
    """Whether a folder is a git repository's own (``.git`` or bare)."""
    return "HEAD" in names and (folder / "objects").is_dir() and (folder / "refs").is_dir()


class Scan:
    """Walks the layers, lowest first."""

    def __init__(self, layers: list[Path], private: Private) -> None:
        self.layers = layers
        self.private = private
        self.hits: Hits = []
        self.repositories: list[tuple[Path, Path]] = []
        self.visible: set[str] = set()
        """Lines of the files that the agent sees."""

    def run(self) -> Hits:
        """All hits, repositories last."""
        for number, layer in enumerate(self.layers):
            self.layer(layer, self.layers[number + 1 :])
        for folder, relative in self.repositories:
            self.add(("history", "is a git repository"), relative)
            self.add(history_hit(folder, self.private, self.visible), relative)
        return self.hits[:HIT_LIMIT]

    def layer(self, layer: Path, above: list[Path]) -> None:
        """Look at one layer."""
        for place, folders, names in os.walk(layer):
            folder = Path(place)
            folders.sort()
            if is_repository(folder, names):
                folders.clear()
                if not is_covered(folder.relative_to(layer), above):
                    self.repositories.append((folder, folder.relative_to(layer)))
                continue
            for name in sorted(names):
                self.file(folder / name, (folder / name).relative_to(layer), above)

    def file(self, path: Path, relative: Path, above: list[Path]) -> None:
        """Look at one file."""
        data = read(path, READ_LIMIT)
        if data is None:
            return
        hits = (content_hit(form, self.private) for form in forms(data))
        found = next((hit for hit in hits if hit is not None), None)
        if is_covered(relative, above):
            self.add(None if found is None else ("leak-hidden-layer", found[1]), relative)
            return
        self.add(found or path_hit(relative), relative)
        if len(data) <= TEXT_LIMIT:
            self.visible |= lines_of(data)

    def add(self, found: tuple[str, str] | None, relative: Path) -> None:
        """Note a hit."""
        if found is not None:
            self.hits.append((*found, f"/{relative}"))


def main() -> None:
    """Scan what standard input names."""
    request = json.load(sys.stdin)
    json.dump(Scan([Path(layer) for layer in request["layers"]], request["private"]).run(), sys.stdout)


if __name__ == "__main__":
    main()
