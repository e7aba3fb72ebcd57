"""What a container of an engine is made of, as options of ``run``."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from skill2env.sandbox.engine import LABEL, Engine
from skill2env.sandbox.engine_sweep import owner_label
from skill2env.sandbox.layout import Bind
from skill2env.sandbox.limits import DEFAULT_LIMITS, ResourceLimits

_MIB = 2**20

# Process 1: collects orphans, and no signal from inside can end it.
IDLE = "trap '' HUP INT QUIT TERM; while :; do sleep 86400 & wait $!; done"


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """What a container is made of."""

    image: str
    """Reference or id."""
    limits: ResourceLimits = DEFAULT_LIMITS
    network: str = "none"
    """``none``, or a network of the engine (``bridge``)."""
    binds: tuple[Bind, ...] = ()
    pull: bool = False
    """Fetch the image from its registry when the engine does not have it."""
    entrypoint: tuple[str, ...] | None = None
    """Of process 1; None for what the image says."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """For process 1."""
    user: str = ""
    """Of process 1; empty for what the image says."""
    workdir: str = ""
    """Of process 1; empty for what the image says."""
    build: bool = False
    """True while a layer is built: ``/run`` is a file system of its own and does not become part of it."""
    more: tuple[str, ...] = ()
    """Further options of ``run``."""
    hostname: str = "sandbox"


def run_options(engine: Engine, spec: EngineSpec, name: str) -> list[str]:
    """Everything after ``run``.

    Args:
        engine: which one.
        spec: what is wanted.
        name: of the container.
    """
    options = ["-d", "--name", name, "--hostname", spec.hostname, "--network", spec.network]
    options += ["--label", f"{LABEL}={owner_label()}", "--pull", "missing" if spec.pull else "never"]
    options += [*_limit_options(spec.limits), *engine.limits_of_processes()]
    if spec.build:
        options += ["--tmpfs", "/run:exec,mode=755"]
    if spec.user:
        options += ["--user", spec.user]
    if spec.workdir:
        options += ["--workdir", spec.workdir]
    for variable, value in spec.env.items():
        options += ["--env", f"{variable}={value}"]
    for bind in spec.binds:
        options += ["--volume", f"{bind.source}:{bind.target}{'' if bind.writable else ':ro'}"]
    if spec.binds:
        options += ["--security-opt", "label=disable"]
    first = ("sh", "-c", IDLE)
    if spec.entrypoint is not None:
        entry, *rest = *spec.entrypoint, *first
        options, first = [*options, "--entrypoint", entry], tuple(rest)
    return [*options, *spec.more, spec.image, *first]


def _limit_options(limits: ResourceLimits) -> list[str]:
    options: list[str] = []
    if limits.cpus is not None:
        options += ["--cpus", f"{limits.cpus:g}"]
    if 0 < limits.visible_cpus < (os.cpu_count() or 1):
        options += ["--cpuset-cpus", f"0-{limits.visible_cpus - 1}"]
    if limits.memory_mb is not None:
        options += ["--memory", f"{limits.memory_mb}m", "--memory-swap", f"{limits.memory_mb}m"]
    if limits.pids is not None:
        options += ["--pids-limit", str(limits.pids)]
    if limits.storage_mb is not None:
        options += ["--ulimit", f"fsize={limits.storage_mb * _MIB}"]
    return options
