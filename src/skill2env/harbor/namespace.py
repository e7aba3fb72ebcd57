"""Our environments inside trials, which keep the errors of their start as objects.

Harbor stores an exception as two strings, and the boundary of an `InfraError` and whether trying again can help would
be lost with it.
"""

from contextvars import ContextVar
from typing import override

from skill2env.errors import Skill2EnvError
from skill2env.sandbox.box_environment import BoxEnvironment
from skill2env.sandbox.engine_environment import DockerEnvironment, PodmanEnvironment
from skill2env.sandbox.environment import NamespaceEnvironment

START_ERRORS: ContextVar[list[Skill2EnvError] | None] = ContextVar("start_errors", default=None)
"""Where `run_trial` collects what was raised while containers of its trial were being started."""


class _Noting(BoxEnvironment):
    """Notes an error of ours on the way out of a start."""

    @override
    async def start(self, force_build: bool) -> None:
        try:
            await super().start(force_build)
        except Skill2EnvError as error:
            noted = START_ERRORS.get()
            if noted is not None:
                noted.append(error)
            raise


class TrialNamespaceEnvironment(_Noting, NamespaceEnvironment):
    """`NamespaceEnvironment`, nothing else changed."""


class TrialDockerEnvironment(_Noting, DockerEnvironment):
    """`DockerEnvironment`, nothing else changed."""


class TrialPodmanEnvironment(_Noting, PodmanEnvironment):
    """`PodmanEnvironment`, nothing else changed."""
