"""COPY into an image under construction, by tools of that image, so that owners and links are the image's own."""

import io
import json
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox import context as ctx
from skill2env.sandbox.archives import Change, is_archive, repack
from skill2env.sandbox.box import Box
from skill2env.sandbox.command import log_tail
from skill2env.sandbox.instructions import BuildFailed, Place
from skill2env.sandbox.recipe import CopyStep, WorkdirStep

FILE_TIME = 946684800
"""Modification time of copied files (2000-01-01): a checkout's times say nothing and differ everywhere."""

_PROBE = r"""
user=$2 group=$3
case $user in
'') uid=0 gid=0 ;;
*[!0-9]*) uid=$(id -u -- "$user") && gid=$(id -g -- "$user") || exit 45 ;;
*) uid=$user gid=$user ;;
esac
case $group in
'') ;;
*[!0-9]*) gid=$(getent group "$group" | cut -d: -f3); [ -n "$gid" ] || exit 46 ;;
*) gid=$group ;;
esac
if [ -d "$1" ]; then kind=folder; elif [ -e "$1" ] || [ -L "$1" ]; then kind=file; else kind=none; fi
echo "$kind $uid $gid"
"""
_MAKE = r"""
make() { [ -d "$1" ] || { make "$(dirname -- "$1")" "$2" && mkdir -- "$1" && chown "$2" -- "$1"; } || exit 1; }
make "$1" "$2"
"""
_EXTRACT = rf"""{_MAKE}
exec tar -xpf - --numeric-owner --keep-directory-symlink -C "$1"
"""
_FIND = r"""
import fnmatch, json, os, sys

def matches(folder, parts):
    if not parts:
        return [folder]
    first, rest = parts[0], parts[1:]
    if any(c in first for c in "*?["):
        pattern = first.replace("[^", "[!")
        listed = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        names = [name for name in listed if fnmatch.fnmatchcase(name, pattern)]
    else:
        names = [first]
    found = [os.path.join(folder, n) for n in names if os.path.lexists(os.path.join(folder, n))]
    return [path for one in found for path in matches(one, rest)]

found = [matches("/", [p for p in os.path.normpath("/" + word).split("/") if p]) for word in sys.argv[1:]]
print(json.dumps([[[path, os.path.realpath(path), os.path.isdir(path)] for path in paths] for paths in found]))
"""


@dataclass(frozen=True, slots=True)
class Archive:
    """One thing to copy, as a tar."""

    is_folder: bool
    make: Callable[[str, tuple[int, int]], bytes]
    """(new name of a file or empty, owner of the target) -> tar. A copied folder itself is no part of it."""


def copy_into(box: Box, step: CopyStep, sources: list[ctx.Source]) -> None:
    """Perform a COPY of the build context, or an ADD.

    Args:
        box: a running build sandbox.
        step: what was asked for.
        sources: what its words name in the build context.

    Raises:
        BuildFailed: the Dockerfile is at fault.
        InfraError: the disk or the sandbox is.
    """
    literal = [
        ctx.Source(False, (ctx.Entry(name, None, "file", 0o644, text=text.encode()),))
        for name, text in step.files
    ]
    _place(box, step, [_of_context(source, step) for source in (*sources, *literal)])


def copy_across(box: Box, step: CopyStep, origin: Box) -> None:
    """Perform a ``COPY --from``.

    Args:
        box: a running build sandbox.
        step: what was asked for.
        origin: a running sandbox on the stage or image to copy from.

    Raises:
        BuildFailed: the Dockerfile is at fault.
        InfraError: the disk or the sandbox is.
    """
    done = origin.exec(["python3", "-I", "-c", _FIND, *step.sources], output_limit=ctx.CONTEXT_LIMIT_BYTES)
    if done.return_code:
        raise BuildFailed(str(step.place), f"looking for the files failed: {log_tail(done.stderr)}")
    found: list[list[tuple[str, str, bool]]] = json.loads(done.stdout)
    for word, paths in zip(step.sources, found, strict=True):
        if not paths:
            raise BuildFailed(str(step.place), f"{word}: no such file in the stage or image")
    archives = [
        _of_image(origin, real, path, step, is_folder=folder)
        for paths in found
        for path, real, folder in paths
    ]
    _place(box, step, archives)


def _of_context(source: ctx.Source, step: CopyStep) -> Archive:
    first = source.entries[0]
    if step.unpack and not source.is_folder and first.path is not None and is_archive(first.path, step.place):
        path = first.path

        def unpacked(_name: str, _owner: tuple[int, int]) -> bytes:
            # As in engines, --chown and --chmod are for what is copied; what is unpacked keeps its own.
            with path.open("rb") as file:
                return repack(file, Change(), step.place)

        return Archive(True, unpacked)

    def packed(name: str, owner: tuple[int, int]) -> bytes:
        members = [(name or entry.name, entry) for entry in source.entries if entry.name != "."]
        return ctx.archive(
            members, uid=owner[0], gid=owner[1], mode=step.mode, mtime=FILE_TIME, place=step.place
        )

    return Archive(source.is_folder, packed)


def _of_image(origin: Box, real: str, path: str, step: CopyStep, *, is_folder: bool) -> Archive:
    def packed(name: str, owner: tuple[int, int]) -> bytes:
        folder, what = (real, ".") if is_folder else posixpath.split(real)
        command = ["tar", "-C", folder, "-cf", "-", "--numeric-owner", "--sort=name", "--", what]
        done = origin.exec(command, output_limit=ctx.CONTEXT_LIMIT_BYTES)
        if done.return_code or done.truncated:
            told = log_tail(done.stderr) or f"{path} holds more than {ctx.CONTEXT_LIMIT_BYTES} bytes"
            raise BuildFailed(str(step.place), told)
        change = Change(
            name=(name or posixpath.basename(path)) if not is_folder else "",
            owner=owner if step.owner else None,
            mode=step.mode,
        )
        return repack(io.BytesIO(done.stdout), change, step.place)

    return Archive(is_folder, packed)


def _place(box: Box, step: CopyStep, archives: Sequence[Archive]) -> None:
    kind, uid, gid = _look(box, step.target, step.owner, step.place, "--chown=")
    if len(archives) > 1 and not step.target.endswith("/"):
        raise BuildFailed(str(step.place), "several files match: the target must be a folder and end in /")
    for archive in archives:
        into_folder = archive.is_folder or step.target.endswith("/") or kind == "folder"
        if into_folder and kind == "file":
            raise BuildFailed(
                str(step.place), f"{step.target} is a file in the image and a folder was to be copied there"
            )
        folder, name = (step.target, "") if into_folder else posixpath.split(step.target)
        data = archive.make(name, (uid, gid))
        done = box.exec(
            ["/bin/sh", "-c", _EXTRACT, "sh", folder.rstrip("/") or "/", f"{uid}:{gid}"],
            stdin=data,
            merge_stderr=True,
        )
        if done.return_code:
            told = log_tail(done.stdout)
            if "No space left" in told:
                raise InfraError(Boundary.STORAGE, f"the disk is full at {step.place}")
            raise BuildFailed(str(step.place), told)
        kind = "folder" if into_folder else kind


def make_folder(box: Box, step: WorkdirStep) -> None:
    """Perform a WORKDIR: what is missing of the path is made and belongs to the user of that moment.

    Raises:
        BuildFailed: the path cannot be, or there is no such user.
        InfraError: the sandbox is at fault.
    """
    _, uid, gid = _look(box, step.path, step.user, step.place, "USER ")
    done = box.exec(["/bin/sh", "-c", _MAKE, "sh", step.path, f"{uid}:{gid}"], merge_stderr=True)
    if done.return_code:
        raise BuildFailed(str(step.place), log_tail(done.stdout))


def _look(box: Box, path: str, owner: str, place: Place, flag: str) -> tuple[str, int, int]:
    """(``folder``, ``file`` or ``none``; uid and gid that `owner` means in the image)."""
    user, _, group = owner.partition(":")
    done = box.exec(["/bin/sh", "-c", _PROBE, "sh", path, user, group])
    if done.return_code in (45, 46):
        raise BuildFailed(str(place), f"{flag}{owner}: no such user or group in the image")
    words = done.stdout.decode(errors="replace").split()
    if done.return_code or len(words) != 3 or not (words[1] + words[2]).isdigit():
        raise InfraError(Boundary.BUILD, f"looking at {path} in the image failed: {log_tail(done.stderr)}")
    return words[0], int(words[1]), int(words[2])
