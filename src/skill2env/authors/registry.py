"""Who can author: a table of names, entry points of other packages, and references to code of the user's own.

Entry points belong to the group ``skill2env.authors``; a reference is written ``path/to/file.py:factory``. An entry
is a factory that takes `AuthorSettings` and returns an `Author`. It is imported only when it is asked for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from skill2env.authors.protocol import Author
from skill2env.authors.reference import FORM, factory_at, is_reference, made_by
from skill2env.errors import UserError

GROUP = "skill2env.authors"
HARBOR_PREFIX = "harbor:"
"""Before the name of any agent that Harbor knows."""


@dataclass(frozen=True, slots=True)
class AuthorSettings:
    """What the user said about the author."""

    model: str = ""
    recordings: Path | None = None
    accept_stale: bool = False
    """Replay recordings of a skill that has changed since."""
    record_to: Path | None = None
    """Folder in which every finished session is stored."""
    cache: Path | None = None
    """Folder for expensive results that an author may reuse between runs."""
    api: str = ""
    """Wire format of the model's endpoint; empty to choose by the model's name."""
    api_base: str = ""
    """Address of the endpoint; empty for the public one."""
    key_variable: str = ""
    """Environment variable that holds the key; empty for the usual one."""
    prices: Path | None = None
    """Prices of one's own."""
    limited: bool = False
    """What sessions cost is limited, so that a model without a price cannot be used."""
    sandbox: str = "auto"
    """Where sessions run, as for trials."""
    network: str = "no-network"
    """Network of sessions: ``no-network``, ``public`` or ``allowlist``."""
    hosts: tuple[str, ...] = ()
    """For ``allowlist``."""
    timeout_sec: float = 3600
    """Longest session."""
    requests_at_once: int = 8
    """Requests to one endpoint at once."""
    agent_dockerfile: Path | None = None
    """Dockerfile that puts an agent on top of the session's image, for agents that run inside."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further options of the agent, as Harbor takes them."""


AUTHORS: dict[str, str] = {
    "builtin": "skill2env.authors.agents:make_builtin",
    "code": "skill2env.authors.registry:make_code",
    "recorded": "skill2env.authors.registry:make_recorded",
    "scripted": "skill2env.authors.registry:make_scripted",
}
"""Name -> factory as ``module:attribute``."""


def make_recorded(settings: AuthorSettings) -> Author:
    """Replays sessions from `AuthorSettings.recordings`."""
    from skill2env.authors.recorded import RecordedAuthor

    if settings.recordings is None:
        raise UserError(
            "the recorded author needs a folder of recordings", hint="Give one with --recordings DIR."
        )
    return RecordedAuthor.load(settings.recordings, accept_stale=settings.accept_stale)


def make_code(settings: AuthorSettings) -> Author:
    """Brings a skill's own code to life and plants faults in it; needs no model."""
    from skill2env.authors.code.author import CodeAuthor

    return CodeAuthor(cache=settings.cache)


def make_scripted(settings: AuthorSettings) -> Author:
    """A small fixed task for any skill: for trying the pipeline and for tests."""
    from skill2env.authors.scripted import ScriptedAuthor

    del settings
    return ScriptedAuthor()


def names() -> tuple[str, ...]:
    """Every name that `make_author` knows, sorted."""
    return tuple(sorted({*AUTHORS, *(point.name for point in entry_points(group=GROUP))}))


def default_name(settings: AuthorSettings) -> str:
    """The author when none is named: recordings if given, the built-in agent for a model, else the skill's own code."""
    if settings.recordings is not None:
        return "recorded"
    return "builtin" if settings.model else "code"


def make_author(name: str, settings: AuthorSettings) -> Author:
    """The author of that name; empty for the default.

    Args:
        name: of the table or of an entry point, ``harbor:NAME``, or a reference as `factory_at` takes it.
        settings: what the user said about it.

    Raises:
        UserError: no such author, its settings are incomplete, or code of the user's own cannot be used.
    """
    name = name or default_name(settings)
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name.startswith(HARBOR_PREFIX):
        from skill2env.authors.agents import make_harbor_agent

        author = make_harbor_agent(name, settings)
    elif name in AUTHORS:
        module, _, attribute = AUTHORS[name].partition(":")
        factory: Callable[[AuthorSettings], Author] = getattr(import_module(module), attribute)
        author = factory(settings)
    elif name in points:
        author = made_by(points[name].load, settings, name)
    elif is_reference(name):
        author = made_by(lambda: factory_at(name), settings, name)
    else:
        raise UserError(
            f"no author is called {name!r}",
            hint=f"There are: {', '.join(names())}, {HARBOR_PREFIX}NAME for every agent of Harbor, "
            f"and {FORM} for an author of your own.",
        )
    if settings.record_to is None:
        return author
    from skill2env.authors.record import RecordingAuthor

    return RecordingAuthor(author, settings.record_to)
