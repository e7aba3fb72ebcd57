"""The files of one commit of a bare repository, read from git's own programs as streams."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from skill2env.errors import Boundary, InfraError
from skill2env.hub.safe_tree import SafeTree, UnpackLimits
from skill2env.hub.tar_stream import BadArchive
from skill2env.store.files import storage

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=true",
    "core.gitProxy=",
    "credential.interactive=false",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "protocol.https.allow=always",
    "protocol.http.allow=always",
    "protocol.ssh.allow=always",
    "protocol.git.allow=always",
    "protocol.file.allow=always",
    "protocol.ext.allow=never",
    "filter.lfs.smudge=",
    "filter.lfs.process=",
    "submodule.recurse=false",
)
_PIECE = 1 << 16
_LISTING_BYTES = 256 * 2**20
_PLAIN = {"100644": False, "100755": True, "100664": False}


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit in a bare repository that holds all of it."""

    source: str
    """Id of the source, for messages."""
    bare: Path
    name: str

    def write(self, tree: SafeTree, limits: UnpackLimits) -> None:
        """Write its files.

        Raises:
            BadArchive: the limits are reached.
            InfraError: boundary ``storage``; the repository is damaged, or the disk fails.
        """
        wanted: list[tuple[str, str, bytes]] = []
        for mode, oid, name in self._listed(limits):
            if mode == "040000":
                continue
            if mode == "160000":
                tree.refuse(name, "a submodule; register its repository as a source of its own", "submodule")
            elif mode in _PLAIN or mode == "120000":
                wanted.append((mode, name, oid))
            else:
                tree.refuse(name, f"mode {mode}")
        command = ["git", *options(), "--git-dir", str(self.bare), "cat-file", "--batch", "--buffer"]
        # The names go through a file: a pipe in both directions could fill up at both ends.
        names = self.bare / f".names-{os.getpid()}"
        with storage("writing", names):
            names.write_bytes(b"".join(oid + b"\n" for _, _, oid in wanted))
        try:
            with (
                names.open("rb") as asked,
                subprocess.Popen(
                    command, stdin=asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env()
                ) as process,
            ):
                assert process.stdout is not None
                try:
                    for mode, name, _ in wanted:
                        self._one(process.stdout, mode, name, tree)
                except BaseException:
                    process.kill()
                    raise
        finally:
            names.unlink(missing_ok=True)

    def _listed(self, limits: UnpackLimits) -> Iterator[tuple[str, bytes, str]]:
        """Mode, object and path of everything in a commit, folders too, as git comes to it.

        A few small trees that hold each other many times over unfold without end, so nothing waits for the last entry.
        """
        command = [
            "git",
            *options(),
            "--git-dir",
            str(self.bare),
            "ls-tree",
            "-r",
            "-t",
            "-z",
            "--full-tree",
            self.name,
        ]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env()
        ) as process:
            assert process.stdout is not None
            try:
                for number, entry in enumerate(_entries(process.stdout), 1):
                    if number > limits.members:
                        raise BadArchive(f"it holds more than {limits.members:,} files and folders")
                    yield entry
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            raise self._damaged(f"its files cannot be listed ({process.returncode})")

    def _one(self, stream: IO[bytes], mode: str, name: str, tree: SafeTree) -> None:
        head = stream.readline().split()
        if len(head) != 3 or head[1] != b"blob":
            raise self._damaged(f"it lacks {name!r}")
        blob = _Blob(stream, int(head[2]))
        tree.passed(int(head[2]))  # git hands over all of it, also where the name is refused
        if mode == "120000":
            tree.link(name, blob.read(4096).decode("utf-8", "replace"))
        else:
            tree.file(name, blob, executable=_PLAIN[mode])
        blob.skip()

    def _damaged(self, why: str) -> InfraError:
        return InfraError(
            Boundary.STORAGE,
            f"source {self.source}: the copy of the repository is damaged: {why}",
            hint=f"remove {self.bare} and run again",
            transient=False,
        )


class _Blob:
    """One object of git's stream, as a file that ends where the object does."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream = stream
        self._left = size

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._stream.read(wanted)
        self._left -= len(data)
        return data

    def skip(self) -> None:
        """Pass over what was not read, and over the line end after it."""
        while self._left and self.read(1 << 20):
            pass
        self._stream.read(1)


def _entries(listed: IO[bytes]) -> Iterator[tuple[str, bytes, str]]:
    rest, total = b"", 0
    while piece := os.read(listed.fileno(), _PIECE):
        total += len(piece)
        *entries, rest = (rest + piece).split(b"\0")
        if len(rest) > _PIECE or total > _LISTING_BYTES:
            raise BadArchive("the names of its files are too long")
        for entry in entries:
            facts, _, name = entry.partition(b"\t")
            mode, _, oid = facts.split(b" ")
            yield mode.decode(), oid, os.fsdecode(name)


def options() -> list[str]:
    """Settings for every call of git: no hook, no helper program, no prompt, no transport that is a command."""
    return [word for setting in _SETTINGS for word in ("-c", setting)]


def env() -> dict[str, str]:
    """The environment without what makes git run or read something of somebody's choice."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "SSH_ASKPASS": "true",
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes", "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_LFS_SKIP_SMUDGE": "1", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}  # fmt: skip
