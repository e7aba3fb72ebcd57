"""The package or repository around a skill: what it says about its licence, and where it came from.

Looks at metadata files only, walks up a few folders, and stops at what owns the skill, at the home folder, and at
folders that anybody may write to, so that a stray file in a temporary folder grants nothing.
"""

import functools
import json
import os
import re
import stat
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from skill2env.ingest.text import decode

ORIGIN_NAME = "skill2env-origin.json"
"""What a hub's export writes beside skills in place of the package or repository that they were taken out of."""
MAX_LEVELS = 8
_MAX_BYTES = 4 * 2**20
_SETTLED_NS = 2_000_000_000
_TELLING = re.compile(
    r"(?:licen[cs]e|copying|unlicense|notice|copyright|authors)(?:[-_.].*)?$"
    rf"|.*\.dist-info$|\.git$|package\.json$|pyproject\.toml$|{re.escape(ORIGIN_NAME)}$",
    re.IGNORECASE,
)
_LICENCE_FILE = re.compile(
    r"(?:licen[cs]e|copying|unlicense)(?:[-_.][\w-]+)?(?:\.(?:txt|md|rst))?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Surrounding:
    """One folder above a skill."""

    folder: Path
    up: str
    """``../`` as often as needed."""
    licence_files: tuple[str, ...] = ()
    declared: str = ""
    """Licence as the package metadata states it."""
    declared_in: str = ""
    """Path of that metadata relative to `folder`."""
    package: str = ""
    """``pypi:NAME==VERSION`` or ``npm:NAME@VERSION``."""
    owner: bool = False
    """A repository or package root: nothing above it says anything about the skill."""
    gathers: bool = False
    """An export says that these skills were taken out of a collection of other people's."""


def surroundings(root: Path, entry: str, within: Path | None = None) -> Iterator[Surrounding]:
    """The folders above a skill, nearest first, and the skill's own folder before them for its package metadata.

    Args:
        root: the skill's folder, free of links.
        entry: its entry file, to be found in a wheel's list of files.
        within: nothing above this folder belongs to the skill's source; free of links.
    """
    folder, up = root, ""
    for level in range(MAX_LEVELS + 1):
        status = _status(folder)
        if level and (status is None or _is_border(folder, status)):
            return
        found = _look(folder, status, up, root, entry)
        yield found
        if found.owner or folder == within:
            return
        folder, up = folder.parent, f"../{up}"


def licence_file_names(folder: Path) -> tuple[str, ...]:
    """Names of licence files in a folder, plain ones first."""
    try:
        return _licence_files(folder, telling_names(folder))
    except OSError:
        return ()


def _licence_files(folder: Path, names: frozenset[str]) -> tuple[str, ...]:
    chosen = (name for name in names if _LICENCE_FILE.fullmatch(name))
    return tuple(
        sorted((name for name in chosen if is_plain(folder, name)), key=lambda name: (len(name), name))
    )


def telling_names(folder: Path, status: os.stat_result | None = None) -> frozenset[str]:
    """Names in a folder that say something about packages, licences and notices.

    Remembered while the folder does not change, because a thousand skills may lie side by side in a folder of as many.

    Args:
        folder: the folder.
        status: of it, when it was just asked for.

    Raises:
        OSError: it cannot be listed.
    """
    status = status or folder.stat()
    if time.time_ns() - status.st_mtime_ns < _SETTLED_NS:  # a change within one tick would not be noticed
        return _list(str(folder))
    return _remembered(str(folder), status.st_dev, status.st_ino, status.st_mtime_ns)


@functools.lru_cache(maxsize=4096)
def _remembered(folder: str, *_: int) -> frozenset[str]:
    return _list(folder)


def _list(folder: str) -> frozenset[str]:
    return frozenset(name for name in os.listdir(folder) if _TELLING.match(name))


def is_plain(folder: Path, name: str) -> bool:
    """Whether a regular file of that name lies in a folder, and no link."""
    try:
        return stat.S_ISREG((folder / name).lstat().st_mode)
    except OSError:
        return False


def _is_folder(folder: Path, name: str) -> bool:
    """Whether a folder of that name lies in a folder, and no link to one, which another package may own."""
    try:
        return stat.S_ISDIR((folder / name).lstat().st_mode)
    except OSError:
        return False


def read_text(path: Path) -> str:
    """Content of a small regular file that is no link; empty otherwise."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return ""
            return decode(file.read(_MAX_BYTES)).text
    except OSError:
        return ""


def _status(folder: Path) -> os.stat_result | None:
    try:
        return folder.stat()
    except OSError:
        return None


def _is_border(folder: Path, status: os.stat_result) -> bool:
    return folder.parent == folder or folder == _home() or bool(status.st_mode & stat.S_IWOTH)


@functools.cache
def _home() -> Path:
    return Path.home()


def _look(folder: Path, status: os.stat_result | None, up: str, root: Path, entry: str) -> Surrounding:
    try:
        names = telling_names(folder, status)
    except OSError:
        return Surrounding(folder, up)
    facts: dict[str, Any] = (
        _exported(folder, names)
        or _wheel(folder, names, root / entry)
        or _npm(folder, names)
        or _pyproject(folder, names)
        or {}
    )
    return Surrounding(
        folder,
        up,
        licence_files=_licence_files(folder, names) if up else (),
        owner=bool(facts) or ".git" in names,
        **facts,
    )


def _exported(folder: Path, names: frozenset[str]) -> dict[str, Any] | None:
    """What a hub's export says about the skills below."""
    if ORIGIN_NAME not in names:
        return None
    try:
        told: Any = json.loads(read_text(folder / ORIGIN_NAME))
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    said = cast("dict[str, Any]", told)
    texts = {key: said[key] if isinstance(said.get(key), str) else "" for key in ("licence", "origin")}
    return {
        "declared": texts["licence"],
        "declared_in": ORIGIN_NAME,
        "package": texts["origin"],
        "gathers": said.get("collection") is True,
    }


def _wheel(folder: Path, names: frozenset[str], entry: Path) -> dict[str, str] | None:
    """Metadata of the wheel beside the package, when its list of files names the skill."""
    infos = sorted(name for name in names if name.endswith(".dist-info") and _is_folder(folder, name))
    inside = entry.relative_to(folder).as_posix() if infos else ""
    for name in infos:
        record = read_text(folder / name / "RECORD")
        listed = f"{inside}," in record
        if not listed and (record or len(infos) > 1 or folder.name in {"site-packages", "dist-packages"}):
            continue
        head = read_text(folder / name / "METADATA").partition("\n\n")[0]

        def value(key: str, head: str = head) -> str:
            match = re.search(rf"^{key}:[ \t]*(\S.*)$", head, re.MULTILINE | re.IGNORECASE)
            return match[1].strip() if match else ""

        classifier = re.search(r"^Classifier: License :: (?:OSI Approved :: )?(.+)$", head, re.MULTILINE)
        told = value("License-Expression") or value("License")
        return {
            "declared": told if told and len(told) < 200 else classifier[1] if classifier else "",
            "declared_in": f"{name}/METADATA",
            "package": f"pypi:{value('Name')}=={value('Version')}" if value("Name") else "",
        }
    return None


def _npm(folder: Path, names: frozenset[str]) -> dict[str, str] | None:
    if "package.json" not in names:
        return None
    try:
        data: Any = json.loads(read_text(folder / "package.json"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):  # pyright: ignore[reportUnknownMemberType]
        return None  # a fragment, not a package
    package = cast("dict[str, Any]", data)
    stated: Any = package.get("license") or package.get("licenses") or ""
    if isinstance(stated, list):
        stated = stated[0] if stated else ""  # pyright: ignore[reportUnknownVariableType]
    if isinstance(stated, dict):
        stated = stated.get("type", "")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    version = package.get("version")
    return {
        "declared": stated if isinstance(stated, str) else "",
        "declared_in": "package.json",
        "package": f"npm:{package['name']}@{version}" if isinstance(version, str) else "",
    }


def _pyproject(folder: Path, names: frozenset[str]) -> dict[str, str] | None:
    if "pyproject.toml" not in names:
        return None
    try:
        project: Any = tomllib.loads(read_text(folder / "pyproject.toml")).get("project")
    except (ValueError, RecursionError):
        return None
    if not isinstance(project, dict):
        return None
    stated: Any = project.get("license", "")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if isinstance(stated, dict):
        stated = stated.get("text", "")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return {
        "declared": stated if isinstance(stated, str) else "",
        "declared_in": "pyproject.toml",
        "package": "",
    }
