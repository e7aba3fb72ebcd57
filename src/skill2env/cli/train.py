"""`skill2env train`: a small model on compiled tasks, in real sandboxes, on this machine."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skill2env.cli.options import Api, ApiBase, Json, Quiet
from skill2env.cli.output import ExitCode, print_json, print_table, tell
from skill2env.cli.progress import shown
from skill2env.cli.verify import SANDBOX_HELP

if TYPE_CHECKING:
    from skill2env.train.local.batch import Scorer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Runs = Annotated[list[Path], typer.Argument(help="Folders of training runs.", show_default=False)]


@app.callback()
def train() -> None:
    """Train a small model on compiled tasks, in real sandboxes; curves and gains."""


@app.command()
def run(
    paths: Annotated[
        list[Path], typer.Argument(help="Datasets, tasks, or folders of them.", show_default=False)
    ],
    model: Annotated[
        Path, typer.Option(help="Folder of the first policy; `prepare` makes one of a GGUF file.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the run; give the same one to go on after a kill.")],
    config: Annotated[Path | None, typer.Option(help="TOML file with settings; flags win over it.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps.", show_default="40")] = None,
    seed: Annotated[int | None, typer.Option(help="Of tasks and sampling.", show_default="0")] = None,
    judge_model: Annotated[
        str | None, typer.Option(help="Model that judges each rollout, for policies that use a score.")
    ] = None,
    judge_api: Api = None,
    judge_api_base: ApiBase = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads of the model.", show_default="all cores")
    ] = None,
    sandbox: Annotated[str, typer.Option(help=SANDBOX_HELP)] = "auto",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Roll a policy out on tasks, update it by DPPO, and again.

    Exit code 1 when training was ended early because it had gone astray; the last good checkpoint is kept then.
    """
    _require_torch()
    from skill2env.errors import UserError
    from skill2env.harbor.sandboxes import choose_sandbox
    from skill2env.interrupts import interruptible
    from skill2env.rollout.run import subjects
    from skill2env.train.local.config import read_config
    from skill2env.train.local.policy import use_threads
    from skill2env.train.local.trainer import train as train_model
    from skill2env.train.reward import RubricPolicy
    from skill2env.verify.many import find_tasks

    settings = read_config(config, steps=steps, seed=seed)
    if settings.reward.policy is not RubricPolicy.NONE and not judge_model:
        raise UserError(
            f"the policy {settings.reward.policy.value!r} needs a judge", hint="give one with --judge-model"
        )
    use_threads(threads)
    with interruptible(), shown(quiet=quiet or json) as progress:
        done = train_model(
            subjects(find_tasks(paths)),
            model,
            out,
            settings,
            sandbox=choose_sandbox(sandbox),
            scorer=_scorer(judge_model, judge_api, judge_api_base, out) if judge_model else None,
            progress=progress,
        )
    if json:
        print_json({"steps": done.steps, "policy": str(done.policy), "stopped": done.stopped})
    else:
        print(f"{done.steps} steps; the policy is in {done.policy}")
    if done.stopped:
        tell(f"training was ended early: {done.stopped}")
        raise typer.Exit(ExitCode.REJECTED)


@app.command()
def plot(
    runs: Runs,
    to: Annotated[Path, typer.Option(help="File to write: .png, .svg or .pdf.")],
    window: Annotated[int, typer.Option(min=1, help="Steps of the moving mean.")] = 5,
) -> None:
    """Draw reward, pass rate, length, entropy, divergence, masked share and the judge's score over the steps."""
    from skill2env.train.local.books import read_metrics
    from skill2env.train.local.curves import draw

    draw({run.name: read_metrics(run) for run in runs}, to, window=window)
    print(f"{to}")


@app.command()
def gain(
    runs: Runs,
    block: Annotated[int, typer.Option(min=1, help="Steps in the first and in the last block.")] = 10,
    json: Json = False,
) -> None:
    """Compare the first with the last steps of some runs, with an interval over tasks."""
    from skill2env.train.local.books import read_metrics
    from skill2env.train.local.curves import gain as compare

    found = compare([read_metrics(run) for run in runs], block=block)
    if json:
        print_json({**asdict(found), "beyond_chance": found.beyond_chance})
        return
    print_table(
        ("RUN", f"FIRST {block}", f"LAST {block}"),
        (
            (run.name, f"{before:.3f}", f"{after:.3f}")
            for run, before, after in zip(runs, found.first_by_run, found.last_by_run, strict=True)
        ),
    )
    print(f"\nmean r_V {found.first:.3f} -> {found.last:.3f}; by task {found.low:+.3f} to {found.high:+.3f} "
          f"(95 %, {found.tasks} tasks): {'beyond' if found.beyond_chance else 'within'} chance")  # fmt: skip


@app.command()
def prepare(
    weights: Annotated[Path, typer.Argument(help="A GGUF file.", show_default=False)],
    folder: Annotated[Path, typer.Argument(help="Model folder to make.", show_default=False)],
) -> None:
    """Make a model folder that can be trained out of a GGUF file."""
    _require_torch()
    from skill2env.train.local.prepare import prepare as make

    make(weights, folder)
    print(f"{folder}")


@app.command()
def serve(
    model: Annotated[Path, typer.Argument(help="A model folder.", show_default=False)],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any free one.")] = 8000,
    context_tokens: Annotated[int, typer.Option(min=64, help="Prompt and answer together.")] = 1024,
) -> None:
    """Serve a model to agents: chat completions with token ids and log-probabilities. Ends with Ctrl-C."""
    _require_torch()
    import threading

    from skill2env.errors import UserError
    from skill2env.interrupts import interruptible
    from skill2env.train.local.policy import Policy
    from skill2env.train.local.serving import PolicyServer

    policy = Policy.load(model)
    try:
        server = PolicyServer(policy, context_tokens=context_tokens, port=port)
    except OSError as error:
        raise UserError(
            f"port {port} cannot be had: {error.strerror}", hint="give another with --port"
        ) from error
    with interruptible(), server:
        print(server.base_url, flush=True)
        threading.Event().wait()


def _require_torch() -> None:
    from importlib.util import find_spec

    from skill2env.errors import UserError

    missing = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if missing:
        raise UserError(f"training needs {' and '.join(missing)}", hint="pip install 'skill2env[train]'")


def _scorer(model: str, api: str | None, api_base: str | None, out: Path) -> "Scorer":
    """Asks a judge about the rollouts of a step."""
    from collections.abc import Mapping, Sequence

    from skill2env.judge.cases import cases_of
    from skill2env.judge.judge import Judge
    from skill2env.llm.settings import model_settings
    from skill2env.rollout.records import Rollout
    from skill2env.store.folders import judgements_home

    settings = model_settings(model, api=api or "", base_url=api_base or "")

    def score(folder: Path, rollouts: Sequence[Rollout]) -> Mapping[str, float | None]:
        cases, _ = cases_of(folder, rollouts)
        judge = Judge(settings, cache=judgements_home(), ledger=out / "judge-ledger.jsonl")
        return {item.id: item.score for item in judge.judge(cases)}

    return score
