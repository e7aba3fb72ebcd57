"""``skill2env compile``: skills in, a dataset out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skill2env.cli import options
from skill2env.cli.output import print_json

if TYPE_CHECKING:
    from skill2env.batch import BatchOutcome
    from skill2env.config import RunConfig

app = typer.Typer(add_completion=False)


@app.command()
def compile(  # noqa: A001
    paths: options.Skills,
    *,
    out: Annotated[Path, typer.Option(help="Dataset folder to make or add to.")] = Path("out/dataset"),
    run: Annotated[
        Path | None,
        typer.Option(help="Run folder, for resuming and evidence.", show_default="runs/NAME beside --out"),
    ] = None,
    config: options.Config = None,
    author: Annotated[
        str | None,
        typer.Option(
            help="Who writes: 'recorded', 'code', 'builtin', 'harbor:NAME', 'FILE.py:FACTORY' ...",
            show_default="recorded with --recordings, builtin with --model, else code",
        ),
    ] = None,
    recordings: Annotated[Path | None, typer.Option(help="Folder of recorded sessions.")] = None,
    accept_stale: Annotated[
        bool, typer.Option("--accept-stale", help="Replay recordings of a skill that has changed since.")
    ] = False,
    model: options.Model = None,
    api: options.Api = None,
    api_base: options.ApiBase = None,
    prices: options.Prices = None,
    agent_dockerfile: options.AgentDockerfile = None,
    author_network: options.AuthorNetwork = None,
    requests_at_once: options.RequestsAtOnce = None,
    workflows: options.Workflows = None,
    variants: options.Variants = None,
    seed: Annotated[int | None, typer.Option(help="Another seed gives other axes.", show_default="0")] = None,
    solution: options.Solution = None,
    workers: options.Workers = None,
    sandbox: Annotated[
        str | None,
        typer.Option(
            help="'auto', 'namespace', 'docker', 'podman', or another of Harbor's.", show_default="auto"
        ),
    ] = None,
    allow_unlimited: Annotated[
        bool, typer.Option("--allow-unlimited", help="Run where a requested limit cannot be enforced.")
    ] = False,
    allow_degraded: options.AllowDegraded = False,
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
    max_repairs: options.MaxRepairs = None,
    max_usd: options.MaxUsd = None,
    max_usd_per_task: options.MaxUsdPerTask = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would cost with a model, and stop.")
    ] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
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
        **options.author_flags(
            model=model,
            api=api,
            api_base=api_base,
            prices=prices,
            author_network=author_network,
            agent_dockerfile=agent_dockerfile,
            requests_at_once=requests_at_once,
        ),
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
    if dry_run:
        _print_estimate(paths, folder, settings, as_json=as_json)
        return
    with shown(quiet=quiet or as_json) as progress:
        outcome = compile_batch(paths, out=out, run=folder, config=settings, progress=progress)
    if as_json:
        print_json(outcome.document())
    else:
        _print(outcome)
    raise typer.Exit(EXIT_CODES[outcome.status])


def _print_estimate(paths: list[Path], run: Path, settings: "RunConfig", *, as_json: bool) -> None:
    from skill2env.cli.output import dollars, print_table
    from skill2env.estimate import estimate

    found = estimate(paths, run=run, config=settings)
    if as_json:
        print_json(found.document())
        return
    rows = [
        (phase, f"{count:g}", used.input, used.output, found.measured[phase] or "assumed")
        for (phase, count), used in zip(found.sessions.items(), found.tokens.values(), strict=True)
    ]
    print_table(("phase", "sessions", "tokens in", "tokens out", "from sessions"), rows)
    print(f"{found.skills} skills, {found.left_out} left out before any session; nothing was paid")
    cost = (
        "unknown: the model has no price (--prices)"
        if found.micro_dollars is None
        else dollars(found.micro_dollars)
    )
    print(f"about {cost}; --max-usd sets a limit")


def _print(outcome: "BatchOutcome") -> None:
    from skill2env.batch import BatchStatus
    from skill2env.cli.summary import print_reasons, print_seconds, print_spend

    print_reasons(outcome.reasons)
    print_spend(outcome.spend)
    print_seconds(outcome.summary.get("seconds", {}))
    for sentence in outcome.advice:
        print(sentence)
    if outcome.dataset is not None and outcome.dataset.version:
        dataset = outcome.dataset
        print(f"{dataset.name} {dataset.version}: {len(dataset.entries)} tasks in {outcome.dataset_folder}")
    print(f"run folder: {outcome.run_folder}")
    if outcome.status is not BatchStatus.FINISHED:
        print(f"{outcome.status.value}: run the same command again to go on")
