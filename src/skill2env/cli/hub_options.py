"""Options and completions that the verbs of ``skill2env hub`` share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from skill2env.hub.folder import Hub

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
HubFolder = Annotated[Path, typer.Option("--hub", help="The hub's folder.", envvar="SKILL2ENV_HUB")]
WorkerCount = Annotated[
    int, typer.Option("--workers", min=0, max=64, help="Processes; 0 takes one a core.", show_default=False)
]
HERE = Path("hub")


def recipe_names() -> list[str]:
    """Names of the shipped recipes."""
    from skill2env.hub.recipes import names

    return names()


def source_ids(ctx: typer.Context) -> list[str]:
    """Ids to complete; none when the hub cannot be read."""
    from skill2env.errors import Skill2EnvError
    from skill2env.hub.folder import Hub

    try:
        return [spec.id for spec in Hub(Path(ctx.params.get("hub") or HERE)).config().source]
    except Skill2EnvError:
        return []


def domain_names() -> list[str]:
    """Domains, and the word for none."""
    from skill2env.records import Domain

    return [*(domain.value for domain in Domain), "unsure"]


def verdict_names() -> list[str]:
    """Verdicts of screening."""
    from skill2env.hub.rules import ScreeningVerdict

    return [verdict.value for verdict in ScreeningVerdict]


def kind_names() -> list[str]:
    """Kinds of sources."""
    from skill2env.hub.records import SourceKind

    return [kind.value for kind in SourceKind]


def open_hub(folder: Path) -> "Hub":
    """The hub of a folder.

    Raises:
        UserError: it is none.
    """
    from skill2env.hub.folder import Hub

    here = Hub(folder)
    here.require()
    return here
