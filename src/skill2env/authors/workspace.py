"""Taking files out of a folder that somebody else wrote.

Covers: links of any kind, devices, sockets, FIFOs, set-id bits, names that cannot be stored portably, paths and trees
that are too long, too deep, too many or too big, files that grow while they are read, folders swapped for links while
they are walked. Everything is opened relative to an already opened folder and without following links.
Does not cover: a writer that is still running. A session has ended before its files are collected.
"""

import errno
import os
import stat
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

from skill2env.authors.protocol import Refusal
from skill2env.errors import Boundary, boundary
from skill2env.records import Reason, digest_bytes

TOOL_DEBRIS = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
"""Folders that interpreters and tools leave behind when an author tries things out. Never collected, never a change."""

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class CollectLimits:
    """How much one session may hand in."""

    max_files: int = 2000
    max_file_bytes: int = 16 * 2**20
    max_total_bytes: int = 64 * 2**20
    max_path_bytes: int = 200
    """Of the path relative to the task folder, in UTF-8."""
    max_depth: int = 16


DEFAULT_LIMITS = CollectLimits()


@dataclass(frozen=True, slots=True)
class TakenFile:
    """One file of a collected tree."""

    digest: str
    executable: bool

    def line(self) -> str:
        """Mode and digest as one word pair, the form in which the ledger keeps a seal."""
        return f"{'0755' if self.executable else '0644'} {self.digest}"


@dataclass(frozen=True, slots=True)
class Collected:
    """What was taken, and what stopped it."""

    files: dict[str, TakenFile] = field(default_factory=dict[str, TakenFile])
    """Path relative to the collected folder -> file, sorted by path."""
    refusals: tuple[Refusal, ...] = ()
    """Every entry that must not be taken, sorted by path. The tree is complete only when there are none."""


def collect(source: Path, target: Path, limits: CollectLimits = DEFAULT_LIMITS) -> Collected:
    """Copy the regular files below `source` to the new folder `target`, with modes 0644 or 0755.

    Empty folders and `TOOL_DEBRIS` do not survive. Nothing outside `source` is read and nothing outside `target`
    written, whatever `source` holds.

    Raises:
        InfraError: boundary ``storage``, when `target` cannot be written or `source` cannot be read.
    """
    with boundary(Boundary.STORAGE, f"collecting the files of a session from {source}"):
        target.mkdir(parents=True)
        collector = _Collector(target, limits)
        try:
            root = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return Collected()
        except OSError as error:
            if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                raise
            return Collected(refusals=(_refusal(Reason.UNSAFE_FILE, ".", "the task folder was replaced"),))
        try:
            return collector.run(root)
        finally:
            os.close(root)


class _Collector:
    """One walk: keeps the counters and the findings."""

    def __init__(self, target: Path, limits: CollectLimits) -> None:
        self._target = target
        self._limits = limits
        self._files: dict[str, TakenFile] = {}
        self._folded: dict[str, str] = {}
        self._refusals: list[Refusal] = []
        self._bytes = 0
        self._entries = 0

    def run(self, root: int) -> Collected:
        self._walk(root, "", 1)
        files = dict(sorted(self._files.items()))
        return Collected(files, tuple(sorted(self._refusals, key=lambda item: (item.path, item.reason))))

    def _walk(self, folder: int, prefix: str, depth: int) -> None:
        for name in sorted(os.listdir(folder)):
            if name in TOOL_DEBRIS and stat.S_ISDIR(_lstat(name, folder).st_mode):
                continue
            path = f"{prefix}{name}"
            self._entries += 1
            # Folders count as well, or a million empty ones would keep the host walking.
            if self._entries > self._limits.max_files:
                self._refuse(Reason.TOO_LARGE, path, f"more than {self._limits.max_files} files and folders")
                return
            problem = name_problem(name)
            if problem:
                self._refuse(Reason.UNSAFE_FILE, path, problem)
            elif len(path.encode()) > self._limits.max_path_bytes:
                self._refuse(
                    Reason.UNSAFE_FILE, path, f"path longer than {self._limits.max_path_bytes} bytes"
                )
            else:
                self._entry(folder, name, path, depth)

    def _entry(self, folder: int, name: str, path: str, depth: int) -> None:
        info = _lstat(name, folder)
        twin = self._folded.setdefault(_fold(path), path)
        if twin != path:
            self._refuse(
                Reason.UNSAFE_FILE, path, f"differs from {twin!r} only in letter case or accents' encoding"
            )
        elif info.st_mode & (stat.S_ISUID | stat.S_ISGID) and not stat.S_ISDIR(info.st_mode):
            self._refuse(Reason.UNSAFE_FILE, path, "set-user-id or set-group-id bit")
        elif stat.S_ISDIR(info.st_mode):
            self._folder(folder, name, path, depth)
        elif stat.S_ISREG(info.st_mode):
            self._file(folder, name, path)
        else:
            self._refuse(Reason.UNSAFE_FILE, path, f"{_kind(info.st_mode)}; only regular files are taken")

    def _folder(self, folder: int, name: str, path: str, depth: int) -> None:
        if depth >= self._limits.max_depth:
            self._refuse(Reason.TOO_LARGE, path, f"folders nested deeper than {self._limits.max_depth}")
            return
        below = self._open(folder, name, path, os.O_DIRECTORY)
        if below is None:
            return
        try:
            self._walk(below, f"{path}/", depth + 1)
        finally:
            os.close(below)

    def _file(self, folder: int, name: str, path: str) -> None:
        # Non-blocking: a FIFO that took the file's place must not hang the host.
        handle = self._open(folder, name, path, os.O_NONBLOCK)
        if handle is None:
            return
        try:
            info = os.fstat(handle)
            if not stat.S_ISREG(info.st_mode):
                self._refuse(Reason.UNSAFE_FILE, path, "changed while it was collected")
                return
            data = self._read(handle, path)
        finally:
            os.close(handle)
        if data is None:
            return
        executable = bool(info.st_mode & stat.S_IXUSR)
        destination = self._target / path
        destination.parent.mkdir(parents=True, exist_ok=True)
        destination.write_bytes(data)
        destination.chmod(0o755 if executable else 0o644)
        self._files[path] = TakenFile(digest_bytes(data), executable)

    def _open(self, folder: int, name: str, path: str, flags: int) -> int | None:
        """A descriptor of an entry that is not a link, or None with a refusal noted: unreadable or swapped."""
        try:
            return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | flags, dir_fd=folder)
        except OSError as error:
            self._refuse(Reason.UNSAFE_FILE, path, f"cannot be read ({error.strerror})")
            return None

    def _read(self, handle: int, path: str) -> bytes | None:
        """The file's bytes, or None with a refusal noted when a limit is passed; never reads far beyond the limit."""
        parts: list[bytes] = []
        size = 0
        while chunk := os.read(handle, _CHUNK):
            size += len(chunk)
            if size > self._limits.max_file_bytes:
                self._refuse(Reason.TOO_LARGE, path, f"larger than {self._limits.max_file_bytes} bytes")
                return None
            if self._bytes + size > self._limits.max_total_bytes:
                self._refuse(
                    Reason.TOO_LARGE, path, f"all files together exceed {self._limits.max_total_bytes} bytes"
                )
                return None
            parts.append(chunk)
        self._bytes += size
        return b"".join(parts)

    def _refuse(self, reason: Reason, path: str, message: str) -> None:
        # A hostile tree could hold thousands of bad entries; the first hundred tell the story.
        if len(self._refusals) < 100:
            self._refusals.append(_refusal(reason, path, message))


def _refusal(reason: Reason, path: str, message: str) -> Refusal:
    text = path.encode("utf-8", "backslashreplace").decode()
    clean = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
    return Refusal(reason=reason, path=clean, message=f"{clean}: {message}")


def _lstat(name: str, folder: int) -> os.stat_result:
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "symbolic link",
        stat.S_IFIFO: "FIFO",
        stat.S_IFSOCK: "socket",
        stat.S_IFBLK: "block device",
        stat.S_IFCHR: "character device",
    }
    return kinds.get(stat.S_IFMT(mode), "special file")


def _fold(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()


def name_problem(name: str) -> str:
    """Why one path segment cannot be stored portably; empty when it can."""
    if name in {"", ".", ".."}:
        return "not a name"
    if not (name.isascii() and name.isprintable()):  # most names are
        if any("\ud800" <= char <= "\udfff" for char in name):
            return "name is not UTF-8"
        if any(unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp"} for char in name):
            return "control or invisible character in the name"
    if "/" in name or "\\" in name:
        return "slash or backslash in the name"
    if name != name.strip() or name.endswith("."):
        return "name starts or ends with a space, or ends with a dot"
    return ""


def path_problem(path: str, limits: CollectLimits = DEFAULT_LIMITS) -> str:
    """Why a relative POSIX path taken from a document must not be used; empty when it may."""
    if path.startswith("/"):
        return "absolute path"
    for segment in path.split("/"):
        problem = name_problem(segment)
        if problem:
            return "leaves the folder" if segment == ".." else problem
    if len(path.encode()) > limits.max_path_bytes:
        return f"path longer than {limits.max_path_bytes} bytes"
    return ""
