"""Whose failure an exception of a trial is: the task's, the machine's, or one that only a repetition can tell.

Harbor's own table says whether to retry and whether a reward counts, which is another question: it calls a broken
Dockerfile retryable and a reference solution that is missing valid.
"""

import errno
import re

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.harbor.outcome import TrialFailure, TrialPhase

_MACHINE_TYPES = {
    "InfraError": Boundary.SANDBOX,
    "EnvironmentStartTimeoutError": Boundary.BUILD,
    "MissingExtraError": Boundary.HARBOR,
    "ModuleNotFoundError": Boundary.HARBOR,
    "ImportError": Boundary.HARBOR,
    "SandboxLikelyOutOfMemoryError": Boundary.SANDBOX,
}
"""Exceptions that never speak about the task while its container is being started."""

_SUSPECT_TYPES = frozenset(
    {
        "InfraError",
        "AddTestsDirError",
        "DownloadVerifierDirError",
        "EnvironmentStartTimeoutError",
        "SandboxLikelyOutOfMemoryError",
        "RuntimeError",
        "OSError",
        "BrokenPipeError",
        "ConnectionResetError",
    }
)
"""Exceptions of a running trial that a task can cause (by killing what serves it) and a machine as well."""

_ENGINE = re.compile(
    r"cannot connect to the docker daemon|is the docker daemon running|docker is not installed|"
    r"no such file or directory: '(?:docker|podman)|command not found: (?:docker|podman)|"
    r"unknown flag: --project-name|'compose' is not a docker command|permission denied while trying to connect",
    re.IGNORECASE,
)
"""An engine that is absent, not running, closed to this user, or lacks compose."""

_NETWORK = re.compile(
    r"temporary failure in name resolution|could not resolve|network is unreachable|i/o timeout|tls handshake|"
    r"failed to fetch|connection refused|connection timed out|toomanyrequests|failed to resolve source metadata|"
    r"manifest unknown|pull access denied|failed to do request",
    re.IGNORECASE,
)
_FULL = re.compile(r"no space left on device|disk quota exceeded|read-only file system", re.IGNORECASE)


def machine_fault(failure: TrialFailure) -> InfraError | None:
    """The error to raise when the failure says nothing about the task; None when it does, or may."""
    if _FULL.search(failure.message) and failure.phase is TrialPhase.ENVIRONMENT:
        return InfraError(
            Boundary.STORAGE, failure.message, hint="make room, then run again", transient=False
        )
    if failure.phase is not TrialPhase.ENVIRONMENT:
        return None
    if _ENGINE.search(failure.message):
        return InfraError(Boundary.SANDBOX, failure.message, hint="run `skill2env doctor`", transient=False)
    if failure.type == "NeedsDocker":
        hint = "run it with --sandbox docker"
        return InfraError(Boundary.SANDBOX, failure.message, hint=hint, transient=False)
    where = _MACHINE_TYPES.get(failure.type)
    if where is not None:
        return InfraError(where, f"{failure.type}: {failure.message}", hint="run `skill2env doctor`")
    if failure.type == "RuntimeError" and _NETWORK.search(failure.message):
        return InfraError(Boundary.NETWORK, failure.message, hint="check that the registry can be reached")
    return None


def is_suspect(failure: TrialFailure) -> bool:
    """Whether the same failure has to happen again before the task is blamed."""
    running = failure.phase in (
        TrialPhase.AGENT_SETUP,
        TrialPhase.AGENT,
        TrialPhase.VERIFIER,
        TrialPhase.TEARDOWN,
    )
    started_badly = failure.phase is TrialPhase.ENVIRONMENT
    return started_badly or (running and failure.type in _SUSPECT_TYPES and not _agent_time_out(failure))


def _agent_time_out(failure: TrialFailure) -> bool:
    return failure.phase is TrialPhase.AGENT and failure.timed_out


def creation_fault(error: Exception) -> InfraError | None:
    """The error to raise when reading a task failed for a reason that is not the task's; None when it is its own."""
    text = str(error)
    if isinstance(error, InfraError):
        return error
    if isinstance(error, OSError) and error.errno in (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
    ):
        return InfraError(Boundary.STORAGE, f"preparing a trial failed: {text}", transient=False)
    if isinstance(error, ImportError):
        return InfraError(Boundary.HARBOR, f"Harbor cannot load a part: {text}", transient=False)
    if isinstance(error, UserError):  # our own environment says so about compose services and networks
        return InfraError(Boundary.SANDBOX, error.message, hint=error.hint, transient=False)
    if "not supported by" in text or "does not support" in text or _ENGINE.search(text):
        return InfraError(
            Boundary.SANDBOX,
            f"this sandbox cannot run the task: {text}",
            hint="choose another one with --sandbox",
            transient=False,
        )
    return None
