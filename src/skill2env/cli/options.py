"""Options that several verbs share, each in one place."""

from pathlib import Path
from typing import Annotated

import typer

Skills = Annotated[
    list[Path],
    typer.Argument(metavar="PATH...", help="Skill folders, or folders that hold some.", show_default=False),
]
Config = Annotated[Path | None, typer.Option(help="TOML file with settings; flags win over it.")]
Model = Annotated[str | None, typer.Option(help="Model of the author, as the endpoint knows it.")]
Api = Annotated[
    str | None,
    typer.Option(
        help="Format of the endpoint: 'openai-chat', 'openai-responses', 'anthropic'.",
        show_default="by the model's name",
    ),
]
ApiBase = Annotated[
    str | None, typer.Option(help="Address of the endpoint, for a server of your own: http://HOST:PORT/v1.")
]
Prices = Annotated[
    Path | None, typer.Option(help="TOML file with your own prices, dollars per million tokens.")
]
AgentDockerfile = Annotated[
    Path | None, typer.Option(help="Dockerfile of a command-line agent, on top of the session's image.")
]
AuthorNetwork = Annotated[
    str | None,
    typer.Option(
        help="Network of authoring sessions: 'no-network', 'public', 'allowlist'.", show_default="no-network"
    ),
]
RequestsAtOnce = Annotated[
    int | None, typer.Option(help="Requests to one endpoint at once, of all workers.", show_default="8")
]
Workflows = Annotated[int | None, typer.Option(help="Workflows asked for per skill.", show_default="3")]
Variants = Annotated[int | None, typer.Option(help="Tasks per workflow.", show_default="1")]
Solution = Annotated[
    str | None,
    typer.Option(
        help="'informed' or 'blind': whether the solution session sees tests/.", show_default="informed"
    ),
]
MaxRepairs = Annotated[
    int | None, typer.Option(help="Repairs of a failing reference solution.", show_default="2")
]
Workers = Annotated[
    int | None, typer.Option(help="Items worked on at once; never changes a result.", show_default="2")
]
AllowDegraded = Annotated[
    bool, typer.Option("--allow-degraded", help="Publish also from a sandbox where agent and root are one.")
]
MaxUsd = Annotated[
    float | None,
    typer.Option("--max-usd", "--budget-usd", help="Most that all sessions may cost together."),
]
MaxUsdPerTask = Annotated[
    float | None, typer.Option(help="Most that one task may cost; one that needs more is skipped.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]


def author_flags(
    *,
    model: str | None,
    api: str | None,
    api_base: str | None,
    prices: Path | None,
    author_network: str | None,
    agent_dockerfile: Path | None,
    requests_at_once: int | None,
) -> dict[str, str | int | None]:
    """Flags about an author's model as `load_config` takes them."""
    return {
        "author.model": model,
        "author.api": api,
        "author.api_base": api_base,
        "author.prices": str(prices.absolute()) if prices else None,
        "author.network": author_network,
        "author.requests_at_once": requests_at_once,
        "author.agent_dockerfile": str(agent_dockerfile.absolute()) if agent_dockerfile else None,
    }


Agent = Annotated[
    str, typer.Option(help="'builtin', a name of Harbor's ('oracle', 'terminus-2' ...), or module:Class.")
]
AgentModel = Annotated[str, typer.Option(help="Model of the agent, as the endpoint knows it.")]
AgentOption = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="Option of the agent; the value may be JSON."),
]
AgentTimeout = Annotated[
    float | None, typer.Option(min=1, help="Seconds that the agent has, instead of the task's.")
]
TrialsAtOnce = Annotated[int, typer.Option(min=1, max=256, help="Trials at once.")]
