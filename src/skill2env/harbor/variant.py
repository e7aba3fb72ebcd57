"""The same task with the verifier in the other mode; Harbor has no switch for that, so the task is copied."""

import shutil
import tempfile
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from harbor.models.task.config import TaskConfig, VerifierEnvironmentMode
from harbor.models.task.verifier_mode import resolve_task_verifier_mode

from skill2env.errors import Boundary, boundary

CONFIG_NAME = "task.toml"


def verifier_mode(task_dir: Path) -> str:
    """Mode that a task asks for: ``shared`` or ``separate``.

    Raises:
        ValueError: task.toml is not valid.
        OSError: task.toml cannot be read.
    """
    return resolve_task_verifier_mode(_load(task_dir)).value


@contextmanager
def in_mode(task_dir: Path, mode: str | None) -> Generator[Path]:
    """The task itself when it is in `mode` already (or `mode` is None), else a copy that is, removed at the end.

    In the copy only ``[verifier]`` differs: ``environment_mode`` is set, and for ``shared`` the verifier's own
    environment is dropped because Harbor forbids the two together.

    Args:
        task_dir: a task directory with a valid task.toml.
        mode: ``shared``, ``separate`` or None.

    Raises:
        ValueError: task.toml is not valid.
        InfraError: the copy cannot be written.
    """
    if mode is None or verifier_mode(task_dir) == mode:
        yield task_dir
        return
    config = _load(task_dir)
    config.verifier.environment_mode = VerifierEnvironmentMode(mode)
    if mode == VerifierEnvironmentMode.SHARED.value:
        config.verifier.environment = None
    with boundary(Boundary.STORAGE, "copying a task"):
        parent = Path(tempfile.mkdtemp(prefix="skill2env-mode-"))
    try:
        copy = parent / task_dir.resolve().name
        with boundary(Boundary.STORAGE, "copying a task"):
            # Sandboxes may run under a subordinate uid that has to read the build context.
            parent.chmod(0o755)
            shutil.copytree(task_dir, copy, symlinks=True)
            (copy / CONFIG_NAME).write_text(config.model_dump_toml(), encoding="utf-8")
        yield copy
    finally:
        shutil.rmtree(parent, ignore_errors=True)


def _load(task_dir: Path) -> TaskConfig:
    data = (task_dir / CONFIG_NAME).read_text(encoding="utf-8")
    return TaskConfig.model_validate(tomllib.loads(data))
