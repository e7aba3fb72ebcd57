"""One running sandbox: overlay root, no network, an init inside, and commands as its children.

Covers: file system (writes stay in a private upper layer), processes, network (only ``lo``; a proxy socket when asked),
kernel interfaces (`seccomp`), output floods, time-outs, and resource limits as far as this machine can enforce them
(`limits`, `Sandbox.enforced`). Does not cover: kernel bugs, and covert channels through shared processors or disk.

Synchronous and safe to use from several threads; each call of `exec` is one command.
"""

import contextlib
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, override

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox import scratch
from skill2env.sandbox.channel import Channel
from skill2env.sandbox.command import Command, ExecOutcome
from skill2env.sandbox.guest import Guest, PathKind
from skill2env.sandbox.identity import Identity, current_identity
from skill2env.sandbox.launch import Launched, launch
from skill2env.sandbox.layout import INSIDE, PROXY_PORT, Bind, arguments
from skill2env.sandbox.limits import DEFAULT_LIMITS, Confinement, Enforced, ResourceLimits
from skill2env.sandbox.watch import Watched, files_at_most, watcher

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

_START_TIMEOUT_SEC = 30.0
HOSTNAME = "sandbox"
"""Usual name of the machine inside."""


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
    forwards: Mapping[int, Path] = field(default_factory=dict[int, Path])
    """Port of 127.0.0.1 inside -> Unix socket of the host that its connections go to."""
    limits: ResourceLimits = DEFAULT_LIMITS
    build: bool = False
    """True while a layer is built; never for trials."""
    hostname: str = HOSTNAME


class Sandbox(Guest):
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
                self._start_relays()
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
                binds=(
                    *spec.binds,
                    *(Bind(path, _forward(port), writable=True) for port, path in spec.forwards.items()),
                ),
                proxy_socket=spec.proxy_socket,
                hostname=spec.hostname,
                control=guest.fileno(),
                limits=confinement.per_process,
                build=spec.build,
            )
            self._launched = launch(
                root,
                self.identity,
                pass_fds=(guest.fileno(),),
                build=spec.build,
                pinned=bool(confinement.pins),
                watched="memory_mb" in confinement.enforced.watched,
                while_starting=confinement.entered,
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
            self._watched.files = files_at_most(folders.upper)
            watcher.add(self._watched)

    def _breached(self, limit: str, sentence: str) -> None:
        if self._channel is None:
            return
        self.breach = sentence
        self._channel.kill_all(forbid_writes=limit == "storage_mb")

    def _start_relays(self) -> None:
        if self.spec.proxy_socket is not None:
            self._ask("L", [str(PROXY_PORT), f"{INSIDE}/proxy.sock"])
        for port in self.spec.forwards:
            self._ask("L", [str(port), _forward(port)])

    @override
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
    @override
    def channel(self) -> Channel:
        """The control channel.

        Raises:
            InfraError: the sandbox is not running.
        """
        channel = self._channel
        if channel is None:
            raise InfraError(Boundary.SANDBOX, "the sandbox is not running")
        return channel


def _forward(port: int) -> str:
    return f"{INSIDE}/forward-{port}.sock"


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
