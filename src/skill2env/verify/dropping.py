"""Files that a probe's agent puts into a container: an archive, and a script that unpacks it with its rights."""

import io
import shutil
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_HEAD = """\
#!/bin/bash
# A probe of skill2env: no solution, and never a part of the task.
here=$(dirname "$0")
"""
_UNPACK = """\
if [ -e "$here/drops.tar" ]; then
  tar -C / --no-same-owner --overwrite -xf "$here/drops.tar" || tar -C / --no-same-owner -xf "$here/drops.tar"
  unpacked=$?
fi
"""


@dataclass(frozen=True, slots=True)
class Drop:
    """One file to be written; what the agent may not write stays as it is."""

    path: str
    data: bytes
    mode: int = 0o644
    link: str = ""
    """Make a symbolic link to this instead."""
    pipe: bool = False
    """Make a named pipe instead."""


def write_source(
    folder: Path,
    drops: Sequence[Drop],
    *,
    before: str = "",
    after: str = "",
    beside: Path | None = None,
    later: Sequence[Drop] = (),
) -> Path:
    """Write the source of a `ScriptAgent`: ``run.sh``, and the archive that it unpacks.

    Args:
        folder: made anew.
        drops: files to be written inside.
        before: lines of bash that run first; ``$here`` is the folder that they lie in.
        after: lines of bash that run last.
        beside: folder whose content is copied into `folder` first.
        later: files of a second archive, ``$here/back.tar``, which `after` may unpack.

    Returns:
        `folder`; the entry is ``run.sh``, or ``.probe/run.sh`` with `beside`.
    """
    shutil.rmtree(folder, ignore_errors=True)
    place = folder
    if beside is None:
        folder.mkdir(parents=True)
    else:
        shutil.copytree(beside, folder, symlinks=True)
        place = folder / ".probe"
        place.mkdir()
        for script in folder.glob("*.sh"):
            script.chmod(0o755)
    _pack(place / "drops.tar", drops)
    _pack(place / "back.tar", later)
    script = place / "run.sh"
    script.write_text(f"{_HEAD}{before}{_UNPACK}{after}exit ${{unpacked:-0}}\n", encoding="utf-8")
    script.chmod(0o755)
    return folder


def _pack(archive: Path, drops: Sequence[Drop]) -> None:
    if drops:
        with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as tar:
            for drop in drops:
                _add(tar, drop)


def _add(tar: tarfile.TarFile, drop: Drop) -> None:
    member = tarfile.TarInfo(drop.path.lstrip("/"))
    member.mode = drop.mode
    if drop.link:
        member.type, member.linkname = tarfile.SYMTYPE, drop.link
        tar.addfile(member)
    elif drop.pipe:
        member.type = tarfile.FIFOTYPE
        tar.addfile(member)
    else:
        member.size = len(drop.data)
        tar.addfile(member, io.BytesIO(drop.data))
