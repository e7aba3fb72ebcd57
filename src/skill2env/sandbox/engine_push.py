"""Bring a task's image to a registry, for trainers that take ``docker_image`` and build no Dockerfile."""

import json
import re

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.engine import LOAD_TIMEOUT_SEC, Engine, EngineError
from skill2env.sandbox.images import BuiltImage
from skill2env.sandbox.recipe import ImageConfig

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def config_lines(tag: str, config: ImageConfig) -> str:
    """A Dockerfile that puts a configuration on an image of the engine."""
    lines = [f"FROM {tag}", *(f"ENV {name}={_quoted(value)}" for name, value in config.env.items())]
    lines.append(f"WORKDIR {config.workdir}")
    if config.user:
        lines.append(f"USER {config.user}")
    lines.append(f"ENTRYPOINT {json.dumps(list(config.entrypoint))}")
    if config.command:
        lines.append(f"CMD {json.dumps(list(config.command))}")
    return "\n".join(lines) + "\n"


def _quoted(value: str) -> str:
    plain = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'"{plain}"'


def push_image(engine: Engine, image: BuiltImage, repository: str) -> str:
    """Push a built image with its configuration.

    Args:
        engine: which built it.
        image: from `EngineImages.build`.
        repository: ``REGISTRY/NAME`` without tag; the tag is the start of the image's key.

    Returns:
        ``REGISTRY/NAME@sha256:...``, as ``docker_image`` of a task names it.

    Raises:
        InfraError: the registry cannot be reached or refuses (boundary ``network``).
    """
    tag = f"{repository}:{image.key.removeprefix('sha256:')[:16]}"
    try:
        engine.call("build", "--tag", tag, "-", stdin=config_lines(image.tag, image.config).encode())
        told = engine.call("push", tag, timeout_sec=LOAD_TIMEOUT_SEC)
        known = engine.call("image", "inspect", "--format", "{{json .RepoDigests}}", tag)
    except EngineError as error:
        raise error.infra(f"pushing {tag}", Boundary.NETWORK) from error
    for reference in json.loads(known) or ():
        if reference.startswith(f"{repository}@"):
            return str(reference)
    found = _DIGEST.findall(told)
    if not found:
        raise InfraError(Boundary.NETWORK, f"{engine.name} pushed {tag} and names no digest")
    return f"{repository}@{found[-1]}"
