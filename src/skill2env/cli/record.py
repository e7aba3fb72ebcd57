"""``skill2env record``: compile, and store every authoring session on the way."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skill2env.cli import options
from skill2env.cli.output import ExitCode, print_error, print_json

if TYPE_CHECKING:
    from skill2env.authors.recording import Recording
    from skill2env.errors import UserError

app = typer.Typer(add_completion=False)


@app.command()
def record(
    paths: options.Skills,
    *,
    to: Annotated[Path, typer.Option(help="Folder of recordings to make or add to.", show_default=False)],
    author: Annotated[str | None, typer.Option(help="Whose sessions.", show_default="as for compile")] = None,
    recordings: Annotated[
        Path | None, typer.Option(help="Folder that the author 'recorded' replays.")
    ] = None,
    model: options.Model = None,
    api: options.Api = None,
    api_base: options.ApiBase = None,
    prices: options.Prices = None,
    agent_dockerfile: options.AgentDockerfile = None,
    author_network: options.AuthorNetwork = None,
    requests_at_once: options.RequestsAtOnce = None,
    out: Annotated[
        Path | None, typer.Option(help="Dataset folder for what is accepted.", show_default="TO-dataset")
    ] = None,
    run: Annotated[Path | None, typer.Option(help="Run folder.", show_default="runs/NAME beside TO")] = None,
    config: options.Config = None,
    workflows: options.Workflows = None,
    variants: options.Variants = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the run.", show_default="0")] = None,
    solution: options.Solution = None,
    max_repairs: options.MaxRepairs = None,
    workers: options.Workers = None,
    sandbox: Annotated[str | None, typer.Option(help="Where checks run.", show_default="auto")] = None,
    allow_degraded: options.AllowDegraded = False,
    max_usd: options.MaxUsd = None,
    max_usd_per_task: options.MaxUsdPerTask = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Compile skills and store every authoring session, rejected and skipped ones too, for 'recorded' to replay.

    Sessions are only held when the checks between them pass, so recording is a whole compile; what is accepted is
    published to --out. Run the same command again to go on after an interruption. Exit codes as for compile, and 1
    when a session held a key of its author: what held it is not stored, and the error names it.
    """
    from skill2env.authors.recording import find_recordings
    from skill2env.batch import compile_batch
    from skill2env.cli.progress import shown
    from skill2env.cli.summary import EXIT_CODES, print_reasons, print_spend
    from skill2env.config import load_config

    target = to.absolute()
    dataset = out or target.with_name(f"{target.name}-dataset")
    folder = run or target.parent / "runs" / target.name
    _check(target, folder)
    flags = {
        "author.name": author,
        "author.recordings": str(recordings) if recordings else None,
        "author.record_to": str(target),
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
        "create.max_repairs": max_repairs,
        "workers": workers,
        "sandbox.kind": sandbox,
        "sandbox.allow_degraded": allow_degraded or None,
        "budget.usd": max_usd,
        "budget.usd_per_task": max_usd_per_task,
    }
    settings = load_config(config, flags)
    with shown(quiet=quiet or as_json) as progress:
        outcome = compile_batch(paths, out=dataset, run=folder, config=settings, progress=progress)
    stored = find_recordings(target) if target.is_dir() else ()
    lost = _left_out(stored)
    if as_json:
        kept = [{"folder": str(item.folder), "tasks": len(item.index.tasks)} for item in stored]
        print_json({**outcome.document(), "recordings": kept, "left_out": lost})
    else:
        print_reasons(outcome.reasons)
        print_spend(outcome.spend)
        for item in stored:
            print(f"{item.folder}: {len(item.index.tasks)} tasks")
    code = EXIT_CODES[outcome.status]
    if lost:
        print_error(_held_keys(lost), as_json=as_json)
        code = code or ExitCode.REJECTED
    raise typer.Exit(code)


def _check(target: Path, run: Path) -> None:
    """Refuse a run whose finished sessions would not be held again, and so not be stored.

    Raises:
        UserError: the run folder has a ledger and the recordings are not there.
    """
    from skill2env.errors import UserError
    from skill2env.store.files import check_writable
    from skill2env.store.run_folder import RunFolder

    if RunFolder(run).ledger.exists() and not target.is_dir():
        raise UserError(
            f"the run folder {run} holds finished sessions, which would not be held again and so not be stored",
            hint="give a new folder with --run, or delete that one",
        )
    check_writable(target)


def _left_out(stored: "Sequence[Recording]") -> list[str]:
    """What sessions lack because it held a key of their author, one line each."""
    from skill2env.errors import UserError

    lines: list[str] = []
    for recording in stored:
        try:
            lines += [f"{recording.folder.name}/{line}" for line in recording.left_out()]
        except ValueError as error:
            raise UserError(
                f"damaged recording {recording.folder}: {error}", hint="docs/recordings.md shows the format"
            ) from None
    return lines


def _held_keys(lost: "Sequence[str]") -> "UserError":
    from skill2env.errors import UserError

    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    return UserError(
        f"a key of the author turned up in what it wrote or said, and was not stored: {lost[0]}{more}",
        hint="revoke the key: the run folder holds those files as well; an author that keeps its key out of the"
        " sandbox is `builtin`",
    )
