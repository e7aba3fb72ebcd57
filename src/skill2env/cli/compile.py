"""``skill2env compile``: skills in, a dataset out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skill2env.cli.output import print_json

if TYPE_CHECKING:
    from skill2env.batch import BatchOutcome

app = typer.Typer(add_completion=False)


@app.command()
def compile(  # noqa: A001
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...", help="Skill folders, or folders that hold some.", show_default=False
        ),
    ],
    *,
    out: Annotated[Path, typer.Option(help="Dataset folder to make or add to.")] = Path("out/dataset"),
    run: Annotated[
        Path | None,
        typer.Option(help="Run folder, for resuming and evidence.", show_default="runs/NAME beside --out"),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file with settings; flags win over it.")] = None,
    author: Annotated[
        str | None,
        typer.Option(
            help="Who writes: 'recorded', 'code', 'builtin', 'harbor:NAME' ...",
            show_default="recorded with --recordings, builtin with --model, else code",
        ),
    ] = None,
    recordings: Annotated[Path | None, typer.Option(help="Folder of recorded sessions.")] = None,
    accept_stale: Annotated[
        bool, typer.Option("--accept-stale", help="Replay recordings of a skill that has changed since.")
    ] = False,
    model: Annotated[str | None, typer.Option(help="Model of the author, as the endpoint knows it.")] = None,
    api: Annotated[
        str | None,
        typer.Option(
            help="Format of the endpoint: 'openai-chat', 'openai-responses', 'anthropic'.",
            show_default="by the model's name",
        ),
    ] = None,
    api_base: Annotated[
        str | None,
        typer.Option(help="Address of the endpoint, for a server of your own: http://HOST:PORT/v1."),
    ] = None,
    prices: Annotated[
        Path | None, typer.Option(help="TOML file with your own prices, dollars per million tokens.")
    ] = None,
    agent_dockerfile: Annotated[
        Path | None, typer.Option(help="Dockerfile of a command-line agent, on top of the session's image.")
    ] = None,
    author_network: Annotated[
        str | None,
        typer.Option(
            help="Network of authoring sessions: 'no-network', 'public', 'allowlist'.",
            show_default="no-network",
        ),
    ] = None,
    workflows: Annotated[
        int | None, typer.Option(help="Workflows asked for per skill.", show_default="3")
    ] = None,
    variants: Annotated[int | None, typer.Option(help="Tasks per workflow.", show_default="1")] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed gives other axes.", show_default="0")] = None,
    solution: Annotated[
        str | None,
        typer.Option(
            help="'informed' or 'blind': whether the solution session sees tests/.", show_default="informed"
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Items worked on at once; never changes a result.", show_default="2")
    ] = None,
    sandbox: Annotated[
        str | None,
        typer.Option(
            help="'auto', 'namespace', 'docker', 'podman', or another of Harbor's.", show_default="auto"
        ),
    ] = None,
    allow_unlimited: Annotated[
        bool, typer.Option("--allow-unlimited", help="Run where a requested limit cannot be enforced.")
    ] = False,
    allow_degraded: Annotated[
        bool,
        typer.Option("--allow-degraded", help="Publish also from a sandbox where agent and root are one."),
    ] = False,
    allow_near_duplicates: Annotated[
        bool,
        typer.Option(
            "--allow-near-duplicates", help="Publish also what nearly equals a task of the dataset."
        ),
    ] = False,
    level: Annotated[
        str | None,
        typer.Option(help="'standard', or 'strict' to publish a benchmark.", show_default="standard"),
    ] = None,
    max_repairs: Annotated[
        int | None, typer.Option(help="Repairs of a failing reference solution.", show_default="2")
    ] = None,
    max_usd: Annotated[
        float | None,
        typer.Option("--max-usd", "--budget-usd", help="Most that all sessions may cost together."),
    ] = None,
    max_usd_per_task: Annotated[
        float | None, typer.Option(help="Most that one task may cost; one that needs more is skipped.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")] = False,
) -> None:
    """Compile skills into verified tasks and publish them as a dataset.

    Run the same command again to go on after an interruption: nothing finished is done twice. Exit codes: 0 every item
    is final (rejections included), 2 usage, 3 infrastructure failed or items are pending, 4 the budget is reached,
    130 interrupted.
    """
    from skill2env.batch import compile_batch
    from skill2env.cli.progress import shown
    from skill2env.cli.summary import EXIT_CODES
    from skill2env.config import load_config

    flags = {
        "author.name": author,
        "author.recordings": str(recordings) if recordings else None,
        "author.accept_stale": accept_stale or None,
        "author.model": model,
        "author.api": api,
        "author.api_base": api_base,
        "author.prices": str(prices.absolute()) if prices else None,
        "author.network": author_network,
        "author.agent_dockerfile": str(agent_dockerfile.absolute()) if agent_dockerfile else None,
        "plan.workflows": workflows,
        "plan.variants": variants,
        "seed": seed,
        "create.solution": solution,
        "workers": workers,
        "sandbox.kind": sandbox,
        "sandbox.allow_unlimited": allow_unlimited or None,
        "sandbox.allow_degraded": allow_degraded or None,
        "publish.near_duplicates": allow_near_duplicates or None,
        "verify.level": level,
        "create.max_repairs": max_repairs,
        "budget.usd": max_usd,
        "budget.usd_per_task": max_usd_per_task,
    }
    settings = load_config(config, flags)
    folder = run or out.parent / "runs" / out.name
    with shown(quiet=quiet or as_json) as progress:
        outcome = compile_batch(paths, out=out, run=folder, config=settings, progress=progress)
    if as_json:
        print_json(outcome.document())
    else:
        _print(outcome)
    raise typer.Exit(EXIT_CODES[outcome.status])


def _print(outcome: "BatchOutcome") -> None:
    from skill2env.batch import BatchStatus
    from skill2env.cli.summary import print_reasons, print_spend

    print_reasons(outcome.reasons)
    print_spend(outcome.spend)
    for sentence in outcome.advice:
        print(sentence)
    if outcome.dataset is not None and outcome.dataset.version:
        dataset = outcome.dataset
        print(f"{dataset.name} {dataset.version}: {len(dataset.entries)} tasks in {outcome.dataset_folder}")
    print(f"run folder: {outcome.run_folder}")
    if outcome.status is not BatchStatus.FINISHED:
        print(f"{outcome.status.value}: run the same command again to go on")
