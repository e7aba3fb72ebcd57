"""`skill2env audit`: a person labels a random sample of tasks, and the rates say how far the gates can be trusted."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skill2env.cli.output import print_json, print_table, tell

if TYPE_CHECKING:
    from skill2env.view.audit_server import Audit
    from skill2env.view.labels import Rate

app = typer.Typer()


@app.command()
def audit(
    dataset: Annotated[Path, typer.Argument(help="A dataset, or any folder of tasks.", show_default=False)],
    sample: Annotated[int, typer.Option(min=1, help="Tasks to look at.")] = 100,
    seed: Annotated[int, typer.Option(help="Another seed gives another sample.")] = 0,
    labels: Annotated[
        Path, typer.Option(help="Where the answers are kept; go on with the same file.")
    ] = Path("audit.json"),
    skills: Annotated[Path | None, typer.Option(help="Show these skills beside the tasks.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page on this machine.")] = 0,
    report: Annotated[bool, typer.Option("--report", help="Print the rates so far and stop.")] = False,
    json: Annotated[bool, typer.Option("--json", help="With --report, print one JSON document.")] = False,
) -> None:
    """Label a random sample of tasks on a page of this machine, and print the rates with Wilson intervals.

    Three questions a task: can it be solved by a shortcut, is it faithful to its skill, is its instruction unambiguous.
    """
    from skill2env.cli.verdicts import skill_texts
    from skill2env.verify.many import find_tasks
    from skill2env.view.audit_server import Audit
    from skill2env.view.labels import LabelFile, rates, sample_of

    root = dataset.resolve()
    found = {task.relative_to(root).as_posix(): task for task in find_tasks([dataset])}
    chosen = {name: found[name] for name in sample_of(list(found), sample, seed)}
    file = LabelFile(labels, seed)
    if not report:
        _serve(Audit(chosen, file, skill_texts(skills)), port)
    current = file.current(chosen)
    _print(rates(current), len(current), len(chosen), as_json=json)


def _serve(page: "Audit", port: int) -> None:
    from skill2env.errors import UserError
    from skill2env.view.audit_server import HOST, serve

    try:
        server = serve(page, port)
    except OSError as error:
        raise UserError(
            f"port {port} cannot be used: {error.strerror}", hint="give another one with --port"
        ) from None
    tell(
        f"label the sample at http://{HOST}:{server.server_port}/ and end with Ctrl-C; answers are kept at once"
    )
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        tell("")
    finally:
        server.server_close()


def _print(found: "list[Rate]", labelled: int, total: int, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "sample": total,
                "labelled": labelled,
                "rates": {
                    rate.question.value: {
                        "yes": rate.yes,
                        "no": rate.no,
                        "unsure": rate.unsure,
                        "share": rate.share,
                        "interval": list(rate.interval),
                    }
                    for rate in found
                },
            }
        )
        return
    print(f"{labelled} of {total} tasks are labelled")
    print_table(
        ("QUESTION", "YES", "NO", "UNSURE", "SHARE OF YES", "95 % INTERVAL"),
        (
            (
                rate.question.value,
                rate.yes,
                rate.no,
                rate.unsure,
                "-" if rate.share is None else f"{rate.share:.1%}",
                "{:.1%} - {:.1%}".format(*rate.interval),
            )
            for rate in found
        ),
    )
