"""Start process 1 of a sandbox with bubblewrap, mapped by `identity` and confined by `seccomp`."""

import contextlib
import functools
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox import seccomp
from skill2env.sandbox.bubblewrap import bubblewrap
from skill2env.sandbox.identity import Identity, Tier
from skill2env.sandbox.starter import starter

KEPT_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID")
START_TIMEOUT_SEC = 20.0
END_TIMEOUT_SEC = 20.0
TOLD_BYTES = 4000
OOM_SCORE = "300"
"""Of process 1; commands have 1000."""


# ---------------------------------------------------------------------------------------------------- starting


class Launched:
    """A started sandbox: bubblewrap's own process, and process 1 inside."""

    def __init__(self, process: subprocess.Popen[bytes], init_pid: int) -> None:
        self.process = process
        self.init_pid = init_pid
        """Host pid of process 1."""
        self._init = os.pidfd_open(init_pid)

    def wait(self, timeout_sec: float) -> bool:
        """True when process 1 ended within the time; everything else inside has ended then, too."""
        poll = select.poll()
        poll.register(self._init, select.POLLIN)
        return bool(poll.poll(timeout_sec * 1000))

    def signal(self) -> None:
        """Kill everything inside, without waiting for it."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._init, signal.SIGKILL)

    def kill(self) -> None:
        """Kill everything inside and wait for it."""
        self.signal()
        self.wait(END_TIMEOUT_SEC)
        self.process.kill()
        self.process.wait()

    def told(self) -> str:
        """What bubblewrap, or process 1 before it served, wrote to stderr. Call it when they have ended."""
        assert self.process.stderr is not None
        os.set_blocking(self.process.stderr.fileno(), False)
        return (self.process.stderr.read(TOLD_BYTES) or b"").decode(errors="replace").strip()

    def end(self) -> None:
        """Kill everything inside, wait for it and release what was held. Idempotent."""
        if self._init >= 0:
            self.kill()
            _end(self.process)
            os.close(self._init)
            self._init = -1


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stderr is not None:
        process.stderr.close()


@dataclass(frozen=True, slots=True)
class _Gates:
    """Descriptors through which bubblewrap tells its child's pid and waits for us."""

    info_read: int
    info_write: int
    block_read: int
    block_write: int
    filter: int

    @classmethod
    def make(cls, program: bytes) -> "_Gates":
        info_read, info_write = os.pipe()
        block_read, block_write = os.pipe()
        filter_fd = os.memfd_create("seccomp", os.MFD_CLOEXEC)
        os.write(filter_fd, program)
        os.lseek(filter_fd, 0, os.SEEK_SET)
        return cls(info_read, info_write, block_read, block_write, filter_fd)

    @property
    def theirs(self) -> tuple[int, ...]:
        return self.info_write, self.block_read, self.filter

    @property
    def ours(self) -> tuple[int, ...]:
        return self.info_read, self.block_write


def launch(
    arguments: Sequence[str],
    identity: Identity,
    *,
    pass_fds: Sequence[int],
    build: bool,
    pinned: bool = False,
    watched: bool = False,
    while_starting: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    before_release: Callable[[int], None] | None = None,
) -> Launched:
    """Run ``bwrap ARGUMENTS`` under `identity`.

    Args:
        arguments: file-system set-up and, after ``--``, the command that becomes process 1.
        identity: which ids to map.
        pass_fds: descriptors that process 1 inherits.
        build: use the filter for building layers (only differs in the single-uid tier).
        pinned: forbid that processes inside choose their processors.
        watched: forbid memory that no look at the processes shows.
        while_starting: what the thread that starts bubblewrap is in meanwhile (control groups).
        before_release: called with the host pid of process 1 before it runs anything (limits).

    Raises:
        InfraError: user namespaces are forbidden here, or bubblewrap failed.
    """
    single = identity.tier is Tier.SINGLE
    gates = _Gates.make(seccomp.program(fake_ownership=build and single, pinned=pinned, watched=watched))
    mapping = (
        ["--uid", "0", "--gid", "0", "--block-fd", str(gates.block_read)]
        if single
        else ["--userns-block-fd", str(gates.block_read)]
    )
    command = [
        str(bubblewrap()), "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net",
        "--unshare-cgroup-try", *mapping, "--info-fd", str(gates.info_write), "--die-with-parent", "--new-session",
        "--as-pid-1", "--cap-drop", "ALL", *_capabilities(identity, build=build),
        "--seccomp", str(gates.filter), *arguments,
    ]  # fmt: skip
    try:
        try:
            process = starter(os.getpid()).run(
                functools.partial(
                    _popen, command, identity, (*gates.theirs, *pass_fds), while_starting=while_starting
                )
            )
        finally:
            for number in gates.theirs:
                os.close(number)
        return _release(process, identity, gates, before_release)
    finally:
        for number in gates.ours:
            os.close(number)


def _popen(
    command: list[str],
    identity: Identity,
    descriptors: tuple[int, ...],
    *,
    while_starting: Callable[[], AbstractContextManager[None]],
) -> subprocess.Popen[bytes]:
    user = group = groups = None
    if identity.tier is Tier.ROOT:
        # Changing the user in the child makes Python copy its whole memory map for it; a program that changes it
        # does not, which is several times faster in a large process.
        changer = _setpriv()
        if changer:
            ids = ["--reuid", str(identity.root_uid), "--regid", str(identity.root_gid), "--clear-groups"]
            command = [changer, *ids, *command]
        else:
            user, group, groups = identity.root_uid, identity.root_gid, list[int]()
    try:
        with while_starting():
            return subprocess.Popen(
                command,
                pass_fds=descriptors,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd="/",
                env={"PATH": os.defpath},
                user=user,
                group=group,
                extra_groups=groups,
            )
    except OSError as error:
        raise InfraError(Boundary.SANDBOX, f"bubblewrap did not start: {error}") from error


@functools.cache
def _setpriv() -> str | None:
    return shutil.which("setpriv")


def _release(
    process: subprocess.Popen[bytes],
    identity: Identity,
    gates: _Gates,
    before_release: Callable[[int], None] | None,
) -> Launched:
    try:
        launched = Launched(process, _child_pid(gates.info_read, process))
    except BaseException:
        _end(process)
        raise
    try:
        if identity.tier is not Tier.SINGLE:
            _write_maps(launched.init_pid, identity)
        _offer_as_victim(launched.init_pid)
        if before_release is not None:
            before_release(launched.init_pid)
        os.write(gates.block_write, b"1")
    except BaseException:
        launched.end()
        raise
    return launched


def _offer_as_victim(pid: int) -> None:
    """Out of memory, the kernel ends what is inside before the host's work; nobody inside lowers what root set."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text(OOM_SCORE)


def _capabilities(identity: Identity, *, build: bool) -> list[str]:
    kept = KEPT_CAPABILITIES
    if build:
        kept = (*kept, "SETFCAP", "SYS_CHROOT", "MKNOD") if identity.several_users else (*kept, "SYS_CHROOT")
    return [part for name in kept for part in ("--cap-add", f"CAP_{name}")]


def _child_pid(info: int, process: subprocess.Popen[bytes]) -> int:
    """Host pid of process 1, as bubblewrap tells it.

    Raises:
        InfraError: bubblewrap ended instead.
    """
    data, end = b"", time.monotonic() + START_TIMEOUT_SEC
    while time.monotonic() < end:
        ready, _, _ = select.select([info], [], [], 0.5)
        if ready:
            piece = os.read(info, 4096)
            data += piece
            with contextlib.suppress(ValueError):
                return int(json.loads(data)["child-pid"])
            if not piece:
                break
    process.kill()
    process.wait()
    assert process.stderr is not None
    told = process.stderr.read(TOLD_BYTES).decode(errors="replace").strip()
    raise InfraError(
        Boundary.SANDBOX,
        f"bubblewrap failed: {told or 'no answer'}",
        hint="Run `skill2env doctor`: user namespaces may be forbidden on this machine.",
        transient=False,
    )


def _write_maps(pid: int, identity: Identity) -> None:
    """Map the ids of a fresh user namespace whose owner waits for it.

    Raises:
        InfraError: the kernel or a helper refused.
    """
    if identity.tier is Tier.ROOT:
        try:
            Path(f"/proc/{pid}/uid_map").write_text(f"0 {identity.root_uid} {identity.count}")
            Path(f"/proc/{pid}/gid_map").write_text(f"0 {identity.root_gid} {identity.count}")
        except OSError as error:
            raise InfraError(
                Boundary.SANDBOX, f"mapping user ids failed: {error}", transient=False
            ) from error
        return
    rest = str(identity.count - 1)
    for tool, own, base in (
        ("newuidmap", identity.root_uid, identity.base),
        ("newgidmap", identity.root_gid, identity.base_gid),
    ):
        command = [tool, str(pid), "0", str(own), "1", "1", str(base), rest]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise InfraError(
                Boundary.SANDBOX,
                f"{tool} failed: {done.stderr.strip()}",
                hint="Check /etc/subuid and /etc/subgid, or set SKILL2ENV_SANDBOX_TIER=single-uid.",
                transient=False,
            )
