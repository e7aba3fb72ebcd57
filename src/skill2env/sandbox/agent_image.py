"""A command-line agent on top of a task's image: the image that the agent works in, and nobody else's.

Agents that install themselves at the start of a trial need the internet there, and a task without network has none.
The one who runs the trials writes a Dockerfile instead, with the task's image under the name ``task``:

    FROM node-bookworm AS tools
    RUN npm install --global --prefix /opt/agent some-agent
    FROM task
    COPY --from=tools /opt/agent /opt/agent

It is built like every other one, with the network of builds, and its layers are kept: tools once, the rest once for
each image of a task. Variables that it sets hold in the agent's image; user, folder and start command stay the task's.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.build import Stack
from skill2env.sandbox.context import Context
from skill2env.sandbox.dockerfile import parse
from skill2env.sandbox.instructions import BuildFailed
from skill2env.sandbox.recipe import ImageConfig, Recipe
from skill2env.sandbox.resolving import resolve

TASK_IMAGE = "task"
"""What FROM calls the image of the task."""


class AgentImageFailed(InfraError):
    """The Dockerfile of the agent is at fault, which says nothing about the task."""

    def __init__(self, file: Path, why: str) -> None:
        """Say what is wrong with it."""
        super().__init__(
            Boundary.BUILD,
            f"the agent's Dockerfile {file} cannot be used: {why}",
            hint="It ends with a stage FROM task, and what it downloads comes from hosts that builds may reach "
            "(SKILL2ENV_BUILD_HOSTS).",
            transient=False,
        )


def read_agent_recipe(file: Path, image: ImageConfig, *, architecture: str) -> tuple[Recipe, Context]:
    """Read an agent's Dockerfile; returns what to build, and the files that COPY may take: those beside it.

    Args:
        file: the Dockerfile.
        image: what the task's image says.
        architecture: of the base (``amd64``).

    Raises:
        AgentImageFailed: it cannot be read, or does not end on the task's image.
    """
    try:
        text = file.read_bytes().decode()
        recipe = resolve(parse(text), architecture=architecture, known={TASK_IMAGE: image})
    except (OSError, UnicodeDecodeError, BuildFailed) as error:
        raise AgentImageFailed(file, str(error)) from error
    if recipe.base != TASK_IMAGE:
        raise AgentImageFailed(file, f"its last stage stands on {recipe.base!r}")
    return recipe, Context(file.parent, dockerfile=file.name)


def agent_config(recipe: Recipe, image: ImageConfig) -> ImageConfig:
    """How commands run in the agent's image."""
    return replace(image, env=dict(recipe.config.env))


def on_task(stack: Stack) -> Mapping[str, Stack]:
    """What `Builder` is to know."""
    return {TASK_IMAGE: stack}
