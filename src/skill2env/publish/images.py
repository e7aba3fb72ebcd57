"""A copy of tasks that name ready-made images, for trainers that take ``docker_image`` and build no Dockerfile."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from skill2env.errors import UserError
from skill2env.harbor.task_toml import name_image
from skill2env.sandbox.containers import build_image
from skill2env.sandbox.engine import engine
from skill2env.sandbox.engine_push import push_image
from skill2env.store.files import check_writable, storage


def push_images(
    tasks: Sequence[Path],
    registry: str,
    out: Path,
    *,
    kind: str = "docker",
    progress: Callable[[str], None],
) -> dict[str, str]:
    """Build each task's image, push it, and write a copy of the task whose task.toml names it by digest.

    The copies differ from their originals in ``docker_image`` alone; where they run, the Dockerfile is no longer built.

    Args:
        tasks: task folders.
        registry: host and prefix; the image of a task goes to ``REGISTRY/FOLDER-NAME``.
        out: new or empty folder for the copies.
        kind: the engine that builds and pushes.
        progress: told a line for each task.

    Returns:
        Folder name -> reference with digest.

    Raises:
        UserError: `out` holds something, or a task has no Dockerfile.
        BuildFailed: a Dockerfile is at fault.
        InfraError: the engine or the registry is.
    """
    if out.exists() and any(out.iterdir()):
        raise UserError(f"{out} is not empty", hint="name a new folder for the copies")
    check_writable(out)
    found: dict[str, str] = {}
    for task in tasks:
        if not (task / "environment/Dockerfile").is_file():
            raise UserError(f"{task} has no environment/Dockerfile", hint="only tasks with one need an image")
        image = build_image(task / "environment", kind=kind)
        reference = push_image(engine(kind), image, f"{registry.rstrip('/')}/{task.name}")
        copy = out / task.name
        with storage("copying a task", copy):
            shutil.copytree(task, copy, symlinks=True)
            name_image(copy / "task.toml", reference)
        found[task.name] = reference
        progress(f"{task.name}: {reference}")
    return found
