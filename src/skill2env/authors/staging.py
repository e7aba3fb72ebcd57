"""Laying out what an author may see: the skill's files, and files that were collected before."""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from skill2env.authors.workspace import CollectLimits, TakenFile, path_problem
from skill2env.errors import Boundary, boundary
from skill2env.records import FileKind, Skill

MAX_READ_BYTES = 256 * 2**20

_SKILL_PATHS = CollectLimits(max_path_bytes=4096)


def lay_out(files: Mapping[str, TakenFile], source: Path, target: Path) -> None:
    """Write the named files of a collected tree below `target`, which may exist.

    Raises:
        InfraError: boundary ``storage``.
    """
    with boundary(Boundary.STORAGE, f"laying out files in {target}"):
        target.mkdir(parents=True, exist_ok=True)
        for path, taken in sorted(files.items()):
            destination = target / path
            destination.parent.mkdir(parents=True, exist_ok=True)
            destination.write_bytes((source / path).read_bytes())
            destination.chmod(0o755 if taken.executable else 0o644)


def stage_source(skill: Skill, skill_dir: Path, target: Path) -> None:
    """Copy a skill's files for an author: what ingest listed, with links inside the skill written out as files.

    Raises:
        InfraError: boundary ``storage``, also when a listed file has vanished since ingest.
    """
    with boundary(Boundary.STORAGE, f"staging the skill {skill.slug}"):
        target.mkdir(parents=True, exist_ok=True)
        for path, content, executable in _skill_files(skill, skill_dir):
            destination = target / path
            destination.parent.mkdir(parents=True, exist_ok=True)
            destination.write_bytes(content)
            destination.chmod(0o755 if executable else 0o644)


def _skill_files(skill: Skill, skill_dir: Path) -> Iterator[tuple[str, bytes, bool]]:
    regular = {item.path: item for item in skill.files if item.kind in {FileKind.TEXT, FileKind.BINARY}}
    for item in skill.files:
        actual = regular.get(item.path)
        if item.kind is FileKind.SYMLINK:
            aim = os.path.normpath(str(Path(item.path).parent / item.target))
            actual = regular.get(aim)
        if actual is not None and not path_problem(item.path, _SKILL_PATHS):
            yield item.path, read_inside(skill_dir, actual.path), actual.executable


def read_inside(root: Path, path: str, *, limit: int = MAX_READ_BYTES) -> bytes:
    """Read a regular file by a relative path, following no link in any segment below `root`.

    Raises:
        OSError: a segment is a link, is missing, or the end is not a regular file of at most `limit` bytes.
    """
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        *parents, name = path.split("/")
        for segment in parents:
            below = os.open(segment, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = below
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        with os.fdopen(handle, "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise OSError(f"not a regular file: {path}")
            data = stream.read(limit + 1)
            if len(data) > limit:
                raise OSError(f"larger than {limit} bytes: {path}")
            return data
    finally:
        os.close(folder)
