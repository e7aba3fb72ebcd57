"""`skill2env rollout`: let an agent solve tasks, and keep what is trained on, judged and counted."""

import json as jsonlib
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skill2env.cli.options import (
    Agent,
    AgentModel,
    AgentOption,
    AgentTimeout,
    Api,
    ApiBase,
    Json,
    Prices,
    Quiet,
    TrialsAtOnce,
)
from skill2env.cli.output import ExitCode, dollars, print_json, print_table
from skill2env.cli.progress import shown
from skill2env.cli.verify import SANDBOX_HELP, parse_image_map
from skill2env.errors import UserError

if TYPE_CHECKING:
    from skill2env.rollout.stats import Stats

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Folder = Annotated[Path, typer.Argument(help="A folder of rollouts.", show_default=False)]


class Policy(StrEnum):
    """Values of ``--policy``."""

    NONE = "none"
    ADDITIVE = "additive"
    GATED = "gated"
    SCALED = "scaled"
    SHAPED = "shaped"


@app.callback()
def rollout() -> None:
    """Let an agent solve tasks, and keep what is trained on, judged and counted."""


@app.command()
def run(
    paths: Annotated[
        list[Path], typer.Argument(help="Datasets, tasks, or folders of them.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="Folder of the rollouts; go on with the same one.")],
    agent: Agent = "builtin",
    model: AgentModel = "",
    api: Api = None,
    api_base: ApiBase = None,
    prices: Prices = None,
    attempts: Annotated[int, typer.Option("--attempts", "-k", min=1, help="Rollouts a task.")] = 8,
    option: AgentOption = None,
    step: Annotated[int | None, typer.Option(help="Training step of the policy.")] = None,
    agent_timeout: AgentTimeout = None,
    tries: Annotated[int, typer.Option(min=1, help="Trials a rollout, where the surroundings fail.")] = 3,
    sandbox: Annotated[str, typer.Option(help=SANDBOX_HELP)] = "auto",
    base: Annotated[
        list[str] | None,
        typer.Option("--base", help="Run a foreign image as one of our bases.", metavar="REF=NAME"),
    ] = None,
    workers: TrialsAtOnce = 2,
    allow_unlimited: Annotated[
        bool, typer.Option(help="Run even where this machine cannot enforce a requested limit.")
    ] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Run an agent over tasks, several times each.

    Exit code 0 when every rollout ended, also with a bad reward; 3 when the surroundings prevented some.
    """
    image_map = parse_image_map(base or [])
    from skill2env.harbor.limits import Timeouts
    from skill2env.harbor.sandboxes import choose_sandbox
    from skill2env.interrupts import interruptible
    from skill2env.rollout.records import RolloutStatus
    from skill2env.rollout.run import Plan, run_rollouts, subjects
    from skill2env.rollout.stats import stats
    from skill2env.verify.many import find_tasks

    name, options = agent_of(agent, model, api, api_base, prices)
    options |= options_of(option or [])
    tasks = subjects(find_tasks(paths))
    with interruptible(), shown(quiet=quiet or json) as progress:
        plan = Plan(
            agent=name,
            sandbox=choose_sandbox(sandbox, image_map=image_map, allow_unlimited=allow_unlimited),
            model=model,
            base_url="" if agent == "builtin" else api_base or "",
            attempts=attempts,
            agent_kwargs=options,
            timeouts=Timeouts(agent_sec=agent_timeout),
            tries=tries,
            step=step,
            workers=workers,
        )
        found = run_rollouts(tasks, plan, out, progress=progress)
    _print(stats(found), as_json=json)
    if any(item.status is RolloutStatus.ERROR for item in found):
        raise typer.Exit(ExitCode.INFRA)


@app.command(name="stats")
def stats_command(folder: Folder, json: Json = False) -> None:
    """Show how rollouts ended, what they earned, and how long and dear they were."""
    from skill2env.rollout.folder import read_rollouts
    from skill2env.rollout.stats import stats

    _print(stats(read_rollouts(folder)), as_json=json)


@app.command()
def export(
    folder: Folder,
    to: Annotated[
        Path, typer.Option(help="File to write: JSON, one rollout a line, or .parquet with a card.")
    ],
    judgements: Annotated[Path | None, typer.Option(help="Scores, from `skill2env judge run`.")] = None,
    policy: Annotated[Policy, typer.Option(help="How scores enter the reward.")] = Policy.NONE,
    rubric_weight: Annotated[
        float, typer.Option(min=0, max=10, help="Lambda: what the best score adds.")
    ] = 0.2,
    keep_rest: Annotated[
        bool, typer.Option("--keep-rest", help="Keep groups with missing rollouts, without those.")
    ] = False,
    size: Annotated[
        int | None,
        typer.Option(min=2, help="Rollouts that a group must have.", show_default="as many as it has"),
    ] = None,
    json: Json = False,
) -> None:
    """Write rollouts for a trainer: groups, token ids, masks, log-probabilities, metrics, rewards, advantages."""
    from skill2env.judge.files import read_judgements
    from skill2env.rollout.folder import read_rollouts
    from skill2env.train.export import export as write
    from skill2env.train.reward import MissingPolicy, RewardConfig, RubricPolicy

    config = RewardConfig(
        policy=RubricPolicy(policy.value),
        rubric_weight=rubric_weight,
        missing=MissingPolicy.KEEP_REST if keep_rest else MissingPolicy.DROP_GROUP,
    )
    scores = read_judgements(judgements) if judgements else ()
    done = write(folder, read_rollouts(folder), to, judgements=scores, config=config, size=size)
    if json:
        print_json({name: getattr(done, name) for name in done.__slots__})
        return
    print(f"{done.rollouts} rollouts in {done.groups} groups, {done.usable} of them usable: {to}")
    if done.dropped_terms:
        print(f"the judge's term was dropped in {done.dropped_terms} groups, for want of a valid score")
    if not done.with_tokens:
        print("no rollout has token ids: use an agent and a server that give them to train by token")


@app.command()
def rewards(
    folder: Folder,
    judgements: Annotated[Path, typer.Option(help="Scores, from `skill2env judge run`.")],
    rubric_weights: Annotated[
        str, typer.Option(help="Values of lambda to try, with commas.")
    ] = "0.1,0.2,0.4",
    json: Json = False,
) -> None:
    """Show what each rubric policy and weight would teach from the same rollouts, before anything is trained.

    KEPT: groups with a signal; BY THE JUDGE: those in which the verifier has none; CONTRADICTED: pairs that the
    verifier tells apart and the reward orders the other way; FAILED ABOVE PASSED: the same of one that passed and one
    that did not; PAID FOR NOTHING: rollouts with r_V = 0 that earn more than 0.
    """
    from skill2env.judge.files import read_judgements
    from skill2env.rollout.folder import read_rollouts
    from skill2env.train.compare import compare
    from skill2env.train.reward import Graded, RubricPolicy, sweep

    scores = {item.id: item.score for item in read_judgements(judgements)}
    groups: dict[str, list[Graded]] = {}
    for item in read_rollouts(folder):
        groups.setdefault(item.group, []).append(Graded(item.metrics, scores.get(item.id)))
    found = compare(list(groups.values()), sweep(list(RubricPolicy), _weights(rubric_weights)))
    if json:
        print_json([{name: getattr(row, name) for name in row.__slots__} for row in found])
        return
    names = ("contradicted", "failed_above_passed", "paid_for_nothing")
    print_table(
        (
            "POLICY",
            "LAMBDA",
            "GROUPS",
            "KEPT",
            "BY THE JUDGE",
            *(name.replace("_", " ").upper() for name in names),
        ),
        (
            (
                row.policy,
                "-" if row.policy == "none" else f"{row.rubric_weight:g}",
                row.groups,
                row.kept,
                row.by_the_judge,
                *("-" if (share := getattr(row, name)) is None else f"{share:.1%}" for name in names),
            )
            for row in found
        ),
    )


def _weights(text: str) -> list[float]:
    try:
        found = [float(item) for item in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 <= value <= 10 for value in found):
        raise UserError(
            f"--rubric-weights {text!r} are no numbers in [0, 10]", hint="for example 0.1,0.2,0.4"
        )
    return found


@app.command()
def sft(
    folder: Folder,
    to: Annotated[Path, typer.Option(help="File to write: JSON, one conversation a line.")],
    every: Annotated[bool, typer.Option("--all", help="Also rollouts that did not pass.")] = False,
    leave_out: Annotated[
        bool, typer.Option("--leave-out-loops", help="Leave out what goes in circles or repeats itself.")
    ] = False,
    json: Json = False,
) -> None:
    """Write rollouts as conversations for supervised fine-tuning, and report those that go in circles."""
    from skill2env.rollout.folder import read_rollouts
    from skill2env.rollout.sft import Selection, write_sft

    selection = Selection.ALL if every else Selection.PASSING
    done = write_sft(folder, read_rollouts(folder), to, selection=selection, leave_out=leave_out)
    if json:
        print_json({**{name: getattr(done, name) for name in done.__slots__}, "suspicious": done.suspicious})
        return
    print(f"{done.written} conversations: {to}; {done.failed} rollouts did not pass, "
          f"{len(done.unreadable)} have no trajectory")  # fmt: skip
    odd = sorted({*done.looping, *done.repetitive})
    if odd:
        print(f"{len(done.looping)} loop and {len(done.repetitive)} repeat their own words, which can make a small "
              f"model collapse: {', '.join(odd[:5])}{' ...' if len(odd) > 5 else ''}")  # fmt: skip


def agent_of(
    agent: str, model: str, api: str | None, api_base: str | None, prices: Path | None
) -> tuple[str, dict[str, Any]]:
    """What `run_trial` takes for an agent, and the options that follow from the flags.

    Raises:
        UserError: there is no such agent, or flags are given that it does not take.
    """
    from skill2env.harbor.agent_names import agent_names
    from skill2env.harbor.builtin import BUILTIN_AGENT

    if agent == "builtin":
        if not model:
            raise UserError("the built-in agent needs a model", hint="give one with --model NAME")
        given = {"api": api, "api_base": api_base, "prices": str(prices.absolute()) if prices else None}
        return BUILTIN_AGENT, {name: value for name, value in given.items() if value}
    if api or prices:
        raise UserError("--api and --prices are for the built-in agent", hint="give options with --option")
    if ":" not in agent and agent not in {*agent_names(), "oracle", "nop"}:
        raise UserError(
            f"there is no agent {agent!r}",
            hint=f"there are: builtin, oracle, nop, {', '.join(agent_names())}",
        )
    return agent, {}


def options_of(items: list[str]) -> dict[str, Any]:
    """Options of an agent from ``NAME=VALUE`` flags.

    Raises:
        UserError: a flag has another form.
    """
    found: dict[str, Any] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not name or not equals:
            raise UserError(f"--option {item!r} is not NAME=VALUE", hint="for example --option max_turns=20")
        try:
            found[name] = jsonlib.loads(value)
        except ValueError:
            found[name] = value
    return found


def _print(found: "Stats", *, as_json: bool) -> None:
    if as_json:
        tasks = [
            {**{name: getattr(task, name) for name in task.__slots__}, "pass_rate": task.pass_rate}
            for task in found.tasks
        ]
        print_json({**{name: getattr(found, name) for name in found.__slots__}, "tasks": tasks})
        return
    print_table(
        ("TASK", "GRADED", "PASSES", "MEAN r_V", "SPREAD"),
        (
            (task.task, task.graded, task.passes, f"{task.mean_outcome:.3f}", f"{task.spread:.3f}")
            for task in found.tasks
        ),
    )
    ended = ", ".join(f"{count} {status}" for status, count in found.by_status.items() if count)
    print(f"\n{found.rollouts} rollouts: {ended}")
    if found.mean_outcome is not None and found.pass_at_1 is not None:
        print(f"mean r_V {found.mean_outcome:.3f}, pass@1 {found.pass_at_1:.1%}, "
              f"{found.silent_groups} groups without a signal of the verifier")  # fmt: skip
        means = ((found.mean_model_calls, "model calls"), (found.mean_tool_calls, "tool calls"),
                 (found.mean_output_tokens, "tokens written"), (found.mean_seconds, "seconds"))  # fmt: skip
        print("a rollout: " + ", ".join(f"{value:.1f} {what}" for value, what in means if value is not None))
    cost = dollars(found.micro_dollars) + (
        f", and {found.unpriced} rollouts without a price" if found.unpriced else ""
    )
    print(f"cost: {cost}")
