"""A commit of a git repository: objects are fetched into a bare copy and read from there.

Nothing is ever checked out, so no hook, filter (LFS smudge among them), file-system monitor or attribute of the
repository takes effect, names that collide on this file system cost nothing but themselves, and submodules and LFS
contents are reported instead of fetched. Prompts for credentials are off, and so are transports that are commands.
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.hub.folder import Hub, resolved
from skill2env.hub.records import LOGIN, Fetched, SourceSpec
from skill2env.hub.safe_tree import SafeTree, UnpackLimits
from skill2env.hub.sources.base import Place
from skill2env.hub.sources.download import not_held
from skill2env.hub.sources.git_objects import Commit, env, options
from skill2env.hub.tar_stream import BadArchive
from skill2env.records import digest_bytes
from skill2env.store.files import storage

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SCP = re.compile(r"[\w.-]+@[\w.-]+:(?!/)\S+")
_URL = re.compile(r"(?:https?|ssh|git|file)://\S+")
_TIMEOUT_SEC = 1800
_LS_TIMEOUT_SEC = 120


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
            Commit(self.spec.id, bare, commit).write(tree, limits)
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
                raise not_held(self.spec, self.spec.revision or "its newest commit")
            return self.stored
        wanted = self.spec.revision or "HEAD"
        done = self._run(
            ["git", *options(), "ls-remote", "--", self._url(), wanted, f"{wanted}^{{}}"], _LS_TIMEOUT_SEC
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
            raise not_held(self.spec, f"commit {commit}")
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

    def _git(self, bare: Path, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[bytes]":
        done = self._run(["git", *options(), "--git-dir", str(bare), *arguments], _TIMEOUT_SEC)
        if check and done.returncode:
            raise self._failed("reading", done.stderr)
        return done

    def _run(self, command: list[str], timeout: float) -> "subprocess.CompletedProcess[bytes]":
        try:
            return subprocess.run(
                command,
                env=env(),
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
