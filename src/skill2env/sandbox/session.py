"""One running sandbox: overlay root, no network, an init inside, and commands as its children.

Covers: file system (writes stay in a private upper layer), processes, network (only ``lo``; a proxy socket when asked),
kernel interfaces (`seccomp`), output floods, time-outs, and resource limits as far as this machine can enforce them
(`limits`, `Sandbox.enforced`). Does not cover: kernel bugs, and covert channels through shared processors or disk.

Synchronous and safe to use from several threads; each call of `exec` is one command.
"""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Self

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.sandbox import scratch, streams, transfer
from skill2env.sandbox.channel import Channel
from skill2env.sandbox.guest_files import NOT_FOUND
from skill2env.sandbox.identity import Identity, current_identity, subuid_fix
from skill2env.sandbox.launch import Launched, launch
from skill2env.sandbox.layout import DEFAULT_PATH, INSIDE, PROXY_PORT, Bind, arguments
from skill2env.sandbox.limits import DEFAULT_LIMITS, Confinement, Enforced, ResourceLimits
from skill2env.sandbox.watch import Watched, watcher

__all__ = [
    "PROXY_PORT",
    "Bind",
    "Command",
    "ExecOutcome",
    "PathKind",
    "ResourceLimits",
    "Sandbox",
    "SandboxSpec",
    "kill_all",
    "kill_started_by",
]

OUTPUT_LIMIT_BYTES = 16 * 2**20
TIMED_OUT = 124
KILLED = 137
_START_TIMEOUT_SEC = 30.0
_KILL_GRACE_SEC = 5.0
_ASK_TIMEOUT_SEC = 30.0
_TRANSFER_TIMEOUT_SEC = 600.0
_ERROR_BYTES = 4096


class PathKind(IntEnum):
    """What is at a path inside."""

    OTHER = 0
    """Nothing, or neither file nor folder."""
    FILE = 1
    FOLDER = 2


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """What a sandbox is made of."""

    layers: tuple[Path, ...]
    """Lower directories of the root file system, bottom first."""
    upper: Path | None = None
    """Folder that keeps the writes (layer building); None for a private one, removed at the end."""
    binds: tuple[Bind, ...] = ()
    proxy_socket: Path | None = None
    """Unix socket of a host-side HTTP proxy; None for no network at all."""
    limits: ResourceLimits = DEFAULT_LIMITS
    build: bool = False
    """True while a layer is built; never for trials."""
    hostname: str = "sandbox"


@dataclass(frozen=True, slots=True)
class ExecOutcome:
    """How one command ended."""

    return_code: int
    """Exit code; 128 + signal when killed; 124 after a time-out; 127 when it could not be started."""
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    truncated: bool = False
    """True when output beyond the limit was thrown away."""
    breach: str = ""
    """The limit for which everything inside was killed while the command ran, in words; empty when none."""


class Command:
    """A command that runs. `wait` for it exactly once; `kill` may be called from any thread."""

    def __init__(
        self, sandbox: "Sandbox", ident: int, pending: streams.Pending, pipes: streams.Pipes
    ) -> None:
        self._sandbox = sandbox
        self._channel = sandbox.channel
        self._ident = ident
        self._pending = pending
        self._pipes = pipes

    def kill(self) -> None:
        """Kill the command and everything that descends from it; without effect when it has ended."""
        self._channel.kill(self._ident)

    def wait(self, timeout_sec: float | None = None) -> ExecOutcome:
        """Move its input and output until it ends.

        Args:
            timeout_sec: after this it is killed; None for no limit.

        Raises:
            InfraError: the sandbox ended under the command.
        """
        pipes, pending = self._pipes, self._pending
        try:
            with pipes:
                timed_out = pipes.pump(pending, timeout_sec)
                if timed_out:
                    self.kill()
                    if pipes.pump(pending, _KILL_GRACE_SEC):
                        self._sandbox.abandon("its first process does not answer any more")
                return self._outcome(timed_out)
        except BaseException:
            self.kill()
            raise
        finally:
            self._channel.forget(self._ident)

    def _outcome(self, timed_out: bool) -> ExecOutcome:
        pipes, pending, breach = self._pipes, self._pending, self._sandbox.breach
        if timed_out:
            return ExecOutcome(TIMED_OUT, pipes.stdout, pipes.stderr, True, pipes.truncated, breach)
        if pending.ended:
            raise InfraError(Boundary.SANDBOX, "the sandbox ended while a command was running")
        if pending.error is not None:
            return ExecOutcome(127, b"", pending.error.encode(errors="replace"))
        code = pending.code if pending.code is not None else 1
        stderr = pipes.stderr + (f"\n{breach}\n".encode() if breach and code == KILLED else b"")
        return ExecOutcome(code, pipes.stdout, stderr, False, pipes.truncated, breach)


class Sandbox:
    """A context manager around one sandbox. `stop` is idempotent and kills everything inside.

    Raises (on entering):
        InfraError: the sandbox cannot be started here; the hint says what to do.
    """

    def __init__(self, spec: SandboxSpec, *, identity: Identity | None = None) -> None:
        self.spec = spec
        self.identity = identity or current_identity()
        self.enforced = Enforced()
        """Which limits are hard, watched or absent; filled when started."""
        self.breach = ""
        """The limit for which everything inside was killed last, in words."""
        self._life = threading.RLock()
        """Held while starting and stopping: a stop that comes early waits for the start to end."""
        self._launched: Launched | None = None
        self._scratch: scratch.Scratch | None = None
        self._channel: Channel | None = None
        self._confinement: Confinement | None = None
        self._watched: Watched | None = None
        self._stopped = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """Start process 1 and wait until it answers.

        Raises:
            InfraError: see the class.
        """
        with self._life:
            if self._stopped:
                raise InfraError(
                    Boundary.SANDBOX, "the sandbox was stopped before it started", transient=False
                )
            _alive[self] = threading.get_ident()
            try:
                self._scratch = scratch.Scratch.make(self.identity, self.spec.upper)
                self._confinement = Confinement(self.spec.limits, self.identity)
                self.enforced = self._confinement.enforced
                self._launch(self._scratch, self._confinement)
                if not self.channel.wait_ready(_START_TIMEOUT_SEC):
                    raise self._start_error()
                self._watch(self._scratch)
                if self.spec.proxy_socket is not None:
                    self._start_relay()
            except BaseException:
                self.stop()
                raise

    def _launch(self, folders: scratch.Scratch, confinement: Confinement) -> None:
        spec = self.spec
        host, guest = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with contextlib.ExitStack() as stack, guest:
            stack.callback(host.close)
            root = arguments(
                layers=spec.layers,
                upper=folders.upper,
                work=folders.work,
                guest=scratch.guest_folder(self.identity),
                binds=spec.binds,
                proxy_socket=spec.proxy_socket,
                hostname=spec.hostname,
                control=guest.fileno(),
                limits=confinement.per_process,
            )
            self._launched = launch(
                root,
                self.identity,
                pass_fds=(guest.fileno(),),
                build=spec.build,
                pinned=bool(confinement.pins),
                before_release=confinement.apply,
            )
            stack.pop_all()
        self._channel = Channel(host)

    def _start_error(self) -> InfraError:
        launched = self._launched
        told = ""
        if launched is not None:
            launched.kill()
            told = launched.told()
        missing = "python3" in told and "No such file" in told
        return InfraError(
            Boundary.SANDBOX,
            "the image has no /usr/bin/python3, which starts every command inside"
            if missing
            else f"the sandbox did not start: {told or 'no answer from its first process'}",
            hint="Keep the python3 of the base image (a Dockerfile must not remove it)."
            if missing
            else "Run `skill2env doctor`.",
            transient=not missing,
        )

    def _watch(self, folders: scratch.Scratch) -> None:
        names = self.enforced.watched
        if names and self._launched is not None:
            init_pid = self._launched.init_pid
            self._watched = Watched(
                init_pid, self.spec.limits, names, folders.upper, self.identity, self._breached
            )
            watcher.add(self._watched)

    def _breached(self, limit: str, sentence: str) -> None:
        if self._channel is None:
            return
        self.breach = sentence
        self._channel.kill_all(forbid_writes=limit == "storage_mb")

    def _start_relay(self) -> None:
        self._ask("L", [str(PROXY_PORT), f"{INSIDE}/proxy.sock"])

    def abandon(self, why: str) -> None:
        """End a sandbox that no longer does what it is asked.

        Raises:
            InfraError: always, with the reason.
        """
        if self._launched is not None:
            self._launched.kill()
        raise InfraError(Boundary.SANDBOX, f"the sandbox was ended: {why}")

    def stop(self, *, keep: str = "") -> Path | None:
        """Kill everything inside, wait for it, and remove the private upper layer. A later call does nothing.

        Args:
            keep: move the private upper layer to this name below the cache folder's ``kept/`` instead.

        Returns:
            Where it was kept; None when it was removed.
        """
        with self._life:
            self._stopped = True
            _alive.pop(self, None)
            launched, self._launched = self._launched, None
            channel, self._channel = self._channel, None
            folders, self._scratch = self._scratch, None
            confinement, self._confinement = self._confinement, None
            watched, self._watched = self._watched, None
            if watched is not None:
                watcher.remove(watched)
            if launched is not None:
                launched.end()
            if channel is not None:
                channel.close()
            if confinement is not None:
                confinement.release()
            return folders.remove(keep=keep) if folders is not None else None

    def kill(self) -> None:
        """Kill everything inside at once; commands that wait end with an `InfraError`. `stop` is still needed."""
        launched = self._launched
        if launched is not None:
            launched.signal()

    @property
    def running(self) -> bool:
        """True between `start` and the end of process 1."""
        return self._channel is not None and not self._channel.ended.is_set()

    @property
    def channel(self) -> Channel:
        """The control channel.

        Raises:
            InfraError: the sandbox is not running.
        """
        channel = self._channel
        if channel is None:
            raise InfraError(Boundary.SANDBOX, "the sandbox is not running")
        return channel

    # ------------------------------------------------------------------------------------------ commands

    def exec(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        user: str | int | None = None,
        stdin: bytes | None = None,
        timeout_sec: float | None = None,
        output_limit: int = OUTPUT_LIMIT_BYTES,
        merge_stderr: bool = False,
    ) -> ExecOutcome:
        """Run one command to its end.

        Args:
            argv: program and arguments; the program is looked up in the environment's PATH.
            cwd: absolute working directory inside.
            env: added to PATH and HOME.
            user: name from the sandbox's /etc/passwd or a uid, or ``user:group``; None for root.
            stdin: bytes to feed, None for an empty input.
            timeout_sec: after this it is killed with all its descendants; None for no limit.
            output_limit: bytes kept of each stream; the rest is read and thrown away.
            merge_stderr: send stderr to stdout.

        Raises:
            InfraError: the sandbox ended under the command.
            UserError: another user was asked for where there is only one.
            ValueError: a NUL character in an argument or a variable.
        """
        command = self.start_command(
            argv,
            cwd=cwd,
            env=env,
            user=user,
            stdin=stdin,
            output_limit=output_limit,
            merge_stderr=merge_stderr,
        )
        return command.wait(timeout_sec)

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
        return Command(self, ident, pending, pipes)

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
        return PathKind(self._ask("T", [path]))

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

    def wait_ended(self, timeout_sec: float) -> bool:
        """True when process 1 ended within the time."""
        channel = self._channel
        return channel is None or channel.ended.wait(timeout_sec)


def _told(done: ExecOutcome) -> str:
    """Why a transfer failed, in words."""
    told = done.stderr.decode(errors="replace").strip()[:500]
    return done.breach or told or f"code {done.return_code}"


_alive: dict[Sandbox, int] = {}
"""Sandboxes that are started and not stopped, and the thread that started each."""


def kill_started_by(thread: int) -> None:
    """Kill the sandboxes that a thread started and still waits for, so that it ends soon."""
    for sandbox, owner in tuple(_alive.items()):
        if owner == thread:
            sandbox.kill()


def kill_all() -> None:
    """Kill every sandbox of this process; whoever waits for one gets an `InfraError`."""
    for sandbox in tuple(_alive):
        sandbox.kill()
