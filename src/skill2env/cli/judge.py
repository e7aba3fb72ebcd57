"""`skill2env judge`: score how rollouts were done, against their rubric and a constitution; and judge the judge."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skill2env.cli.options import Api, ApiBase, Json, MaxUsd, Prices, Quiet
from skill2env.cli.output import ExitCode, dollars, print_json, print_table, tell
from skill2env.cli.progress import shown
from skill2env.judge.records import Evidence

if TYPE_CHECKING:
    from skill2env.judge.calibration import Calibration
    from skill2env.judge.records import Case

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
JUDGEMENTS_FILE = "judgements.jsonl"
LEDGER_FILE = "judge-ledger.jsonl"

File = Annotated[Path, typer.Argument(help="Judgements, as `run` writes them.", show_default=False)]


@app.callback()
def judge() -> None:
    """Score how rollouts were done, against their rubric and a constitution; and judge the judge."""


@app.command()
def run(
    path: Annotated[
        Path, typer.Argument(help="A folder of rollouts, or a trajectory (ATIF).", show_default=False)
    ],
    model: Annotated[str, typer.Option(help="Model that judges, as the endpoint knows it.")],
    task: Annotated[Path | None, typer.Option(help="The task of the trajectory.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File to write.", show_default=f"{JUDGEMENTS_FILE} beside the rollouts"),
    ] = None,
    evidence: Annotated[
        Evidence,
        typer.Option(help="What the judge sees: the record, or also what changed in the file system."),
    ] = Evidence.TRACE,
    samples: Annotated[int, typer.Option(min=1, max=15, help="Answers a rollout; their median counts.")] = 1,
    tries: Annotated[
        int, typer.Option(min=1, max=10, help="Requests for one answer, until it is valid.")
    ] = 3,
    temperature: Annotated[
        float | None, typer.Option(min=0, max=2, help="Of the judge.", show_default="the endpoint's")
    ] = None,
    max_output_tokens: Annotated[
        int, typer.Option(min=64, help="Of one answer, hidden reasoning included.")
    ] = 4096,
    api: Api = None,
    api_base: ApiBase = None,
    prices: Prices = None,
    max_usd: MaxUsd = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Rollouts judged at once.")] = 4,
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Take equal questions from earlier runs.")
    ] = True,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Ask a model for a score in [-5, 5] of each graded rollout, with its reason.

    An answer that is malformed after all tries is a judgement without a score: the reward then does without the judge
    for the whole group. Every request is one line of a ledger beside the output.
    """
    from skill2env.errors import UserError
    from skill2env.interrupts import interruptible
    from skill2env.judge.calibration import calibration
    from skill2env.judge.files import write_judgements
    from skill2env.judge.judge import Judge, JudgeConfig
    from skill2env.llm.prices import PriceTable
    from skill2env.llm.settings import model_settings
    from skill2env.progress import Event, EventKind
    from skill2env.store.folders import judgements_home

    cases = _cases(path, task)
    place = out or (path if path.is_dir() else path.parent) / JUDGEMENTS_FILE
    if not place.absolute().parent.is_dir():
        raise UserError(f"{place.parent} is no folder", hint="make it, or give another place with --out")
    settings = model_settings(
        model,
        api=api or "",
        base_url=api_base or "",
        temperature=temperature,
        max_output_tokens=max_output_tokens,
    )
    with interruptible(), shown(quiet=quiet or json) as progress:
        progress(Event(EventKind.PHASE, "judge", total=len(cases)))
        asked = Judge(
            settings,
            JudgeConfig(
                samples=samples, tries=tries, evidence=evidence, workers=workers, max_usd=max_usd or 0
            ),
            price=PriceTable.of(prices).find(settings.name),
            cache=judgements_home() if cache else None,
            ledger=place.with_name(LEDGER_FILE),
            progress=progress,
        )
        made = asked.judge(cases)
    write_judgements(place, made)
    _print(calibration(made), as_json=json)
    if not json:
        cost = dollars(asked.spent) if asked.price else "unknown (no price)"
        print(f"cost of this run: {cost}; written to {place}")


@app.command()
def report(file: File, json: Json = False) -> None:
    """Show how scores are distributed, what they leave undecided, and whether they drift over training steps."""
    from skill2env.judge.calibration import calibration
    from skill2env.judge.files import read_judgements

    _print(calibration(read_judgements(file)), as_json=json)


@app.command()
def agree(
    first: File,
    second: Annotated[Path, typer.Argument(help="Judgements of another judge.", show_default=False)],
    json: Json = False,
) -> None:
    """Show how far two judges agree on the same rollouts."""
    from skill2env.judge.agreement import agreement
    from skill2env.judge.files import read_judgements

    found = agreement(read_judgements(first), read_judgements(second))
    if json:
        print_json({name: getattr(found, name) for name in found.__slots__})
    else:
        rows = [(name.replace("_", " "), getattr(found, name)) for name in found.__slots__]
        print_table(
            ("MEASURE", "VALUE"),
            (
                (name, "-" if value is None else value if isinstance(value, int) else f"{value:.3f}")
                for name, value in rows
            ),
        )
    if not found.common:
        tell("the two files have no rollout in common that both gave a score")
        raise typer.Exit(ExitCode.REJECTED)


def _cases(path: Path, task: Path | None) -> "list[Case]":
    from skill2env.errors import UserError
    from skill2env.judge.cases import case_of, cases_of
    from skill2env.rollout.folder import read_rollouts

    if task is not None:
        return [case_of(path, task)]
    if not path.is_dir():
        raise UserError(
            f"{path} is no folder of rollouts", hint="for one trajectory, give its task with --task DIR"
        )
    cases, left_out = cases_of(path, read_rollouts(path))
    for sentence in left_out:
        tell(sentence)
    if not cases:
        raise UserError(
            f"nothing in {path} can be judged", hint="skill2env rollout stats DIR shows what there is"
        )
    return cases


def _print(found: "Calibration", *, as_json: bool) -> None:
    from skill2env.judge.calibration import sentences

    if as_json:
        trend = found.trend
        shown_trend = trend and {
            **{name: getattr(trend, name) for name in trend.__slots__},
            "flat": trend.flat,
        }
        document = {name: getattr(found, name) for name in found.__slots__}
        print_json({**document, "trend": shown_trend, "sentences": sentences(found)})
        return
    most = max([1, *found.histogram.values()])
    print_table(
        ("SCORE", "ROLLOUTS", ""),
        ((f"{value:+d}", count, "#" * round(30 * count / most)) for value, count in found.histogram.items()),
    )
    if found.mean is not None:
        spread = "" if found.deviation is None else f", standard deviation {found.deviation:.2f}"
        print(f"\nmean {found.mean:+.2f}{spread}, {found.poor or 0:.1%} at -2 or lower")
    for sentence in sentences(found):
        print(sentence)
