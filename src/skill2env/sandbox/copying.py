"""COPY into an image under construction, by tools of that image, so that owners and links are the image's own."""

import posixpath

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox import context as ctx
from skill2env.sandbox.command import log_tail
from skill2env.sandbox.dockerfile import BuildFailed
from skill2env.sandbox.recipe import CopyStep
from skill2env.sandbox.session import Sandbox

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
_EXTRACT = r"""
make() { [ -d "$1" ] || { make "$(dirname -- "$1")" "$2" && mkdir -- "$1" && chown "$2" -- "$1"; } || exit 1; }
make "$1" "$2"
exec tar -xpf - --numeric-owner --keep-directory-symlink -C "$1"
"""
_ARCHIVES = ((b"\x1f\x8b", 0), (b"BZh", 0), (b"\xfd7zXZ\0", 0), (b"\x28\xb5\x2f\xfd", 0), (b"ustar", 257))


def copy_into(box: Sandbox, step: CopyStep, sources: list[ctx.Source]) -> None:
    """Perform a COPY, or an ADD that downloads and unpacks nothing.

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
    sources = [*sources, *literal]
    if step.unpack:
        _refuse_archives(step, sources)
    kind, uid, gid = _target(box, step)
    many = len(sources) > 1
    if many and not step.target.endswith("/"):
        raise BuildFailed(str(step.place), "several files match: the target must be a folder and end in /")
    for source in sources:
        into_folder = source.is_folder or step.target.endswith("/") or kind == "folder"
        if into_folder and kind == "file":
            raise BuildFailed(
                str(step.place), f"{step.target} is a file in the image and a folder was to be copied there"
            )
        folder, name = (step.target, "") if into_folder else posixpath.split(step.target)
        fresh = source.is_folder and kind == "none"
        members = [(name or entry.name, entry) for entry in source.entries if entry.name != "." or fresh]
        data = ctx.archive(members, uid=uid, gid=gid, mode=step.mode, mtime=FILE_TIME, place=step.place)
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


def _target(box: Sandbox, step: CopyStep) -> tuple[str, int, int]:
    user, _, group = step.owner.partition(":")
    done = box.exec(["/bin/sh", "-c", _PROBE, "sh", step.target, user, group])
    if done.return_code in (45, 46):
        raise BuildFailed(str(step.place), f"--chown={step.owner}: no such user or group in the image")
    words = done.stdout.decode(errors="replace").split()
    if done.return_code or len(words) != 3 or not (words[1] + words[2]).isdigit():
        raise InfraError(
            Boundary.BUILD, f"looking at {step.target} in the image failed: {log_tail(done.stderr)}"
        )
    return words[0], int(words[1]), int(words[2])


def _refuse_archives(step: CopyStep, sources: list[ctx.Source]) -> None:
    for source in sources:
        if source.is_folder or source.entries[0].path is None:
            continue
        with source.entries[0].path.open("rb") as file:
            head = file.read(512)
        if any(head[at : at + len(magic)] == magic for magic, at in _ARCHIVES):
            raise BuildFailed(
                str(step.place),
                "ADD would unpack this archive, which is not supported",
                hint="COPY it and unpack it in a RUN.",
            )
