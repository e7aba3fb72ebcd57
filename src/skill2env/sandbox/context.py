"""The build context: which files a COPY means, and nothing outside of the folder whatever links it holds.

Covers: ``.dockerignore`` (with ``!`` exceptions and ``**``), patterns in sources, links in the path of a source
(followed inside the context only), links inside copied folders (copied as links), special files (left out).
"""

import functools
import hashlib
import io
import os
import re
import stat
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from skill2env.sandbox.instructions import BuildFailed, Place

CONTEXT_LIMIT_BYTES = 2 * 2**30
ENTRY_LIMIT = 200_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing to copy."""

    name: str
    """Relative to the source; ``.`` for a copied folder itself, the file name for a copied file."""
    path: Path | None
    """Where its bytes are; None when `text` holds them."""
    kind: str
    """``file``, ``dir`` or ``link``."""
    mode: int
    link: str = ""
    text: bytes = b""

    def content(self) -> bytes:
        """Bytes of a file."""
        return self.path.read_bytes() if self.path else self.text


@dataclass(frozen=True, slots=True)
class Source:
    """One matched source of a COPY: a file, or a folder whose content is copied."""

    is_folder: bool
    entries: tuple[Entry, ...]


def pattern_regex(pattern: str) -> re.Pattern[str]:
    r"""Go's path matching plus ``**``: ``*`` and ``?`` stay within a path part, ``[...]`` is a class, ``\`` quotes.

    Raises:
        ValueError: a class is never closed.
    """
    out, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if pattern.startswith("**", at - 1):
            at += 1
            if pattern[at : at + 1] == "/":
                at += 1
                out += "(?:.*/)?"
            else:
                out += ".*"
        elif char == "*":
            out += "[^/]*"
        elif char == "?":
            out += "[^/]"
        elif char == "[":
            end = pattern.find("]", at + 1)
            if end < 0:
                raise ValueError(f"a character class is never closed in {pattern!r}")
            body, at = pattern[at:end], end + 1
            negated = body.startswith("^")
            quoted = body[negated:].replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
            out += f"(?!/)[{'^' if negated else ''}{quoted}]"
        elif char == "\\" and at < len(pattern):
            out += re.escape(pattern[at])
            at += 1
        else:
            out += re.escape(char)
    try:
        return re.compile(out, re.DOTALL)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no pattern: {error}") from error


def clean(path: str) -> str:
    """A path relative to the context: no leading ``/``, no ``.`` parts; a leading ``..`` is left for the caller."""
    return os.path.normpath(path.lstrip("/") or ".")


class Ignore:
    """The rules of a ``.dockerignore``; the last matching line decides, and a folder's verdict covers what it holds."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._rules: list[tuple[bool, re.Pattern[str]]] = []
        for line in lines:
            text = line.strip()
            if not text or line.startswith("#"):
                continue
            keep = text.startswith("!")
            pattern = clean(text[keep:].strip()) if text[keep:].strip() else ""
            if pattern in ("", ".", "/"):
                continue
            try:
                self._rules.append((keep, pattern_regex(pattern)))
            except ValueError:
                continue  # docker refuses the build; a rule that cannot match anything hides nothing

    def hides(self, path: str) -> bool:
        """True when a path (relative, with ``/``) is not part of the context."""
        parts = path.split("/")
        prefixes = ["/".join(parts[: n + 1]) for n in range(len(parts))]
        hidden = False
        for keep, rule in self._rules:
            if hidden == keep and any(rule.fullmatch(prefix) for prefix in prefixes):
                hidden = not keep
        return hidden


class Context:
    """A folder that a Dockerfile may copy from."""

    def __init__(self, root: Path, *, dockerfile: str = "Dockerfile") -> None:
        self.root = root.resolve()
        self._ignore = Ignore(self._ignore_lines(dockerfile))

    def _ignore_lines(self, dockerfile: str) -> list[str]:
        for name in (f"{dockerfile}.dockerignore", ".dockerignore"):
            path = self.root / name
            if path.is_file() and path.resolve().is_relative_to(self.root):
                return path.read_text(errors="replace").removeprefix("\ufeff").splitlines()
        return []

    @functools.cached_property
    def _listing(self) -> dict[str, os.stat_result]:
        """Every path of the context that is not ignored, sorted, without following links."""
        found: dict[str, os.stat_result] = {}
        stack = [""]
        while stack:
            folder = stack.pop()
            with os.scandir(self.root / folder) as entries:
                for entry in entries:
                    name = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(name)
                    if not self._ignore.hides(name):
                        found[name] = entry.stat(follow_symlinks=False)
            if len(found) > ENTRY_LIMIT:
                raise BuildFailed("reading the build context", f"more than {ENTRY_LIMIT} files")
        return dict(sorted(found.items()))

    def select(self, source: str, place: Place) -> list[Source]:
        """What one source word means, sorted by path.

        Raises:
            BuildFailed: nothing matches, or it leads out of the context.
        """
        path = clean(source)
        if path == ".." or path.startswith("../"):
            raise BuildFailed(str(place), f"{source}: forbidden path outside of the build context")
        if path == ".":
            return [self._folder("")]
        if not re.search(r"[*?\[\\]", path):
            matches = [path]
        else:
            try:
                rule = pattern_regex(path)
            except ValueError as error:
                raise BuildFailed(str(place), str(error)) from error
            matches = [name for name in self._listing if rule.fullmatch(name)]
        if not matches:
            raise BuildFailed(str(place), f"{source}: no such file in the build context")
        return [self._one(name, source, place) for name in matches]

    def _one(self, name: str, source: str, place: Place) -> Source:
        try:
            real = (self.root / name).resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise BuildFailed(str(place), f"{source}: no such file in the build context") from error
        if not real.is_relative_to(self.root):
            raise BuildFailed(str(place), f"{source}: a link leads out of the build context")
        inner = real.relative_to(self.root).as_posix()
        if real.is_dir():
            if inner != "." and self._hidden_whole(inner):
                raise BuildFailed(str(place), f"{source}: excluded by .dockerignore")
            return self._folder("" if inner == "." else inner)
        if inner not in self._listing:
            raise BuildFailed(str(place), f"{source}: excluded by .dockerignore, or no file")
        entry = self._entry(inner, PurePosixPath(name).name)
        if entry is None:
            raise BuildFailed(str(place), f"{source}: neither a file nor a folder")
        return Source(False, (entry,))

    def _hidden_whole(self, folder: str) -> bool:
        return folder not in self._listing and not any(n.startswith(folder + "/") for n in self._listing)

    def _folder(self, folder: str) -> Source:
        prefix = folder + "/" if folder else ""
        own = (self.root / folder).stat()
        entries = [Entry(".", None, "dir", stat.S_IMODE(own.st_mode))]
        for name in self._listing:
            if name.startswith(prefix):
                entry = self._entry(name, name.removeprefix(prefix))
                if entry is not None:
                    entries.append(entry)
        return Source(True, tuple(entries))

    def _entry(self, inner: str, name: str) -> Entry | None:
        status, path = self._listing[inner], self.root / inner
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISREG(status.st_mode):
            return Entry(name, path, "file", mode)
        if stat.S_ISDIR(status.st_mode):
            return Entry(name, path, "dir", mode)
        if stat.S_ISLNK(status.st_mode):
            return Entry(name, path, "link", 0o777, str(path.readlink()))
        return None


def fingerprint(sources: Iterable[Source]) -> Iterator[str]:
    """Words that identify what is copied: names, kinds, modes, contents; not times, owners or places."""
    for source in sources:
        yield "folder" if source.is_folder else "file"
        for entry in source.entries:
            digest = hashlib.sha256(entry.content()).hexdigest() if entry.kind == "file" else entry.link
            yield f"{entry.kind} {entry.mode:o} {digest} {entry.name}"


def archive(
    members: Iterable[tuple[str, Entry]], *, uid: int, gid: int, mode: int | None, mtime: int, place: Place
) -> bytes:
    """Tar of entries under the given names, all with one owner and time.

    Raises:
        BuildFailed: more than `CONTEXT_LIMIT_BYTES`.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, entry in members:
            info = tarfile.TarInfo(name)
            info.uid, info.gid, info.mtime = uid, gid, mtime
            info.mode = entry.mode if mode is None else mode
            if entry.kind == "dir":
                info.type = tarfile.DIRTYPE
                if mode is not None:  # a folder that nobody can enter helps nobody
                    info.mode = mode | (mode & 0o444) >> 2
                tar.addfile(info)
            elif entry.kind == "link":
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.link, 0o777
                tar.addfile(info)
            else:
                data = entry.content()
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
            if buffer.tell() > CONTEXT_LIMIT_BYTES:
                raise BuildFailed(str(place), f"more than {CONTEXT_LIMIT_BYTES} bytes are copied")
    return buffer.getvalue()
