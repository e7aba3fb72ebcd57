"""Find the skills below a folder: sorted, bounded, nested ones included, links never followed out or round."""

import os
from dataclasses import dataclass
from pathlib import Path

from skill2env.errors import UserError
from skill2env.ingest.quirks import note
from skill2env.ingest.skill import ENTRY
from skill2env.records import Diagnostic

SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".pytest_cache"})
MAX_FOLDERS = 200_000
MAX_DEPTH = 24


@dataclass(frozen=True, slots=True)
class Discovery:
    """What was found."""

    folders: tuple[Path, ...]
    """Folders that hold an entry file, sorted by path."""
    diagnostics: tuple[Diagnostic, ...] = ()


def find_skills(root: Path) -> Discovery:
    """All skills at or below a path; the entry file itself may be given.

    Raises:
        UserError: the path does not exist, or holds no skill.
    """
    if root.is_file() and root.name.lower() == ENTRY.lower():
        return Discovery((root.parent,))
    if not root.exists():
        raise UserError(f"{root} does not exist", hint="Give a skill's folder, or a folder of skills.")
    if not root.is_dir():
        raise UserError(
            f"{root} is neither a folder nor a SKILL.md", hint="Give a skill's folder, or a folder of skills."
        )
    folders: list[Path] = []
    found: list[Diagnostic] = []
    stack, visited = [(root, 0, False)], 0
    while stack:
        folder, depth, inside = stack.pop()
        visited += 1
        if visited > MAX_FOLDERS:
            found.append(note("over-limit", f"more than {MAX_FOLDERS} folders"))
            break
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda e: e.name)
        except OSError as error:
            found.append(note("unreadable", error.strerror or "", str(folder.relative_to(root))))
            continue
        names = [e.name for e in listed if e.name.lower() == ENTRY.lower() and _is_file(e)]
        if names:
            folders.append(folder)
            if inside:
                found.append(note("nested-skill", where=str(folder.relative_to(root))))
        for entry in reversed(listed):
            if entry.is_dir(follow_symlinks=False) and entry.name not in SKIPPED_FOLDERS:
                if depth + 1 <= MAX_DEPTH:
                    stack.append((Path(entry.path), depth + 1, inside or bool(names)))
                else:
                    found.append(note("over-limit", f"deeper than {MAX_DEPTH} folders", entry.name))
            elif entry.is_symlink() and entry.is_dir():
                found.append(
                    note(
                        "symlink", "a linked folder is not searched", str(Path(entry.path).relative_to(root))
                    )
                )
    if not folders:
        raise UserError(f"no SKILL.md at or below {root}", hint="A skill is a folder with a SKILL.md.")
    return Discovery(tuple(sorted(folders)), tuple(found))


def _is_file(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False
