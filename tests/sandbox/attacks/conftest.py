"""What every attack needs: somebody to be, a sandbox to be in, and a host that is compared before and after.

An attack is a Python program that runs inside. Its last line of output says how it went: ``held`` when the sandbox
held, anything else is a hole. Programs get a few helpers (`PRELUDE`).
"""

import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from skill2env.sandbox.command import ExecOutcome
from skill2env.sandbox.session import Sandbox, SandboxSpec

AGENT = "nobody"
PRELUDE = """
import ctypes, errno, fcntl, os, resource, signal, socket, stat, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    ctypes.set_errno(0)
    result = libc.syscall(number, *args)
    return "worked" if result >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")
def tries(*ways):
    'Every way must fail with an OSError.'
    for way in ways:
        try: found = way()
        except OSError: continue
        print('BROKEN', way.__code__.co_firstlineno, repr(found)[:300]); sys.exit(1)
    print('held')
def write(path, data='x'):
    def way():
        with open(path, 'w') as file: file.write(data)
        return path
    return way
def read(path):
    def way():
        with open(path, 'rb') as file: return file.read(100)
    return way
"""

_VOLATILE = (
    "random/",
    "ns_last_pid",
    "-state",
    "-nr",
    "nr_",
    "pty/nr",
    "net/",
    "dentry",
    "sched_domain",
    "perf_event_max",
    "quota/",
)


@pytest.fixture(params=["root", "agent"])
def who(request: pytest.FixtureRequest, box: Sandbox) -> str | None:
    """User inside: root, or one without any right."""
    if request.param == "root":
        return None
    if not box.several_users:
        pytest.skip("one uid: there is no other user")
    return AGENT


Attack = Callable[..., ExecOutcome]


@pytest.fixture(scope="module")
def box(rootfs: Path) -> Iterator[Sandbox]:
    """A sandbox for all attacks of a file."""
    with Sandbox(SandboxSpec(layers=(rootfs,))) as sandbox:
        yield sandbox


def run(box: Sandbox, program: str, *arguments: str, **settings: Any) -> ExecOutcome:
    settings.setdefault("timeout_sec", 60)
    return box.exec(["python3", "-c", PRELUDE + program, *arguments], **settings)


@pytest.fixture
def attack(box: Sandbox) -> Attack:
    """Runs a program in the file's sandbox; the sandbox must be alive afterwards."""

    def launch(program: str, *arguments: str, **settings: Any) -> ExecOutcome:
        done = run(box, program, *arguments, **settings)
        assert box.exec(["echo", "alive"], timeout_sec=20).stdout == b"alive\n"
        return done

    return launch


@pytest.fixture
def holds(attack: Attack) -> Callable[..., None]:
    """Runs a program that must end with ``held``."""

    def check(program: str, *arguments: str, **settings: Any) -> None:
        done = attack(program, *arguments, **settings)
        told = (done.stdout + done.stderr).decode(errors="replace")
        assert done.stdout.endswith(b"held\n"), told[-1500:]

    return check


@pytest.fixture
def fresh(rootfs: Path) -> Iterator[Callable[..., Sandbox]]:
    """Starts a sandbox of its own for an attack that leaves traces inside."""
    with ExitStack() as stack:

        def make(**settings: Any) -> Sandbox:
            return stack.enter_context(Sandbox(SandboxSpec(layers=(rootfs,), **settings)))

        yield make


@pytest.fixture
def in_fresh() -> Callable[..., ExecOutcome]:
    """Runs a program in a given sandbox."""
    return run


# ---------------------------------------------------------------------------------------- the host


def sysctls() -> dict[str, bytes]:
    """Kernel settings of the host, except what changes by itself."""
    found: dict[str, bytes] = {}
    for top, _, names in os.walk("/proc/sys"):
        for name in names:
            path = f"{top}/{name}"
            if not any(word in path for word in _VOLATILE):
                with suppress(OSError), open(path, "rb") as file:  # noqa: PTH123 (a thousand files, each time)
                    found[path] = file.read(4096)
    return found


class Host:
    """Things of the host that an attack may be after."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o755)
        self.file = folder / "precious"
        self.file.write_text("precious")
        self.file.chmod(0o666)
        self.process = subprocess.Popen(["sleep", "600"])
        self.abstract = socket.socket(socket.AF_UNIX)
        self.name = f"skill2env-attack-{os.getpid()}-{id(self)}"
        self.abstract.bind(f"\0{self.name}")
        self.abstract.listen()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.server.getsockname()[1]
        self.umask_clock = time.time() - time.monotonic()
        self.before = self.look()

    def look(self) -> dict[str, object]:
        status = self.file.stat()
        return {
            "file": (self.file.read_text(), status.st_mode, status.st_uid, status.st_nlink),
            "alive": self.process.poll(),
            "name": os.uname()[1:3],
            "clock": round((time.time() - time.monotonic() - self.umask_clock) / 5),
            "limits": Path(f"/proc/{self.process.pid}/limits").read_text(),
            "score": Path(f"/proc/{self.process.pid}/oom_score_adj").read_text(),
            "keys": ctypes.CDLL(None).syscall(250, 11, -5, 0, 0) if os.uname().machine == "x86_64" else 0,
        }

    def close(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.abstract.close()
        self.server.close()


@pytest.fixture(autouse=True, scope="module")
def settings_of_the_host() -> Iterator[None]:
    """Kernel settings are the same after all attacks of a file."""
    before = sysctls()
    yield
    after = sysctls()
    assert {path: after.get(path) for path in before if after.get(path) != before[path]} == {}


@pytest.fixture(autouse=True)
def host(tmp_path: Path) -> Iterator[Host]:
    """The host, which no attack may change."""
    found = Host(tmp_path)
    try:
        yield found
        after = found.look()
        assert {name: after[name] for name in after if after[name] != found.before[name]} == {}
    finally:
        found.close()


@pytest.fixture(scope="session")
def prelude() -> str:
    """Helpers for programs that run inside."""
    return PRELUDE
