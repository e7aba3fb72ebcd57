"""A container engine by its command line: docker or podman, this machine's or a remote one.

Nothing here knows tasks or Harbor. Every call has a time limit; every failure says what to do.
"""

import functools
import re
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO

from skill2env.errors import Boundary, InfraError

ENGINES = ("docker", "podman")
LABEL = "skill2env.owner"
"""Label of our containers: which process of which machine they belong to."""
CALL_TIMEOUT_SEC = 120.0
LOAD_TIMEOUT_SEC = 900.0
_ANSWER_SEC = 15.0
_OPEN_FILES = 65536
_PROCESSES = 8192
_UNREACHABLE = re.compile(
    r"cannot connect to the docker daemon|is the docker daemon running|connection refused|permission denied while|"
    r"cannot connect to podman|no such file or directory.*\.sock",
    re.IGNORECASE,
)
_FULL = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)
_NETWORK = re.compile(
    r"temporary failure in name resolution|no such host|network is unreachable|i/o timeout|tls handshake|"
    r"toomanyrequests|error pinging|dial tcp|pull access denied|manifest unknown|failed to resolve|"
    r"failed to do request|connection timed out|repository does not exist|manifest for .* not found",
    re.IGNORECASE,
)


class EngineError(Exception):
    """A call of an engine failed; `told` is what it said. Callers turn it into an error of ours."""

    def __init__(self, engine: str, arguments: Sequence[str], code: int, told: str) -> None:
        super().__init__(f"{engine} {arguments[0]} failed ({code}): {told[-1500:]}")
        self.engine = engine
        self.code = code
        self.told = told

    def infra(self, doing: str, where: Boundary = Boundary.SANDBOX) -> InfraError:
        """The error of ours for a call whose failure is the machine's.

        Args:
            doing: what was being attempted, in the present participle.
            where: boundary, unless what the engine said names a better one.
        """
        told = self.told.strip()[-1500:]
        message = f"{doing} with {self.engine} failed: {told or f'code {self.code}'}"
        if _UNREACHABLE.search(told):
            return InfraError(
                Boundary.SANDBOX,
                message,
                hint=f"Start {self.engine}, or run `skill2env doctor`.",
                transient=False,
            )
        if _FULL.search(told):
            hint = f"Make room where {self.engine} keeps its images (`{self.engine} system prune`), then run again."
            return InfraError(Boundary.STORAGE, message, hint=hint)
        if _NETWORK.search(told):
            return InfraError(
                Boundary.NETWORK, message, hint="Check that the image exists and its registry answers."
            )
        return InfraError(where, message, hint="Run `skill2env doctor`.")


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine. Equal ones hold the same images and containers."""

    name: str
    """``docker`` or ``podman``."""
    options: tuple[str, ...] = field(default=())
    """Before the verb of every call."""

    @property
    def program(self) -> tuple[str, ...]:
        """Start of every command line."""
        return (self.name, *self.options)

    def call(
        self,
        *arguments: str,
        stdin: bytes | IO[bytes] | None = None,
        timeout_sec: float = CALL_TIMEOUT_SEC,
    ) -> str:
        """Run one command of the engine; its standard output without the last line break.

        Paths among the arguments are absolute.

        Raises:
            EngineError: it failed.
            InfraError: there is no such program, or it did not answer in time.
        """
        command = [*self.program, *arguments]
        # Podman's monitor of a container leaves a file where it was started when memory runs out.
        where = tempfile.gettempdir()
        try:
            if isinstance(stdin, bytes):
                done = subprocess.run(
                    command, capture_output=True, check=False, timeout=timeout_sec, cwd=where, input=stdin
                )
            else:
                source = stdin or subprocess.DEVNULL
                done = subprocess.run(
                    command, capture_output=True, check=False, timeout=timeout_sec, cwd=where, stdin=source
                )
        except FileNotFoundError as error:
            raise InfraError(
                Boundary.SANDBOX,
                f"{self.name} is not installed",
                hint=f"Install {self.name}, or use --sandbox namespace.",
                transient=False,
            ) from error
        except subprocess.TimeoutExpired as error:
            raise InfraError(
                Boundary.SANDBOX, f"{self.name} {arguments[0]} did not answer within {timeout_sec:.0f} s"
            ) from error
        if done.returncode:
            raise EngineError(
                self.name, arguments, done.returncode, (done.stderr or done.stdout).decode(errors="replace")
            )
        return done.stdout.decode(errors="replace").rstrip("\n")

    def image_id(self, reference: str) -> str | None:
        """``sha256:...`` of an image that the engine has; None when it has none of that name.

        Raises:
            InfraError: the engine does not answer.
        """
        try:
            found = self.call("image", "inspect", "--format", "{{.Id}}", reference)
        except EngineError as error:
            if _UNREACHABLE.search(error.told):
                raise error.infra("looking for an image") from error
            return None
        return found if found.startswith("sha256:") else f"sha256:{found}"

    def limits_of_processes(self) -> list[str]:
        """Options for ``run``: limits within what this process may set itself.

        podman's own defaults are above what an unprivileged machine allows, and then no container starts.
        """
        if self.name != "podman":
            return []
        files, processes = (
            resource.getrlimit(resource.RLIMIT_NOFILE)[1],
            resource.getrlimit(resource.RLIMIT_NPROC)[1],
        )
        files = _OPEN_FILES if files == resource.RLIM_INFINITY else min(files, _OPEN_FILES)
        processes = _PROCESSES if processes == resource.RLIM_INFINITY else min(processes // 2, _PROCESSES)
        return ["--ulimit", f"nofile={files}:{files}", "--ulimit", f"nproc={processes}:{processes}"]


@functools.cache
def engine(name: str) -> Engine:
    """The engine of that name, with what it needs on this machine.

    Raises:
        InfraError: it is not installed.
    """
    if shutil.which(name) is None:
        raise InfraError(
            Boundary.SANDBOX,
            f"{name} is not installed",
            hint=f"Install {name}, or use --sandbox namespace.",
            transient=False,
        )
    return Engine(name, ("--runtime", "runc") if name == "podman" and _lacks_runtime() else ())


def _lacks_runtime() -> bool:
    """Whether podman's default runtime is missing, or cannot run on this machine, while runc can be had."""
    if shutil.which("runc") is None:
        return False
    return shutil.which("crun") is None


def answers(name: str) -> bool:
    """True when an engine is installed and answers."""
    if shutil.which(name) is None:
        return False
    try:
        Engine(name).call("version", "--format", "{{.Server.Version}}", timeout_sec=_ANSWER_SEC)
    except (EngineError, InfraError):
        return False
    return True
