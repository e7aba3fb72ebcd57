"""A commit of a git repository: objects are fetched into a bare copy and read from there.

Nothing is ever checked out, so no hook, filter (LFS smudge among them), file-system monitor or attribute of the
repository takes effect, names that collide on this file system cost nothing but themselves, and submodules and LFS
contents are reported instead of fetched. Prompts for credentials are off, and so are transports that are commands.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.hub.folder import Hub, resolved
from skill2env.hub.records import LOGIN, Fetched, SourceSpec
from skill2env.hub.sources.base import Place
from skill2env.hub.unpack import BadArchive, SafeTree, UnpackLimits
from skill2env.records import digest_bytes
from skill2env.store.files import storage

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SCP = re.compile(r"[\w.-]+@[\w.-]+:(?!/)\S+")
_URL = re.compile(r"(?:https?|ssh|git|file)://\S+")
_TIMEOUT_SEC = 1800
_LS_TIMEOUT_SEC = 120
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
class GitSource:
    """Fetches one commit, without its history."""

    hub: Hub
    spec: SourceSpec
    offline: bool = False
    """Ask nobody which commit is meant."""
    stored: str = ""
    """The commit that an earlier sync of the same registration brought; used when `offline`."""

    def state(self) -> str:
        """See `Source.state`. A pinned commit is known at once; else the remote is asked, or `stored` is taken."""
        return f"git:{self._commit()}"

    def fetch(self, place: Place) -> Fetched:
        """See `Source.fetch`."""
        commit = self._commit()
        limits = UnpackLimits()
        bare = self.hub.downloads / "git" / digest_bytes(self._url().encode())[-32:]
        if self._git(bare, "cat-file", "-e", f"{commit}^{{tree}}", check=False).returncode:
            place.tell(f"fetching {self._shown()}")
            self._bring(bare, commit, offline=place.offline)
        root = place.scratch / "tree"
        root.mkdir()
        tree = SafeTree(root, limits)
        try:
            self._write(bare, commit, tree, limits)
            found = tree.finish()
        except BadArchive as error:
            raise UserError(
                f"source {self.spec.id}: the repository is refused: {error.message}", hint=error.hint
            ) from None
        return Fetched(root.resolve(), commit, f"git:{self._shown()}@{commit}", diagnostics=found)

    def _url(self) -> str:
        location = self.spec.location
        if location.startswith("-") or "::" in location:
            raise UserError(
                f"source {self.spec.id}: {self._shown()} is no repository", hint="give a URL, or a folder"
            )
        if _URL.fullmatch(location) or _SCP.fullmatch(location):
            return location
        path = resolved(self.hub, location)
        if not path.is_dir():
            raise UserError(
                f"source {self.spec.id}: {path} is no repository", hint="give a URL, or a local mirror"
            )
        return str(path)

    def _shown(self) -> str:
        """The URL without what may be a password."""
        return LOGIN.sub("", self.spec.location)

    def _commit(self) -> str:
        revision = self.spec.revision.lower()
        if _COMMIT.fullmatch(revision):
            return revision
        if revision and not re.fullmatch(r"[\w./-]{1,200}", self.spec.revision):
            raise UserError(
                f"source {self.spec.id}: {self.spec.revision!r} is no commit, branch or tag",
                hint="pin a commit",
            )
        if self.offline:
            if not _COMMIT.fullmatch(self.stored):
                raise self._not_fetched(self.spec.revision or "its newest commit")
            return self.stored
        wanted = self.spec.revision or "HEAD"
        done = self._run(
            ["git", *_options(), "ls-remote", "--", self._url(), wanted, f"{wanted}^{{}}"], _LS_TIMEOUT_SEC
        )
        if done.returncode:
            raise self._failed("asking", done.stderr)
        lines = [line.split("\t") for line in done.stdout.decode("utf-8", "replace").splitlines()]
        refs = {name: commit for commit, _, name in ((line[0], 0, line[-1]) for line in lines)}
        for name in (
            f"refs/tags/{wanted}^{{}}",
            f"refs/tags/{wanted}",
            f"refs/heads/{wanted}",
            wanted,
        ):
            if name in refs and _COMMIT.fullmatch(refs[name]):
                return refs[name]
        raise UserError(f"source {self.spec.id}: {self._shown()} has no {wanted}", hint="pin a commit")

    def _bring(self, bare: Path, commit: str, *, offline: bool) -> None:
        if offline:
            raise self._not_fetched(f"commit {commit}")
        with storage("making", bare):
            bare.mkdir(parents=True, exist_ok=True)
        done = self._git(bare, "init", "--quiet", "--bare", "--template=", check=False)
        if done.returncode:
            raise self._failed("preparing", done.stderr)
        common = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]
        done = self._git(bare, *common, "--depth=1", "--", self._url(), commit, check=False)
        if done.returncode:  # servers may refuse to give a commit by its name; then all branches are fetched
            refs = "+refs/*:refs/remotes/all/*"
            done = self._git(bare, *common, "--", self._url(), refs, check=False)
        if done.returncode:
            raise self._failed("fetching", done.stderr)
        if self._git(bare, "cat-file", "-e", f"{commit}^{{tree}}", check=False).returncode:
            raise UserError(f"source {self.spec.id}: {self._shown()} has no commit {commit}")

    def _not_fetched(self, what: str) -> InfraError:
        return InfraError(
            Boundary.NETWORK,
            f"source {self.spec.id}: {what} was not fetched before, and --offline forbids it now",
            hint="run the same command without --offline once",
            transient=False,
        )

    def _listed(self, bare: Path, commit: str, limits: UnpackLimits) -> Iterator[tuple[str, bytes, str]]:
        """Mode, object and path of everything in a commit, folders too, as git comes to it.

        A few small trees that hold each other many times over unfold without end, so nothing waits for the last entry.
        """
        command = [
            "git",
            *_options(),
            "--git-dir",
            str(bare),
            "ls-tree",
            "-r",
            "-t",
            "-z",
            "--full-tree",
            commit,
        ]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_env()
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
            raise self._failed(
                "reading", f"fatal: its files cannot be listed ({process.returncode})".encode()
            )

    def _write(self, bare: Path, commit: str, tree: SafeTree, limits: UnpackLimits) -> None:
        wanted: list[tuple[str, str, bytes]] = []
        for mode, oid, name in self._listed(bare, commit, limits):
            if mode == "040000":
                continue
            if mode == "160000":
                tree.refuse(name, "a submodule; register its repository as a source of its own", "submodule")
            elif mode in _PLAIN or mode == "120000":
                wanted.append((mode, name, oid))
            else:
                tree.refuse(name, f"mode {mode}")
        command = ["git", *_options(), "--git-dir", str(bare), "cat-file", "--batch", "--buffer"]
        # The names go through a file: a pipe in both directions could fill up at both ends.
        names = bare / f".names-{os.getpid()}"
        with storage("writing", names):
            names.write_bytes(b"".join(oid + b"\n" for _, _, oid in wanted))
        try:
            with (
                names.open("rb") as asked,
                subprocess.Popen(
                    command, stdin=asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_env()
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

    def _one(self, stream: IO[bytes], mode: str, name: str, tree: SafeTree) -> None:
        head = stream.readline().split()
        if len(head) != 3 or head[1] != b"blob":
            raise InfraError(
                Boundary.STORAGE,
                f"source {self.spec.id}: the copy of the repository lacks {name!r}",
                hint=f"remove {self.hub.downloads / 'git'} and run again",
                transient=False,
            )
        blob = _Blob(stream, int(head[2]))
        tree.passed(int(head[2]))  # git hands over all of it, also where the name is refused
        if mode == "120000":
            tree.link(name, blob.read(4096).decode("utf-8", "replace"))
        else:
            tree.file(name, blob, executable=_PLAIN[mode])
        blob.skip()

    def _git(self, bare: Path, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[bytes]":
        done = self._run(["git", *_options(), "--git-dir", str(bare), *arguments], _TIMEOUT_SEC)
        if check and done.returncode:
            raise self._failed("reading", done.stderr)
        return done

    def _run(self, command: list[str], timeout: float) -> "subprocess.CompletedProcess[bytes]":
        try:
            return subprocess.run(
                command,
                env=_env(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=timeout,
            )
        except FileNotFoundError:
            raise UserError(f"source {self.spec.id} needs git, which is not installed") from None
        except subprocess.TimeoutExpired:
            raise self._failed("waiting for", b"no answer in time") from None

    def _failed(self, doing: str, said: bytes) -> InfraError:
        lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
        told = next((line for line in lines if line.startswith(("fatal", "error"))), " ".join(lines[-1:]))
        shown = LOGIN.sub("", told)[:300]
        return InfraError(
            Boundary.NETWORK,
            f"source {self.spec.id}: {doing} {self._shown()} failed: {shown}",
            hint="what is stored is kept; run the same command again",
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


def _options() -> list[str]:
    return [word for setting in _SETTINGS for word in ("-c", setting)]


def _env() -> dict[str, str]:
    """The environment without what makes git run or read something of somebody's choice."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "SSH_ASKPASS": "true",
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes", "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_LFS_SKIP_SMUDGE": "1", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}  # fmt: skip
