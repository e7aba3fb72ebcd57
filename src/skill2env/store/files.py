"""Files that are either there in full or not at all.

Covers: kill -9, a full disk, a read-only folder. A reader sees the old content or the new one, never a part; a failed
write leaves nothing behind. Does not cover: power loss on a disk that lies about flushing, two writers of one path
(the last one wins; run folders and datasets are locked for that, see `store.run_folder` and `publish.dataset`).
"""

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from skill2env.errors import Boundary, InfraError, UserError

TEMPORARY_PREFIX = ".tmp-"
"""Names of unfinished files and folders start like this; a sweep may remove them when nobody holds the lock."""


@contextmanager
def storage(doing: str, path: Path) -> Generator[None]:
    """Turn an `OSError` raised inside into an `InfraError` of the storage boundary that says what to do.

    Args:
        doing: what was being attempted, in the present participle ("writing the manifest").
        path: the file or folder the message names.

    Raises:
        InfraError: boundary ``storage``; not transient, because a full or read-only disk does not mend itself.
    """
    try:
        yield
    except OSError as error:
        raise InfraError(
            Boundary.STORAGE,
            f"{doing} failed: {path}: {error.strerror or error}",
            hint=_storage_hint(error),
            transient=False,
        ) from error


def _storage_hint(error: OSError) -> str:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return "make room (`skill2env cache prune` frees what can be made again), then run the same command again"
        case errno.EROFS | errno.EACCES | errno.EPERM:
            return "choose a folder you may write to with --out and --run"
        case errno.ENOTDIR | errno.EEXIST | errno.EISDIR:
            return "a file stands where a folder is needed, or the other way round; choose another place"
        case _:
            return "finished work is kept; run the same command again"


def write_bytes(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write `data` to `path` atomically: temporary file in the same folder, fsync, rename, fsync of the folder.

    Raises:
        InfraError: boundary ``storage``; `path` is then as it was before.
    """
    with storage("writing", path):
        handle, name = tempfile.mkstemp(prefix=TEMPORARY_PREFIX, dir=path.parent)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fchmod(stream.fileno(), mode)
                os.fsync(stream.fileno())
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8 with the line ends it has, lone surrogates as escapes; see `write_bytes`."""
    write_bytes(path, text.encode(errors="backslashreplace"))


def write_json(path: Path, value: Any) -> None:
    """Write plain data as indented JSON with sorted keys and a final newline; see `write_bytes`."""
    write_text(path, json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False) + "\n")


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries, so that a rename into it survives a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def staged_folder(parent: Path) -> Generator[Path]:
    """A fresh folder below `parent` that is removed at the end unless it was renamed away (see `move_into_place`).

    Raises:
        InfraError: boundary ``storage``, when it cannot be made.
    """
    with storage("making a folder in", parent):
        parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def move_into_place(staged: Path, target: Path) -> None:
    """Give a finished folder its final name, replacing what is there; both lie on one filesystem.

    Between removing the old folder's name and giving the new one a kill leaves no folder at `target`; callers repeat
    the whole step on the next run.

    Raises:
        InfraError: boundary ``storage``.
    """
    with storage("moving a finished folder to", target):
        target.parent.mkdir(parents=True, exist_ok=True)
        _sync_tree(staged)
        if target.exists() or target.is_symlink():
            grave = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=target.parent))
            target.rename(grave / "old")
            staged.rename(target)
            shutil.rmtree(grave, ignore_errors=True)
        else:
            staged.rename(target)
        sync_folder(target.parent)


def _sync_tree(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def copy_tree(source: Path, target: Path) -> None:
    """Copy regular files and folders of a tree; modes become 0644, 0755 where a file is executable by its owner.

    Links, devices and sockets are left out: what is copied here was collected before and has none.

    Raises:
        InfraError: boundary ``storage``.
    """
    with storage("copying to", target):
        target.mkdir(parents=True, exist_ok=True)
        for entry in sorted(os.scandir(source), key=lambda item: item.name):
            destination = target / entry.name
            if entry.is_dir(follow_symlinks=False):
                copy_tree(Path(entry.path), destination)
            elif entry.is_file(follow_symlinks=False):
                shutil.copyfile(entry.path, destination)
                executable = entry.stat(follow_symlinks=False).st_mode & 0o100
                destination.chmod(0o755 if executable else 0o644)


def sweep(folder: Path) -> int:
    """Remove unfinished files and folders directly below `folder`; only with its lock held. Returns how many."""
    removed = 0
    if not folder.is_dir():
        return removed
    for path in sorted(folder.glob(f"{TEMPORARY_PREFIX}*")):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        removed += 1
    return removed


def check_writable(folder: Path) -> None:
    """Make `folder` and prove that a file can be made in it, so that a long run fails before it starts.

    Raises:
        UserError: it, or what it would lie in, is no folder.
        InfraError: boundary ``storage``, when it cannot.
    """
    standing = next((place for place in (folder, *folder.absolute().parents) if place.exists()), folder)
    if standing.exists() and not standing.is_dir():
        raise UserError(f"{standing} is no folder", hint="give the path of a folder, or of one to make")
    with storage("preparing the folder", folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=TEMPORARY_PREFIX, dir=folder)
        os.close(handle)
        Path(name).unlink()
