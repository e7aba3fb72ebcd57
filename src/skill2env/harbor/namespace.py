"""Our environment inside trials, which keeps the errors of its start as objects.

Harbor stores an exception as two strings, and the boundary of an `InfraError` and whether trying again can help would
be lost with it.
"""

from contextvars import ContextVar
from typing import override

from skill2env.errors import Skill2EnvError
from skill2env.sandbox.environment import NamespaceEnvironment

START_ERRORS: ContextVar[list[Skill2EnvError] | None] = ContextVar("start_errors", default=None)
"""Where `run_trial` collects what was raised while containers of its trial were being started."""


class TrialNamespaceEnvironment(NamespaceEnvironment):
    """`NamespaceEnvironment`, nothing else changed."""

    @override
    async def start(self, force_build: bool) -> None:
        """Start, and note an error of ours on the way out."""
        try:
            await super().start(force_build)
        except Skill2EnvError as error:
            noted = START_ERRORS.get()
            if noted is not None:
                noted.append(error)
            raise
