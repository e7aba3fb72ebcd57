"""What can be asked of a running sandbox: commands, and files in and out. `Sandbox` adds its life."""

import contextlib
import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import override

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.sandbox import streams, transfer
from skill2env.sandbox.channel import Channel
from skill2env.sandbox.chores import Chore
from skill2env.sandbox.command import OUTPUT_LIMIT_BYTES, Command, ExecOutcome, Executing
from skill2env.sandbox.guest_files import NOT_FOUND
from skill2env.sandbox.identity import Identity, subuid_fix
from skill2env.sandbox.layout import DEFAULT_PATH

_ASK_TIMEOUT_SEC = 30.0
_TRANSFER_TIMEOUT_SEC = 600.0
_ERROR_BYTES = 4096


class PathKind(IntEnum):
    """What is at a path inside."""

    OTHER = 0
    """Nothing, or neither file nor folder."""
    FILE = 1
    FOLDER = 2


class Guest(Executing):
    """Commands and files of a sandbox, through the channel to its process 1."""

    identity: Identity
    """How ids map."""
    breach: str
    """The limit for which everything inside was killed last, in words; empty when none."""

    @property
    @abstractmethod
    def channel(self) -> Channel:
        """The control channel.

        Raises:
            InfraError: the sandbox is not running.
        """

    @property
    def several_users(self) -> bool:
        """True when commands inside can run as different users."""
        return self.identity.several_users

    @abstractmethod
    def abandon(self, why: str) -> None:
        """End a sandbox that no longer does what it is asked.

        Raises:
            InfraError: always, with the reason.
        """

    # ------------------------------------------------------------------------------------------ commands

    @override
    def start_command(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        user: str | int | None = None,
        stdin: bytes | None = None,
        output_limit: int = OUTPUT_LIMIT_BYTES,
        merge_stderr: bool = False,
    ) -> Command:
        """Start a command that another thread may kill; for the arguments see `exec`."""
        if user not in (None, "", "root", 0, "0") and not self.identity.several_users:
            raise UserError(f"user {user!r} cannot exist in a single-uid sandbox", hint=subuid_fix())
        who = "root" if user is None or user == "" else str(user)
        variables = {"PATH": DEFAULT_PATH, **(env or {})}
        fields = [who, cwd, str(len(argv)), *argv, *(f"{name}={value}" for name, value in variables.items())]
        raw = [os.fsencode(field) for field in fields]
        if any(b"\0" in field for field in raw):
            raise ValueError("a NUL character in a command")
        pipes = streams.Pipes(stdin=stdin, merge_stderr=merge_stderr, limit=output_limit)
        return self._send("E", raw, pipes)

    def _send(self, operation: str, fields: Sequence[bytes], pipes: streams.Pipes) -> Command:
        with contextlib.ExitStack() as stack:
            stack.enter_context(pipes)
            ident, pending = self.channel.request(operation, fields, pipes.guest_ends)
            pipes.close_guest_ends()
            stack.pop_all()
        return Command(self, self.channel, ident, pending, pipes)

    # ------------------------------------------------------------------------------------------ files

    def put(self, source: Path, target: str, *, owner: str | None = None) -> None:
        """Copy a file or the content of a folder of the host to `target` inside.

        Args:
            source: regular file or folder; links inside a folder are copied as links.
            target: absolute path; for a file its full name, for a folder the folder that receives the content.
            owner: user name for everything copied; root when None.

        Raises:
            FileNotFoundError: there is no `source`.
            InfraError: the copy failed (disk full, sandbox gone).
        """
        source = Path(source)
        source.stat()
        done = self._transfer("P", [owner or "", target], stdin=transfer.pack(source))
        if done.return_code:
            told = _told(done)
            where = Boundary.STORAGE if "No space left" in told else Boundary.SANDBOX
            raise InfraError(where, f"copying to {target} failed: {told}")

    def get(
        self,
        source: str,
        target: Path,
        *,
        limit_bytes: int = transfer.LIMIT_BYTES,
        links: bool = False,
    ) -> None:
        """Copy a file or the content of a folder inside to `target` on the host: regular files and folders only.

        Args:
            source: absolute path inside.
            target: a file's full name, or the folder that receives the content (made when missing).
            limit_bytes: sum of sizes at most.
            links: also copy symbolic links that cannot lead out of `target`.

        Raises:
            FileNotFoundError: there is no `source`.
            TransferRefused: too much, or what no honest program would send.
            InfraError: the sandbox is gone, or the host cannot write.
        """
        with transfer.Unpacker(Path(target), limit_bytes=limit_bytes, links=links) as unpacker:
            try:
                done = self._transfer("G", [source], sink=unpacker.feed)
            except OSError as error:
                raise InfraError(Boundary.STORAGE, f"writing {target} failed: {error}") from error
            if done.return_code == NOT_FOUND:
                raise FileNotFoundError(source)
            if done.return_code or not unpacker.finished:
                raise transfer.TransferRefused(f"copying {source} failed: {_told(done)}")

    def make_folders(self, folders: Mapping[str, int | None]) -> None:
        """Make folders inside, with their parents, where they are missing: {path: mode to set, None to set none}.

        Raises:
            InfraError: one cannot be made.
        """
        fields = [
            part for path, mode in folders.items() for part in ("" if mode is None else f"{mode:o}", path)
        ]
        self._ask("D", fields)

    def empty_folders(self, folders: Sequence[str]) -> None:
        """Make folders inside empty, and writable by everybody; make those that are missing.

        Raises:
            InfraError: it failed.
        """
        done = self._transfer("X", folders)
        if done.return_code:
            raise InfraError(Boundary.SANDBOX, f"emptying {', '.join(folders)} failed: {_told(done)}")

    def kind(self, path: str) -> PathKind:
        """What a path inside leads to; links are followed.

        Raises:
            InfraError: the sandbox is gone.
        """
        code = self._ask("T", [path])
        return PathKind(code) if code in tuple(PathKind) else PathKind.OTHER

    def do_chore(self, chore: Chore) -> bool:
        """Let process 1 do a command by itself; False when nothing was done and the command must be run.

        Raises:
            InfraError: the sandbox is gone.
        """
        return self._ask(chore.request, chore.paths) == 0

    def _ask(self, operation: str, fields: Sequence[str]) -> int:
        """Let process 1 do something short by itself; the number that it answers."""
        ident, pending = self.channel.request(operation, [os.fsencode(field) for field in fields])
        try:
            if not pending.done.wait(_ASK_TIMEOUT_SEC):
                self.abandon("its first process does not answer any more")
        finally:
            self.channel.forget(ident)
        if pending.code is None:
            raise InfraError(Boundary.SANDBOX, f"the sandbox refused: {pending.error}")
        return pending.code

    def _transfer(
        self,
        operation: str,
        fields: Sequence[str],
        *,
        stdin: Iterator[bytes] | None = None,
        sink: streams.Sink | None = None,
    ) -> ExecOutcome:
        pipes = streams.Pipes(stdin=stdin, merge_stderr=False, limit=_ERROR_BYTES, sink=sink)
        raw = [os.fsencode(field) for field in fields]
        return self._send(operation, raw, pipes).wait(_TRANSFER_TIMEOUT_SEC)


def _told(done: ExecOutcome) -> str:
    """Why a transfer failed, in words."""
    told = done.stderr.decode(errors="replace").strip()[:500]
    return done.breach or told or f"code {done.return_code}"
