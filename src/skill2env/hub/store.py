"""Contents by digest: skills as folders, licence texts as files.

Layout::

    skills/AB/ABCD...      one skill: the files of its inventory, under their own names
    notices/AB/ABCD...     one licence or notice text

What is there is whole: a content is written beside its place and renamed into it, so a killed process leaves at most a
folder that the next one sweeps, and two processes that store the same content cannot disturb each other. Nothing is
flushed to the disk one by one: a loss of power may damage the newest contents, which `verify` finds and the next sync
of their source brings again.
"""

import hashlib
import os
import shutil
import stat
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from skill2env.authors.staging import read_inside
from skill2env.errors import UserError
from skill2env.ingest import IngestLimits
from skill2env.ingest.entry import find_entry
from skill2env.ingest.inventory import Inventory, take_inventory
from skill2env.ingest.text import decode
from skill2env.records import SHA256_PREFIX, FileKind, Skill, SkillFile, digest_bytes
from skill2env.store.files import TEMPORARY_PREFIX, storage, sweep

NOTICE_LIMIT_BYTES = 256 * 1024
"""Largest notice that is kept; real licence texts have under 40 kB."""
_EXECUTABLE_HEADS = (b"#!", b"\x7fELF")


class Changed(Exception):
    """A file is not any more what it was when the skill was read."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One content that is not what its digest says."""

    digest: str
    path: Path
    why: str


@dataclass(frozen=True, slots=True)
class Store:
    """The store of one hub. Safe for several processes at once."""

    root: Path
    limits: IngestLimits = field(default_factory=IngestLimits)

    def skill(self, digest: str) -> Path:
        """Folder of a skill; it may not be there."""
        return self.root / "skills" / _split(digest)

    def notice(self, digest: str) -> Path:
        """File of a notice; it may not be there."""
        return self.root / "notices" / _split(digest)

    def prepare(self) -> None:
        """Make the folders and sweep what a killed process left; with the hub's lock held.

        Raises:
            InfraError: boundary ``storage``.
        """
        with storage("making", self.root):
            for name in ("skills", "notices"):
                for first in range(256):
                    (self.root / name / f"{first:02x}").mkdir(parents=True, exist_ok=True)
        sweep(self.root)

    def put(self, skill: Skill, folder: Path) -> dict[str, str]:
        """Store a skill that was just read from `folder`, unless it is there.

        Returns:
            Path -> text of its text files, as far as `limits` let them be searched.

        Raises:
            Changed: a file is not what the skill's inventory says.
            InfraError: boundary ``storage``.
        """
        target = self.skill(skill.digest)
        if target.is_dir():
            return self.texts(skill, folder)
        texts: dict[str, str] = {}
        with storage("storing a skill in", self.root):
            staged = f"{self.root}/{TEMPORARY_PREFIX}{os.getpid()}-{threading.get_ident()}"
            os.mkdir(staged, 0o755)
            try:
                made = {""}
                for item in skill.files:
                    if item.kind is not FileKind.REFUSED:
                        self._copy(item, f"{folder}/{item.path}", staged, made, texts)
                os.rename(staged, target)
            except BaseException as error:
                shutil.rmtree(staged, ignore_errors=True)
                # Another process may have stored the same content first.
                if not (isinstance(error, OSError) and target.is_dir()):
                    raise
        return self._searched(skill, texts)

    def texts(self, skill: Skill, folder: Path) -> dict[str, str]:
        """Path -> text of the skill's text files, as far as `limits` let them be searched.

        Raises:
            Changed: a file is not what the skill's inventory says.
            InfraError: boundary ``storage``.
        """
        texts: dict[str, str] = {}
        with storage("reading a skill in", folder):
            for item in skill.files:
                if item.kind is FileKind.TEXT and item.size <= self.limits.scanned_file_bytes:
                    texts[item.path] = decode(_content(item, f"{folder}/{item.path}")).text
        return self._searched(skill, texts)

    def _searched(self, skill: Skill, texts: Mapping[str, str]) -> dict[str, str]:
        """The entry first, then by path, until the total is reached."""
        kept, total = dict[str, str](), 0
        for path in sorted(texts, key=lambda path: (path != skill.entry, path)):
            total += len(texts[path])
            if kept and total > self.limits.scanned_total_bytes:
                break
            kept[path] = texts[path]
        return kept

    def _copy(self, item: SkillFile, source: str, staged: str, made: set[str], texts: dict[str, str]) -> None:
        place = f"{staged}/{item.path}"
        parent = item.path.rpartition("/")[0]
        if parent not in made:
            os.makedirs(f"{staged}/{parent}", exist_ok=True)
            made.add(parent)
        if item.kind is FileKind.SYMLINK:
            target = os.readlink(source)
            if digest_bytes(os.fsencode(target)) != item.sha256:
                raise Changed(item.path)
            os.symlink(target, place)
            return
        data = _content(item, source)
        # A function of the content alone: archives lose the bit, and equal digests must give equal folders.
        mode = 0o755 if data.startswith(_EXECUTABLE_HEADS) else 0o644
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]
        finally:
            os.close(handle)
        if item.kind is FileKind.TEXT and item.size <= self.limits.scanned_file_bytes:
            texts[item.path] = decode(data).text

    def put_notice(self, base: Path, path: str) -> str:
        """Store a licence or notice text and return its digest; empty when it is no regular file or too large.

        Args:
            base: a folder that is trusted, free of links.
            path: the text's place in it, POSIX; no link is followed there, so it cannot lead to another file.

        Raises:
            InfraError: boundary ``storage``.
        """
        try:
            data = read_inside(base, path, limit=NOTICE_LIMIT_BYTES)
        except (OSError, ValueError):  # the second for a NUL in the path
            return ""
        digest = digest_bytes(data)
        target = self.notice(digest)
        if not target.is_file():
            with storage("storing a notice in", self.root):
                staged = self.root / f"{TEMPORARY_PREFIX}{os.getpid()}-{digest[-16:]}"
                staged.write_bytes(data)
                staged.chmod(0o644)
                staged.replace(target)
        return digest

    def digests(self) -> Iterator[str]:
        """Digests of all stored skills, sorted."""
        for first in _names(self.root / "skills"):
            for name in _names(self.root / "skills" / first):
                yield f"{SHA256_PREFIX}{first}{name}"

    def notices(self) -> Iterator[str]:
        """Digests of all stored notices, sorted."""
        for first in _names(self.root / "notices"):
            for name in _names(self.root / "notices" / first):
                yield f"{SHA256_PREFIX}{first}{name}"

    def remove(self, digest: str) -> None:
        """Remove a skill; with the hub's lock held. Nothing happens when it is not there."""
        shutil.rmtree(self.skill(digest), ignore_errors=True)

    def check(self, digest: str) -> Damage | None:
        """Read a stored skill again and compare it with its digest."""
        path = self.skill(digest)
        try:
            found = contents(path, self.limits).digest
        except UserError as error:
            return Damage(digest, path, error.message)
        return None if found == digest else Damage(digest, path, f"its content has digest {found}")

    def check_notice(self, digest: str) -> Damage | None:
        """Read a stored notice again and compare it with its digest."""
        path = self.notice(digest)
        try:
            found = digest_bytes(path.read_bytes())
        except OSError as error:
            return Damage(digest, path, error.strerror or "cannot be read")
        return None if found == digest else Damage(digest, path, f"its content has digest {found}")


def contents(folder: Path, limits: IngestLimits | None = None) -> Inventory:
    """The files of a stored or exported skill, with its digest; nothing of them is understood.

    Raises:
        UserError: it holds no entry file, or cannot be read.
    """
    root = Path(os.path.realpath(folder))
    entry, _ = find_entry(root)
    return take_inventory(root, entry, limits or IngestLimits())


def _split(digest: str) -> str:
    plain = digest.removeprefix(SHA256_PREFIX)
    return f"{plain[:2]}/{plain[2:]}"


def _names(folder: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError:
        return []


def _content(item: SkillFile, path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Changed(item.path)
        data = file.readall()
    if SHA256_PREFIX + hashlib.sha256(data).hexdigest() != item.sha256:
        raise Changed(item.path)
    return data
