"""`skill2env lift`: what a skill is worth to an agent, on tasks made of it."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from skill2env.cli.output import ExitCode, dollars, print_json, print_table, tell
from skill2env.cli.progress import shown
from skill2env.cli.rollout import agent_of, options_of
from skill2env.cli.verify import SANDBOX_HELP

if TYPE_CHECKING:
    from skill2env.evaluate.lift import Lift

app = typer.Typer(rich_markup_mode=None)


@app.command()
def lift(
    skill: Annotated[Path, typer.Argument(help="Folder of the skill.", show_default=False)],
    tasks: Annotated[
        list[Path],
        typer.Option("--tasks", help="Datasets or tasks; those that were made of the skill count."),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the rollouts; go on with the same one.")],
    every: Annotated[
        bool, typer.Option("--all-tasks", help="Also tasks that were not made of the skill.")
    ] = False,
    agent: Agent = "builtin",
    model: AgentModel = "",
    api: Api = None,
    api_base: ApiBase = None,
    prices: Prices = None,
    attempts: Annotated[int, typer.Option("--attempts", "-k", min=1, help="Rollouts a task and side.")] = 4,
    option: AgentOption = None,
    agent_timeout: AgentTimeout = None,
    sandbox: Annotated[str, typer.Option(help=SANDBOX_HELP)] = "auto",
    workers: TrialsAtOnce = 2,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Run an agent on the tasks of a skill, with the skill at hand and without, and say what the skill changes.

    Exit code 0 whatever the verdict; 3 when the surroundings prevented some rollouts (the others are compared).
    """
    from skill2env.evaluate.lift import lift as compare
    from skill2env.evaluate.opened import opened
    from skill2env.evaluate.tasks import stage_skill, tasks_of
    from skill2env.harbor.limits import Timeouts
    from skill2env.harbor.sandboxes import choose_sandbox
    from skill2env.interrupts import interruptible
    from skill2env.rollout.records import Rollout, RolloutStatus
    from skill2env.rollout.run import Plan, run_rollouts, subjects
    from skill2env.verify.many import find_tasks

    name, options = agent_of(agent, model, api, api_base, prices)
    options |= options_of(option or [])
    staged = stage_skill(skill, out)
    chosen = subjects(tasks_of(skill, find_tasks(tasks), every=every))
    found: dict[str, list[Rollout]] = {}
    with interruptible(), shown(quiet=quiet or json) as progress:
        plan = Plan(
            agent=name,
            sandbox=choose_sandbox(sandbox),
            model=model,
            base_url="" if agent == "builtin" else api_base or "",
            attempts=attempts,
            agent_kwargs=options,
            timeouts=Timeouts(agent_sec=agent_timeout),
            workers=workers,
            evidence=False,
        )
        for side, sided in (("without", plan), ("with", replace(plan, skills=(staged,)))):
            found[side] = run_rollouts(chosen, sided, out / side, progress=progress)
    result = compare(
        staged.name,
        found["without"],
        found["with"],
        lambda item: opened(out / "with" / item.place, staged.name),
    )
    _print(result, as_json=json)
    lost = sum(item.status is RolloutStatus.ERROR for side in found.values() for item in side)
    if lost:
        tell(f"{lost} rollouts were prevented by the surroundings; the same command runs them again")
        raise typer.Exit(ExitCode.INFRA)


def _print(found: "Lift", *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(found))
        return
    print_table(
        ("TASK", "WITHOUT", "WITH", "PASSED WITHOUT", "PASSED WITH", "OPENED"),
        (
            (
                task.task,
                f"{task.without:.2f}",
                f"{task.with_skill:.2f}",
                f"{task.passed_without:.0%}",
                f"{task.passed_with:.0%}",
                "-" if task.opened is None else f"{task.opened:.0%}",
            )
            for task in found.tasks
        ),
    )
    print(f"\n{found.words}")
    if (passed := found.passed) is not None:
        print(f"pass rate {passed.value:+.0%} ({passed.low:+.0%} to {passed.high:+.0%}, 95 % over tasks)")
    without, with_skill = found.tokens
    costs = " and ".join("no price" if cost is None else dollars(round(cost)) for cost in found.micro_dollars)
    print(f"tokens a rollout {without:.0f} without and {with_skill:.0f} with; cost {costs}")
    for task in found.left_out:
        print(f"not compared, for want of a graded rollout on both sides: {task}")
