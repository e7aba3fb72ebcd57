"""What task.toml says, as plain facts that gates can ask for without knowing Harbor's models."""

import math
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harbor.models.task.config import ArtifactConfig, TaskConfig
from harbor.models.task.paths import TaskPaths
from harbor.models.task.verifier_mode import (
    resolve_task_verifier_mode,
    resolve_verifier_environment_definition,
)

from skill2env.harbor.quiet import quiet_harbor
from skill2env.harbor.task_toml import METADATA_KEY
from skill2env.harbor.variant import CONFIG_NAME

CONFIG_LIMIT = 1024 * 1024
"""Longest task.toml that is read, in bytes."""

_TEMPLATE = re.compile(r"\$\{(?P<name>[^}:]+)(?P<default>:-[^}]*)?\}")


@dataclass(frozen=True, slots=True)
class HostVariable:
    """A value of task.toml that Harbor would take from the environment of the process that runs the trial."""

    where: str
    """``verifier.env.NAME`` and the like."""
    name: str
    has_default: bool

    @property
    def is_set(self) -> bool:
        """Whether this machine has the variable now."""
        return self.name in os.environ


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """The settings of one task, after Harbor's defaults and inheritance."""

    name: str
    """``org/name`` of ``[task]``; empty when there is none."""
    schema_version: str
    mode: str
    """``shared`` or ``separate``."""
    networks: Mapping[str, str]
    """``environment``, ``agent``, ``verifier`` to network mode; a phase without its own inherits."""
    agent_user: str | None
    verifier_user: str | None
    artifacts: tuple[str, ...]
    agent_timeout_sec: float | None
    verifier_timeout_sec: float
    build_timeout_sec: float
    docker_image: str
    """Image that is used instead of a Dockerfile; empty when there is none."""
    verifier_image: bool
    """The verifier has an image of its own (``tests/Dockerfile`` or ``[verifier.environment]``)."""
    steps: int
    """Number of ``[[steps]]``; 0 for an ordinary task."""
    os: str
    compose: bool
    """A docker-compose.yaml defines the environment."""
    services: tuple[str, ...]
    """Other things the task asks of its surroundings: ``gpus``, ``tpu``, ``mcp_servers``."""
    host_variables: tuple[HostVariable, ...]
    cpus: float | None = None
    """Processors that the agent's container asks for; None when it does not say."""
    solution_env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables of the reference solution, not resolved."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """``[metadata.skill2env]``; empty for tasks that we did not make."""


def read_task(task_dir: Path) -> TaskFacts:
    """Read and check task.toml.

    Args:
        task_dir: a task directory.

    Raises:
        ValueError: task.toml is missing, too large, not UTF-8, not TOML, breaks Harbor's schema, or limits
            a time to what is none; the message is
            one sentence for a person.
    """
    path = task_dir / CONFIG_NAME
    try:
        if path.is_symlink() or not path.is_file():
            raise ValueError("task.toml is missing or is not a regular file")
        if path.stat().st_size > CONFIG_LIMIT:
            raise ValueError(f"task.toml is longer than {CONFIG_LIMIT} bytes")
        quiet_harbor()
        config = TaskConfig.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
        _check_time_limits(config)
        return _facts(task_dir, config)
    except OSError as error:
        raise ValueError(f"task.toml cannot be read: {error}") from error
    except RecursionError as error:
        raise ValueError("task.toml is nested too deeply") from error


def _check_time_limits(config: TaskConfig) -> None:
    """Harbor takes any number, and waits for ever or not at all for what is no time."""
    limits = {
        "agent.timeout_sec": config.agent.timeout_sec,
        "verifier.timeout_sec": config.verifier.timeout_sec,
        "environment.build_timeout_sec": config.environment.build_timeout_sec,
    }
    for number, step in enumerate(config.steps or ()):
        limits[f"steps[{number}].agent.timeout_sec"] = step.agent.timeout_sec
        limits[f"steps[{number}].verifier.timeout_sec"] = step.verifier.timeout_sec
    for name, seconds in limits.items():
        if seconds is not None and not 0 < seconds < math.inf:
            raise ValueError(f"{name} is {seconds:g}, not a positive number of seconds")


def _facts(task_dir: Path, config: TaskConfig) -> TaskFacts:
    paths = TaskPaths(task_dir.resolve())
    definition = resolve_verifier_environment_definition(config, paths, validate_inputs=False)
    environment = config.environment
    ours: Any = config.metadata.get(METADATA_KEY, {})
    return TaskFacts(
        name=config.task.name if config.task else "",
        schema_version=config.schema_version,
        mode=resolve_task_verifier_mode(config).value,
        networks=_networks(config),
        agent_user=None if config.agent.user is None else str(config.agent.user),
        verifier_user=None if config.verifier.user is None else str(config.verifier.user),
        artifacts=tuple(
            item.source if isinstance(item, ArtifactConfig) else item for item in config.artifacts
        ),
        agent_timeout_sec=config.agent.timeout_sec,
        verifier_timeout_sec=config.verifier.timeout_sec,
        build_timeout_sec=environment.build_timeout_sec,
        docker_image=environment.docker_image or "",
        verifier_image=definition is not None and definition.bundled_tests,
        steps=len(config.steps or ()),
        os=environment.os.value,
        compose=any(
            (paths.task_dir / place / "docker-compose.yaml").exists() for place in ("environment", "tests")
        ),
        services=tuple(
            name
            for name, present in (
                ("gpus", environment.gpus),
                ("tpu", environment.tpu),
                ("mcp_servers", environment.mcp_servers),
            )
            if present
        ),
        host_variables=_host_variables(config),
        cpus=environment.cpus,
        solution_env=dict(config.solution.env),
        metadata=ours if isinstance(ours, dict) else {},  # pyright: ignore[reportUnknownArgumentType]
    )


def _networks(config: TaskConfig) -> dict[str, str]:
    base = config.environment.network_mode
    agent = config.agent.network_mode or base
    own = config.verifier.environment
    verifier = config.verifier.network_mode or (own.network_mode if own is not None else base)
    return {"environment": base.value, "agent": agent.value, "verifier": verifier.value}


def _host_variables(config: TaskConfig) -> tuple[HostVariable, ...]:
    tables = {
        "environment.env": config.environment.env,
        "verifier.env": config.verifier.env,
        "solution.env": config.solution.env,
    }
    if config.verifier.environment is not None:
        tables["verifier.environment.env"] = config.verifier.environment.env
    for number, step in enumerate(config.steps or ()):
        tables[f"steps[{number}].verifier.env"] = step.verifier.env
    return tuple(
        HostVariable(f"{table}.{key}", match["name"], match["default"] is not None)
        for table, values in tables.items()
        for key, value in sorted(values.items())
        for match in _TEMPLATE.finditer(value)
    )
