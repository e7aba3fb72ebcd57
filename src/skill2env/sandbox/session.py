"""One running sandbox: overlay root, no network, an init inside, and commands as its children.

Covers: file system (writes stay in a private upper layer), processes, network (only ``lo``; a proxy socket when asked),
kernel interfaces (`seccomp`), output floods, time-outs, memory and process limits as `limits` can enforce them here.
Does not cover: kernel bugs, and covert channels through shared CPU or disk.

Synchronous and safe to use from several threads; each call of `exec` is one command.
"""

import contextlib
import json
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Self

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.sandbox import scratch, streams
from skill2env.sandbox.identity import SUBUID_FIX, Identity, current_identity
from skill2env.sandbox.launch import Launched, launch
from skill2env.sandbox.limits import Enforced, ResourceLimits, apply_limits, release_limits

__all__ = ["Bind", "ExecOutcome", "ResourceLimits", "Sandbox", "SandboxSpec"]

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROXY_PORT = 3128
"""Port on 127.0.0.1 inside that relays to the host-side proxy."""
OUTPUT_LIMIT_BYTES = 16 * 2**20
_INSIDE = "/run/skill2env"
_START_TIMEOUT_SEC = 30.0
_KILL_GRACE_SEC = 5.0


@dataclass(frozen=True, slots=True)
class Bind:
    """A host path visible inside; read-only unless `writable`."""

    source: Path
    target: str
    writable: bool = False


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
    limits: ResourceLimits = field(default_factory=ResourceLimits)
    build: bool = False
    """True while a layer is built; never for trials."""
    hostname: str = "sandbox"


@dataclass(frozen=True, slots=True)
class ExecOutcome:
    """How one command ended."""

    return_code: int
    """Exit code; 128 + signal when killed; 124 after a time-out."""
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    truncated: bool = False
    """True when output beyond the limit was thrown away."""


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
        self._launched: Launched | None = None
        self._scratch: scratch.Scratch | None = None
        self._control: socket.socket | None = None
        self._send_lock = threading.Lock()
        self._lock = threading.Lock()
        self._waiting: dict[int, streams.Pending] = {}
        self._next = 0
        self._ended = threading.Event()
        self._ready = threading.Event()

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
        self._scratch = scratch.Scratch.make(self.identity, self.spec.upper)
        host, guest = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = host
        try:
            with guest:
                arguments = [
                    *self._arguments(),
                    "--",
                    "/usr/bin/python3",
                    "-I",
                    "-S",
                    "-B",
                    f"{_INSIDE}/init.py",
                    str(guest.fileno()),
                ]
                self._launched = launch(
                    arguments,
                    self.identity,
                    pass_fds=(guest.fileno(),),
                    build=self.spec.build,
                    before_release=self._apply_limits,
                )
            threading.Thread(target=self._listen, name="sandbox-control", daemon=True).start()
            if not self._ready.wait(_START_TIMEOUT_SEC) or self._ended.is_set():
                raise InfraError(
                    Boundary.SANDBOX,
                    f"the sandbox did not start: {self._told() or 'no answer from its first process'}",
                    hint="The image needs /usr/bin/python3; run `skill2env doctor` for the machine's side.",
                    transient=False,
                )
            if self.spec.proxy_socket is not None:
                self._start_relay()
        except BaseException:
            self.stop()
            raise

    def _apply_limits(self, pid: int) -> None:
        self.enforced = apply_limits(pid, self.spec.limits)

    def _arguments(self) -> list[str]:
        assert self._scratch is not None
        here = Path(__file__).parent
        arguments = [
            "--hostname",
            self.spec.hostname,
            "--clearenv",
            "--setenv",
            "PATH",
            PATH,
            "--setenv",
            "LC_ALL",
            "C.UTF-8",
        ]
        for layer in self.spec.layers:
            arguments += ["--overlay-src", str(layer)]
        arguments += ["--overlay", str(self._scratch.upper), str(self._scratch.work), "/"]
        arguments += ["--dev", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
        arguments += ["--perms", "1777", "--tmpfs", "/dev/shm", "--perms", "0755", "--tmpfs", "/run"]
        arguments += [
            "--dir",
            _INSIDE,
            "--ro-bind",
            str(self._scratch.readable(here / "guest_init.py")),
            f"{_INSIDE}/init.py",
        ]
        if self.spec.proxy_socket is not None:
            arguments += ["--ro-bind", str(self._scratch.readable(here / "relay.py")), f"{_INSIDE}/relay.py"]
            arguments += ["--bind", str(self.spec.proxy_socket), f"{_INSIDE}/proxy.sock"]
        for bind in self.spec.binds:
            arguments += ["--bind" if bind.writable else "--ro-bind", str(bind.source), bind.target]
        return arguments

    def _start_relay(self) -> None:
        relay = [
            "/usr/bin/python3",
            "-I",
            "-S",
            "-B",
            f"{_INSIDE}/relay.py",
            f"{_INSIDE}/proxy.sock",
            str(PROXY_PORT),
        ]
        started = self.exec(
            ["/bin/sh", "-c", 'exec "$@" </dev/null >/dev/null 2>&1 & exit 0', "sh", *relay], timeout_sec=10
        )
        probe = (
            "import socket,sys,time\n"
            "for _ in range(200):\n"
            f"    try: socket.create_connection(('127.0.0.1', {PROXY_PORT}), 1).close(); sys.exit(0)\n"
            "    except OSError: time.sleep(0.02)\n"
            "sys.exit(1)"
        )
        if (
            started.return_code
            or self.exec(["/usr/bin/python3", "-I", "-S", "-c", probe], timeout_sec=15).return_code
        ):
            raise InfraError(Boundary.SANDBOX, "the network relay inside the sandbox did not start")

    def _told(self) -> str:
        """What bubblewrap printed, once it has ended."""
        if self._launched is None:
            return ""
        process = self._launched.process
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)
        if process.returncode is None:
            return ""
        assert process.stderr is not None
        return process.stderr.read(4000).decode(errors="replace").strip()

    def stop(self) -> None:
        """Kill everything inside, wait for it, and remove the private upper layer."""
        with self._lock:
            launched, self._launched = self._launched, None
            control, self._control = self._control, None
            held, self._scratch = self._scratch, None
        if launched is not None:
            launched.process.kill()
            launched.process.wait()
            if launched.process.stderr is not None:
                launched.process.stderr.close()
        if control is not None:
            with contextlib.suppress(OSError):
                control.shutdown(socket.SHUT_RDWR)
            self._ended.wait(2)
            control.close()
        release_limits(self.enforced)
        if held is not None:
            held.remove()

    @property
    def running(self) -> bool:
        """True between `start` and the end of process 1."""
        return self._launched is not None and not self._ended.is_set()

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
            env: added to PATH, HOME and LC_ALL.
            user: name from the sandbox's /etc/passwd or a uid; None for root.
            stdin: bytes to feed, None for an empty input.
            timeout_sec: after this the whole session of the command is killed; None for no limit.
            output_limit: bytes kept of each stream; the rest is read and thrown away.
            merge_stderr: send stderr to stdout.

        Raises:
            InfraError: the sandbox ended under the command.
            UserError: another user was asked for where there is only one.
        """
        if user not in (None, "root", 0, "0") and not self.identity.several_users:
            raise UserError(
                f"user {user!r} cannot exist in a single-uid sandbox",
                hint=f"As root: {SUBUID_FIX}",
            )
        environment = {"PATH": PATH, "LC_ALL": "C.UTF-8", **(env or {})}
        request: dict[str, object] = {
            "op": "exec",
            "argv": list(argv),
            "cwd": cwd,
            "env": environment,
            "user": user,
        }
        if self.spec.limits.pids:
            request["nproc"] = self.spec.limits.pids
        with streams.Pipes(stdin=stdin, merge_stderr=merge_stderr, limit=output_limit) as pipes:
            ident, pending = self._send(request, pipes.guest_ends)
            pipes.close_guest_ends()
            try:
                timed_out = pipes.pump(pending, timeout_sec)
                if timed_out:
                    self._send_raw({"op": "kill", "id": ident})
                    pipes.pump(pending, _KILL_GRACE_SEC)
            finally:
                with self._lock:
                    self._waiting.pop(ident, None)
            if not timed_out and pending.error is not None:
                if pending.ended:
                    raise InfraError(Boundary.SANDBOX, "the sandbox ended while a command was running")
                return ExecOutcome(127, b"", pending.error.encode())
            code = 124 if timed_out else pending.code if pending.code is not None else 1
            return ExecOutcome(code, pipes.stdout, pipes.stderr, timed_out, pipes.truncated)

    def _send(self, request: dict[str, object], files: Sequence[int]) -> tuple[int, streams.Pending]:
        pending = streams.Pending()
        with self._lock:
            self._next += 1
            ident = self._next
            self._waiting[ident] = pending
        self._send_raw({**request, "id": ident}, files)
        return ident, pending

    def _send_raw(self, request: dict[str, object], files: Sequence[int] = ()) -> None:
        control = self._control
        if control is None or self._ended.is_set():
            raise InfraError(Boundary.SANDBOX, "the sandbox is not running")
        packet = json.dumps(request).encode()
        try:
            with self._send_lock:
                socket.send_fds(control, [packet], list(files))
        except OSError as error:
            raise InfraError(Boundary.SANDBOX, f"cannot talk to the sandbox: {error}") from error

    def _listen(self) -> None:
        """Deliver the init's answers. Everything it says is untrusted: unknown ids and odd values are ignored."""
        control = self._control
        assert control is not None
        while True:
            try:
                packet = control.recv(65536)
            except OSError:
                packet = b""
            if not packet:
                break
            try:
                answer = json.loads(packet)
                ident = answer.get("id")
            except (ValueError, AttributeError):
                continue
            if answer.get("ready") is True:
                self._ready.set()
                continue
            with self._lock:
                pending = self._waiting.get(ident) if isinstance(ident, int) else None
            if pending is not None:
                code = answer.get("code")
                pending.finish(
                    code=code & 255 if isinstance(code, int) else None,
                    error=str(answer["error"]) if "error" in answer else None,
                )
        self._ended.set()
        self._ready.set()
        with self._lock:
            for pending in self._waiting.values():
                pending.finish(error="the sandbox ended", ended=True)

    # ------------------------------------------------------------------------------------------ files

    def put(self, source: Path, target: str, *, owner: str | None = None) -> None:
        """Copy a file or the content of a folder of the host to `target` inside.

        Args:
            source: regular file or folder; links inside a folder are copied as links.
            target: absolute path; for a file its full name, for a folder the folder that receives the content.
            owner: user name for everything copied; root when None.

        Raises:
            InfraError: the copy failed (disk full, sandbox gone).
        """
        source = Path(source)
        is_file = source.is_file()
        inside = PurePosixPath(target)
        folder, name = (str(inside.parent), inside.name) if is_file else (target, ".")
        script = 'set -e; mkdir -p -- "$1"; tar -xpf - --no-same-owner -C "$1"; [ -z "$3" ] || chown -Rh -- "$3" "$1/$2"'
        done = self.exec(
            ["/bin/sh", "-c", script, "sh", folder, name, owner or ""],
            stdin=streams.pack(source, name if is_file else ""),
        )
        if done.return_code:
            told = done.stderr.decode(errors="replace").strip()[:500]
            raise InfraError(Boundary.SANDBOX, f"copying to {target} failed: {told}")

    def get(self, source: str, target: Path, *, limit_bytes: int = 256 * 2**20) -> None:
        """Copy a file or the content of a folder inside to `target` on the host: regular files and folders only.

        Args:
            source: absolute path inside.
            target: a file's full name, or the folder that receives the content (made when missing).
            limit_bytes: size of the archive at most.

        Raises:
            FileNotFoundError: there is no `source`.
            InfraError: too large, or the sandbox is gone.
        """
        script = (
            'if [ -d "$1" ]; then exec tar -cf - -C "$1" .; '
            'elif [ -f "$1" ]; then exec tar -cf - -h -C "$2" "./$3"; else exit 44; fi'
        )
        inside = PurePosixPath(source)
        done = self.exec(
            ["/bin/sh", "-c", script, "sh", source, str(inside.parent), inside.name],
            output_limit=limit_bytes,
        )
        if done.return_code == 44:
            raise FileNotFoundError(source)
        if done.truncated:
            raise InfraError(
                Boundary.SANDBOX, f"{source} is larger than {limit_bytes} bytes", transient=False
            )
        if done.return_code and not done.stdout:
            raise InfraError(
                Boundary.SANDBOX,
                f"copying {source} failed: {done.stderr.decode(errors='replace').strip()[:500]}",
            )
        streams.unpack(done.stdout, Path(target))

    def wait_ended(self, timeout_sec: float) -> bool:
        """True when process 1 ended within the time."""
        end = time.monotonic() + timeout_sec
        return self._ended.wait(max(0.0, end - time.monotonic()))
