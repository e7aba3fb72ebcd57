"""The same task with the verifier in the other mode, or without network.

Harbor has no switch for either, so the task is copied and only its task.toml differs.
"""

import shutil
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from harbor.models.task.config import NetworkMode, TaskConfig, VerifierEnvironmentMode
from harbor.models.task.verifier_mode import resolve_task_verifier_mode

from skill2env.errors import Boundary, boundary
from skill2env.harbor.task_toml import dump_config
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.scratch import Corner

CONFIG_NAME = "task.toml"


@contextmanager
def variant(task_dir: Path, *, mode: str | None = None, offline: bool = False) -> Generator[Path]:
    """The task itself when it is as asked already, else a copy that is, removed at the end.

    For ``shared`` the verifier's own environment is dropped because Harbor forbids the two together.

    Args:
        task_dir: a task directory with a valid task.toml.
        mode: ``shared``, ``separate``, or None for the task's own.
        offline: run every phase without network whatever the task asks for.

    Raises:
        ValueError: task.toml is not valid.
        InfraError: the copy cannot be written.
    """
    if mode is None and not offline:
        yield task_dir
        return
    config = _load(task_dir)
    before = config.model_dump_json()
    if mode is not None and resolve_task_verifier_mode(config).value != mode:
        config.verifier.environment_mode = VerifierEnvironmentMode(mode)
        if mode == VerifierEnvironmentMode.SHARED.value:
            config.verifier.environment = None
    if offline:
        _cut_network(config)
    if config.model_dump_json() == before:
        yield task_dir
        return
    with boundary(Boundary.STORAGE, "copying a task"):
        corner = Corner.make(current_identity())
        parent = corner.path
    try:
        copy = parent / task_dir.resolve().name
        with boundary(Boundary.STORAGE, "copying a task"):
            # Sandboxes may run under a subordinate uid that has to read the build context.
            parent.chmod(0o755)
            shutil.copytree(task_dir, copy, symlinks=True)
            (copy / CONFIG_NAME).write_text(dump_config(config), encoding="utf-8")
        yield copy
    finally:
        corner.remove()


def _cut_network(config: TaskConfig) -> None:
    parts = [config.environment, config.agent, config.verifier]
    for step in config.steps or ():
        parts += [step.agent, step.verifier]
    for verifier in (config.verifier, *(step.verifier for step in config.steps or ())):
        if verifier.environment is not None:
            parts.append(verifier.environment)
    for part in parts:
        if part.allowed_hosts is not None:
            part.allowed_hosts = None
        if part.network_mode is not None and part.network_mode is not NetworkMode.NO_NETWORK:
            part.network_mode = NetworkMode.NO_NETWORK


def _load(task_dir: Path) -> TaskConfig:
    data = (task_dir / CONFIG_NAME).read_text(encoding="utf-8")
    return TaskConfig.model_validate(tomllib.loads(data))
