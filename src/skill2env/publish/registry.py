"""Datasets in Harbor's own registry, through Harbor's own command, which keeps the login and the upload to itself."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.publish.dataset import require_state
from skill2env.publish.integrity import check_tasks

_UNREACHABLE = ("connect", "timeout", "timed out", "name resolution", "unreachable", "network")


def push_to_registry(
    dataset: Path, *, public: bool = False, command: Sequence[str] | None = None, timeout_sec: float = 3600.0
) -> str:
    """Publish a dataset and its tasks with ``harbor publish``.

    Args:
        dataset: the folder.
        public: visibility of packages that are new; existing ones keep theirs.
        command: how to call Harbor; None for the one of this environment.
        timeout_sec: after this the upload is given up.

    Returns:
        What Harbor printed.

    Raises:
        UserError: not a dataset, changed since it was published, or Harbor asks for a login.
        InfraError: boundary ``network``, the registry cannot be reached; ``harbor``, anything else it reports.
    """
    check_tasks(dataset, require_state(dataset))
    call = [*(command or (str(Path(sys.executable).with_name("harbor")),)), "publish", str(dataset)]
    call.append("--public" if public else "--private")
    quiet = {**os.environ, "HARBOR_TELEMETRY": "0", "LITELLM_LOCAL_MODEL_COST_MAP": "true"}
    try:
        done = subprocess.run(
            call,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_sec,
            check=False,
            env=quiet,
        )
    except FileNotFoundError:
        raise UserError(
            f"{call[0]} is missing", hint="install Harbor beside skill2env: pip install harbor"
        ) from None
    except subprocess.TimeoutExpired:
        raise InfraError(Boundary.NETWORK, f"harbor publish did not end within {timeout_sec:.0f} s") from None
    said = (done.stdout + done.stderr).strip()
    if done.returncode == 0:
        return said
    last = said.splitlines()[-1] if said else f"exit code {done.returncode}"
    if "NotAuthenticated" in said:
        raise UserError("Harbor's registry needs a login", hint="harbor auth login")
    if any(word in last.lower() for word in _UNREACHABLE):
        raise InfraError(
            Boundary.NETWORK, f"Harbor's registry cannot be reached: {last}", hint="try again online"
        )
    raise InfraError(Boundary.HARBOR, f"harbor publish failed: {last}", transient=False)
