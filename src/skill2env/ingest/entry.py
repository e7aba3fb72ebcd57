"""The entry file of a folder: which one it is, and what to say when there is none."""

import os
from pathlib import Path

from skill2env.errors import UserError
from skill2env.ingest.links import follow
from skill2env.ingest.quirks import note
from skill2env.records import Diagnostic

ENTRY = "SKILL.md"
_LOOKALIKES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", "README.md", "skill-card.md")


def is_entry_name(name: str) -> bool:
    """True for ``SKILL.md`` in any letter case."""
    return name.lower() == ENTRY.lower()


def skill_folder(path: Path) -> Path:
    """The folder of a skill that was named by its folder or by its entry file.

    Raises:
        UserError: there is no such path, or it is another file.
    """
    if not os.path.lexists(path):
        raise UserError(f"{path} does not exist", hint="give the folder that holds SKILL.md")
    if path.is_dir():
        return path
    if is_entry_name(path.name):
        return path.parent
    raise UserError(f"{path} is no skill", hint="give the folder that holds SKILL.md, or the SKILL.md itself")


def usable_entry(folder: Path, name: str) -> bool:
    """Whether an entry file is a regular file, or a link to one inside its folder."""
    path = folder / name
    if path.is_symlink():
        root = Path(os.path.realpath(folder))
        try:
            return follow(root, name).code == "symlink" and path.is_file()
        except OSError:
            return False
    return path.is_file()


def find_entry(folder: Path) -> tuple[str, list[Diagnostic]]:
    """Name of the entry file as spelled, and what is odd about it.

    Raises:
        UserError: the folder cannot be read or holds no usable entry file; the hint says what was found.
    """
    try:
        names = sorted(os.listdir(folder), key=os.fsencode)
    except OSError as error:
        raise UserError(
            f"{folder} cannot be read: {error.strerror}", hint="check the permissions of the folder"
        ) from error
    spelled = [name for name in names if is_entry_name(name) and usable_entry(folder, name)]
    if not spelled:
        raise UserError(f"{folder} holds no SKILL.md", hint=_what_is_there(folder, names))
    chosen = ENTRY if ENTRY in spelled else spelled[0]
    found: list[Diagnostic] = []
    if len(spelled) > 1:
        found.append(note("several-entries", ", ".join(spelled), chosen))
    if chosen != ENTRY:
        found.append(note("wrong-case", chosen, chosen))
    return chosen, found


def _what_is_there(folder: Path, names: list[str]) -> str:
    if not names:
        return "the folder is empty"
    for name in filter(is_entry_name, names):
        path = folder / name
        if path.is_symlink():
            return f"{name} is a link that leads out of the folder, in a circle or nowhere; copy the real file here"
        return f"{name} is there, but it is no regular file"
    below = [
        name for name in names if any(usable_entry(folder / name, entry) for entry in (ENTRY, ENTRY.lower()))
    ]
    if below:
        shown = ", ".join(below[:3]) + (" ..." if len(below) > 3 else "")
        return f"skills lie one level below: {shown}; give one of them, or see `skill2env skill list`"
    alike = [name for name in names if name in _LOOKALIKES]
    if alike:
        return f"found {', '.join(alike)}; a skill needs a SKILL.md with a name and a description"
    return f"found {', '.join(names[:5])}{' ...' if len(names) > 5 else ''}"


def read_entry(path: Path, limit: int) -> tuple[bytes, bool]:
    """(the first `limit` bytes, whether there are more).

    Raises:
        UserError: it cannot be read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}", hint="check the permissions of the file"
        ) from error
    return data[:limit], len(data) > limit
