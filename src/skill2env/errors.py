"""The error tree, and `boundary()`: the one place that says whose failure a failure is.

Three kinds of trouble exist and they are never mixed up:

* `UserError`: the person who called us can mend it. Printed as one message and a hint, without a traceback.
* `InfraError`: the machine, the sandbox, a registry or a provider failed. Retried with a limit; never a verdict
  about a skill or a task. Carries exactly one `Boundary`.
* everything else is a bug of ours and keeps its traceback.

A bad skill, a bad task and a failing author are *data* (`Diagnostic`, `Skipped`, `Rejected` in `records`), not errors.
"""

from collections.abc import Generator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any


class Boundary(StrEnum):
    """Where an infrastructure failure happened. Members carry what a user should look at first."""

    SANDBOX = "sandbox"
    """Starting, entering or cleaning up a sandbox; run `skill2env doctor`."""
    BUILD = "build"
    """Building a base image or a layer for a reason other than the Dockerfile itself."""
    NETWORK = "network"
    """A package mirror or registry could not be reached during a build."""
    PROVIDER = "provider"
    """A model endpoint failed, refused or timed out."""
    AUTHOR = "author"
    """The author process failed without a result of its own."""
    HARBOR = "harbor"
    """Harbor raised outside the task's responsibility."""
    STORAGE = "storage"
    """Disk full, read-only folder, lock held, or a damaged ledger."""


class Skill2EnvError(Exception):
    """Root of every error raised on purpose. `hint` names what to do next and may be empty."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are rebuilt from `args` alone, which fits no constructor that wants more than a message; what a
        # worker process raises has to arrive as what it was.
        return _rebuilt, (type(self), self.args), dict(self.__dict__)


def _rebuilt(kind: type[Skill2EnvError], args: tuple[Any, ...]) -> Skill2EnvError:
    """An error without its attributes, which pickle fills in."""
    return kind.__new__(kind, *args)


class UserError(Skill2EnvError):
    """The caller asked for something that cannot be done as asked (exit code 2)."""


class BudgetReached(Skill2EnvError):
    """A limit on money or tokens set by the user was reached (exit code 4). The run is resumable."""


class InfraError(Skill2EnvError):
    """The surroundings failed (exit code 3). `transient` says whether trying again can help."""

    def __init__(self, boundary: Boundary, message: str, *, hint: str = "", transient: bool = True) -> None:
        super().__init__(message, hint=hint)
        self.boundary = boundary
        self.transient = transient


@contextmanager
def boundary(where: Boundary, doing: str, *, hint: str = "") -> Generator[None]:
    """Attribute any `OSError`, `TimeoutError` or `RuntimeError` raised inside to `where`, once.

    Args:
        where: the boundary that owns failures of the enclosed block.
        doing: what was being attempted, in the present participle ("starting the sandbox").
        hint: what the user can do about it.

    Raises:
        InfraError: for the errors named above. An error of our own tree passes through unchanged, so the
            innermost boundary wins and a failure is attributed exactly once.
    """
    try:
        yield
    except Skill2EnvError:
        raise
    except (OSError, TimeoutError, RuntimeError) as error:
        raise InfraError(where, f"{doing} failed: {error}", hint=hint) from error
