"""Which limits an engine can enforce on this machine, by what it says of itself.

An engine without control groups (rootless, without delegation) starts containers with limits all the same and, at the
most, warns. What is asked for and cannot be held is therefore left away, and reported as absent.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.engine import Engine, EngineError
from skill2env.sandbox.limits import Enforced, ResourceLimits

_DOCKER = {"memory_mb": "MemoryLimit", "cpus": "CpuCfsQuota", "pids": "PidsLimit", "visible_cpus": "CPUSet"}
_PODMAN = {"memory_mb": "memory", "cpus": "cpu", "pids": "pids", "visible_cpus": "cpuset"}
BY_ENGINE = ("cpus", "memory_mb", "pids")
"""Limits that an engine enforces; what is written is watched by us."""


@functools.cache
def enforceable(engine: Engine) -> frozenset[str]:
    """Names of the limits of `ResourceLimits` that the engine can enforce; asked once for each process.

    Raises:
        InfraError: it does not answer, or unreadably.
    """
    try:
        told: dict[str, Any] = json.loads(engine.call("info", "--format", "{{json .}}"))
    except EngineError as error:
        raise error.infra("asking about limits") from error
    except ValueError as error:
        raise InfraError(Boundary.SANDBOX, f"{engine.name} described itself unreadably") from error
    return limits_of_info(told)


def limits_of_info(told: Mapping[str, Any]) -> frozenset[str]:
    """The same, from what ``docker info`` or ``podman info`` says as JSON."""
    host: Mapping[str, Any] | None = told.get("host")
    if host is None:
        return frozenset(name for name, key in _DOCKER.items() if told.get(key))
    security: Mapping[str, Any] = host.get("security") or {}
    if security.get("rootless") and host.get("cgroupVersion") == "v1":
        return frozenset()  # only version 2 can be delegated, whatever controllers are listed
    controllers = host.get("cgroupControllers") or ()
    return frozenset(name for name, key in _PODMAN.items() if key in controllers)


def absent_of(engine: Engine, limits: ResourceLimits) -> tuple[str, ...]:
    """Which of the limits the engine cannot enforce, sorted."""
    asked = {name for name in BY_ENGINE if getattr(limits, name) is not None}
    return tuple(sorted(asked - enforceable(engine))) if asked else ()


def possible(engine: Engine, limits: ResourceLimits) -> tuple[ResourceLimits, Enforced]:
    """What to ask the engine for, and how each limit is enforced then."""
    absent = absent_of(engine, limits)
    asked = replace(limits, **dict.fromkeys(absent)) if absent else limits
    if limits.visible_cpus and "visible_cpus" not in enforceable(engine):
        asked = replace(asked, visible_cpus=0)
    return asked, _report(limits, absent)


def _report(limits: ResourceLimits, absent: tuple[str, ...]) -> Enforced:
    hard = [name for name in BY_ENGINE if getattr(limits, name) is not None and name not in absent]
    return Enforced(tuple(sorted(hard)), ("storage_mb",) if limits.storage_mb is not None else (), absent)
