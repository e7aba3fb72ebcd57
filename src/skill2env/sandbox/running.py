"""RUN: one command of a build, and whose fault it is when it fails."""

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.box import Box
from skill2env.sandbox.command import ExecOutcome, log_tail
from skill2env.sandbox.instructions import BuildFailed, Place
from skill2env.sandbox.network import Network
from skill2env.sandbox.recipe import RunStep

_LOG_LIMIT_BYTES = 4 * 2**20
_FULL_DISK_BYTES = 100 * 2**20


@dataclass(frozen=True, slots=True)
class Bench:
    """Where the steps of one layer are performed."""

    box: Box
    network: Network | None
    work: Path
    deadline: float
    """On the monotonic clock."""


def run_command(bench: Bench, step: RunStep) -> None:
    """Run one command as the Dockerfile asks.

    Raises:
        BuildFailed: it failed by itself.
        InfraError: the network, the disk or the time is at fault.
    """
    network = bench.network
    left = bench.deadline - time.monotonic()
    if left <= 0:
        raise _too_long(step.place)
    done = bench.box.exec(
        step.argv,
        cwd=step.workdir,
        env={**(_network_env(network) if network and not step.offline else {}), **step.env},
        user=step.user or None,
        timeout_sec=left,
        output_limit=_LOG_LIMIT_BYTES,
        merge_stderr=True,
    )
    with (bench.work / "build.log").open("ab") as log:
        log.write(f"# {step.place}\n".encode() + done.stdout)
    if done.timed_out:
        raise _too_long(step.place)
    if done.return_code:
        _blame(bench, step, done)


def _network_env(network: Network) -> dict[str, str]:
    return {**network.env, **network.package_env}


def _too_long(place: Place) -> InfraError:
    return InfraError(
        Boundary.BUILD,
        f"the build ran out of time at {place}",
        hint="Raise build_timeout_sec, or run fewer builds at once.",
    )


def _blame(bench: Bench, step: RunStep, done: ExecOutcome) -> None:
    """Raise the error that says whose fault a failed command is."""
    log = (log_tail(done.stdout) or log_tail(done.stderr)) + (f"\n{done.breach}" if done.breach else "")
    if shutil.disk_usage(bench.work).free < _FULL_DISK_BYTES:
        raise InfraError(
            Boundary.STORAGE,
            f"the disk is full at {step.place}",
            hint="Make room (`skill2env cache prune`), then run again.",
        )
    network = bench.network
    failures = network.failures() if network else []
    if failures:
        first = failures[0]
        raise InfraError(
            Boundary.NETWORK,
            f"{first.host}:{first.port} could not be reached at {step.place}: {first.detail}",
            hint="Check the network and the machine's package settings, then run again.",
        )
    refused = network.refused_hosts() if network else []
    hint = f"Builds reach package sources only; asked for: {', '.join(refused[:5])}." if refused else ""
    raise BuildFailed(str(step.place), log, exit_code=done.return_code, hint=hint)
