"""Where a symbolic link of a bundle leads, without following it out of the bundle."""

import errno
import os
import posixpath
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Link:
    """One judged link."""

    target: str
    """As written."""
    code: str
    """Diagnostic: ``symlink``, ``symlink-escapes``, ``symlink-loop`` or ``symlink-dangles``."""

    @property
    def inside(self) -> bool:
        """Whether it stays in the bundle; a dangling one does, when its target would."""
        return self.code in {"symlink", "symlink-dangles"}


def follow(root: Path, path: str) -> Link:
    """Judge a link.

    Args:
        root: the bundle, itself free of links (`os.path.realpath`).
        path: the link, relative to `root`.

    Raises:
        OSError: it is no link, or a folder on the way cannot be searched.
    """
    target = os.readlink(root / path)
    lexical = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if posixpath.isabs(target) or lexical == ".." or lexical.startswith("../"):
        return Link(target, "symlink-escapes")
    try:
        real = os.path.realpath(root / path, strict=True)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return Link(target, "symlink-loop")
        if error.errno not in {errno.ENOENT, errno.ENOTDIR}:
            raise
        # Its text stays inside, but a link on the way may not.
        real = os.path.realpath(root / path)
        return Link(target, "symlink-dangles" if _within(real, str(root)) else "symlink-escapes")
    if not _within(real, str(root)):
        return Link(target, "symlink-escapes")
    here = os.path.realpath((root / path).parent)
    return Link(target, "symlink-loop" if _within(here, real) else "symlink")


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
