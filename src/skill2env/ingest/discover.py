"""Find the skills below a folder: sorted, bounded, nested ones included, links never followed out or round."""

import os
from dataclasses import dataclass
from pathlib import Path

from skill2env.errors import UserError
from skill2env.ingest.entry import find_entry, is_entry_name, skill_folder, usable_entry
from skill2env.ingest.file_signs import LEFTOVER_FOLDERS
from skill2env.ingest.limits import DiscoveryLimits
from skill2env.ingest.quirks import note, ordered
from skill2env.records import Diagnostic


@dataclass(frozen=True, slots=True)
class Discovery:
    """What was found."""

    folders: tuple[Path, ...]
    """Folders that hold a usable entry file, sorted by path; each can be given to `load_skill`."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """What was not searched and why, and what only looks like a skill. Places are relative to the root."""


def find_skills(root: Path, *, limits: DiscoveryLimits | None = None) -> Discovery:
    """All skills at or below a path; the entry file itself may be given.

    Version control, caches and installed packages are not searched. Linked folders are not searched either: what
    they lead to is found at its own place when that lies below `root`.

    Raises:
        UserError: the path does not exist, or holds no skill; the hint says what was found.
    """
    folder = skill_folder(root)
    if folder != root:
        find_entry(folder)
        return Discovery((folder,))
    search = _Search(root, limits or DiscoveryLimits())
    search.run()
    if not search.folders:
        try:
            find_entry(root)
        except UserError as error:
            raise UserError(f"no SKILL.md at or below {root}", hint=error.hint) from error
    return Discovery(tuple(sorted(search.folders)), ordered(search.found))


class _Search:
    """One walk, without recursion, so that depth costs no stack."""

    def __init__(self, root: Path, limits: DiscoveryLimits) -> None:
        self._root = root
        self._limits = limits
        self.folders: list[Path] = []
        self.found: list[Diagnostic] = []

    def run(self) -> None:
        stack = [("", 0, False)]
        visited = 0
        while stack:
            inside, depth, nested = stack.pop()
            visited += 1
            if visited > self._limits.folders or len(self.folders) >= self._limits.skills:
                self.found.append(
                    note("over-limit", f"{visited - 1} folders and {len(self.folders)} skills were searched")
                )
                return
            entries = self._list(inside)
            names = [entry.name for entry in entries if is_entry_name(entry.name)]
            usable = [name for name in names if usable_entry(self._root / inside, name)]
            if usable:
                self.folders.append(self._root / inside)
                if nested:
                    self.found.append(note("nested-skill", where=inside))
            elif names:
                self.found.append(note("entry-is-no-file", where=f"{inside}/{names[0]}".lstrip("/")))
            below = [entry for entry in entries if self._enters(entry, inside, depth)]
            stack += [
                (f"{inside}/{entry.name}".lstrip("/"), depth + 1, nested or bool(usable))
                for entry in reversed(below)
            ]

    def _list(self, inside: str) -> "list[os.DirEntry[str]]":
        try:
            with os.scandir(self._root / inside) as entries:
                return sorted(entries, key=lambda entry: os.fsencode(entry.name))
        except OSError as error:
            self.found.append(note("unreadable", error.strerror or "", inside or "."))
            return []

    def _enters(self, entry: "os.DirEntry[str]", inside: str, depth: int) -> bool:
        if entry.name in LEFTOVER_FOLDERS:
            return False
        path = f"{inside}/{entry.name}".lstrip("/")
        if entry.is_symlink():
            if (self._root / path).is_dir():
                self.found.append(note("symlinked-folder", where=path))
            return False
        if not entry.is_dir(follow_symlinks=False):
            return False
        if depth >= self._limits.depth:
            self.found.append(note("over-limit", f"folders deeper than {self._limits.depth}", path))
            return False
        return True
