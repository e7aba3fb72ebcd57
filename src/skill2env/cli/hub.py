"""``skill2env hub``: collect, judge, search and hand on a corpus of skills. The reading verbs are in ``hub_read``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skill2env.cli import hub_read
from skill2env.cli.hub_options import (
    HERE,
    AsJson,
    HubFolder,
    Quiet,
    WorkerCount,
    kind_names,
    open_hub,
    recipe_names,
    source_ids,
)
from skill2env.cli.output import ExitCode, print_json, print_table, tell
from skill2env.errors import UserError

if TYPE_CHECKING:
    from skill2env.hub.update import Updated

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Collect skills from packages, repositories, archives and folders; judge, search and hand them on.",
)


@app.command()
def add(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE...",
            help="A folder, an archive or its URL, a repository's URL (#COMMIT pins it), pypi:NAME==VERSION,"
            " npm:NAME@VERSION, or a folder with an index.jsonl.",
            show_default=False,
        ),
    ] = None,
    *,
    hub: HubFolder = HERE,
    recipe: Annotated[
        str, typer.Option(help="Add the sources of a recipe, by name or file.", autocompletion=recipe_names)
    ] = "",
    name: Annotated[str, typer.Option("--id", help="Name of the source within the hub.")] = "",
    kind: Annotated[
        str, typer.Option(help="What the source is, when that is guessed wrong.", autocompletion=kind_names)
    ] = "",
    revision: Annotated[str, typer.Option(help="Commit, branch, tag or version.")] = "",
    include: Annotated[
        list[str] | None, typer.Option(help="Search only this folder of the source; may be repeated.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Leave this folder of the source out; may be repeated.")
    ] = None,
    sha256: Annotated[str, typer.Option(help="Digest that the archive must have.")] = "",
    collection: Annotated[
        bool,
        typer.Option("--collection", help="It holds other people's skills; its licence is not their grant."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Register sources in the hub's hub.toml. Nothing is fetched yet."""
    from skill2env.hub.folder import Hub, register
    from skill2env.hub.recipes import read_recipe
    from skill2env.hub.sources import spec_of

    here = Hub(hub)
    given = sources or []
    if not given and not recipe:
        raise UserError("nothing to add", hint="give a source, or --recipe packages")
    if name and len(given) != 1:
        raise UserError("--id names one source", hint="add the sources one by one")
    changes = {
        "include": tuple(include or ()),
        "exclude": tuple(exclude or ()),
        "collection": collection,
        "sha256": sha256,
    }
    specs = [spec_of(here, text, name=name, kind=kind, revision=revision, **changes) for text in given]
    specs += read_recipe(recipe) if recipe else []
    register(here, specs)
    if as_json:
        print_json({"hub": str(hub), "added": [spec.model_dump(mode="json") for spec in specs]})
        return
    print_table(
        ("id", "kind", "from", "revision"),
        [(s.id, s.kind.value, s.location, s.revision or "-") for s in specs],
    )
    print(f"{len(specs)} sources added to {here.config_file}; `skill2env hub sync` fetches them")


@app.command()
def sync(
    only: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...", help="Sources to bring up to date; none means all.", autocompletion=source_ids
        ),
    ] = None,
    *,
    hub: HubFolder = HERE,
    locked: Annotated[
        Path | None, typer.Option(help="Bring exactly what this manifest pins, or fail.", show_default=False)
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Use what was downloaded before, and nothing else.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Read everything again, also what did not change.")
    ] = False,
    workers: WorkerCount = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Bring every source up to date, then screen, license, cluster and classify what is new.

    Exit code 3 when a source could not be had (the others are up to date), 1 when --locked found other content.
    """
    from skill2env.cli.progress import shown
    from skill2env.hub.folder import Hub
    from skill2env.hub.update import sync_hub

    here = Hub(hub)
    if locked is None:
        here.require()
    with shown(quiet=quiet or as_json) as progress:
        done = sync_hub(
            here,
            only=only or (),
            locked=locked,
            offline=offline,
            again=again,
            workers=workers,
            progress=progress,
        )
    if as_json:
        print_json(done.document())
    else:
        _print_updated(done)
    if done.failed:
        raise typer.Exit(ExitCode.INFRA)
    if done.differences:
        raise typer.Exit(ExitCode.REJECTED)


def _print_updated(done: "Updated") -> None:
    from skill2env.ingest.text import printable

    rows = [
        (
            s.id,
            s.status.value,
            "-" if s.unchanged else s.skills,
            s.left_out or "-",
            "unchanged" if s.unchanged else "",
        )
        for s in done.sources
    ]
    print_table(("source", "status", "skills", "left out", ""), rows)
    for source in done.sources:
        if source.error:
            tell(f"failed: {printable(source.error, 400)}")
            if source.hint:
                tell(f"hint: {source.hint}")
    for line in done.differences[:20]:
        tell(f"differs from the manifest: {printable(line, 300)}")
    if len(done.differences) > 20:
        tell(f"and {len(done.differences) - 20} more differences")
    print(
        f"{done.scan.skills} contents in the store, {done.scan.examined + done.new} examined, {done.removed} removed"
    )


@app.command()
def scan(
    hub: HubFolder = HERE,
    again: Annotated[bool, typer.Option("--again", help="Examine everything once more.")] = False,
    workers: WorkerCount = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Decide anew on what is stored, after a change of policy or rules; what did not change is not worked out twice."""
    from skill2env.cli.progress import shown
    from skill2env.hub.folder import Hub
    from skill2env.hub.update import scan_hub

    here = Hub(hub)
    here.require()
    with shown(quiet=quiet or as_json) as progress:
        done = scan_hub(here, again=again, workers=workers, progress=progress)
    if as_json:
        print_json(
            {
                "skills": done.skills,
                "decided": done.decided,
                "examined": done.examined,
                "clustered": done.clustered,
            }
        )
        return
    if not done.decided:
        print(f"nothing changed; {done.skills} contents stand as they were")
    else:
        print(f"{done.skills} contents decided, {done.examined} of them examined anew")


@app.command()
def verify(
    hub: HubFolder = HERE,
    repair: Annotated[
        bool, typer.Option("--repair", help="Remove what is damaged, so that the next sync brings it again.")
    ] = False,
    workers: WorkerCount = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read everything stored again and compare it with its digests; exit code 1 when something is damaged."""
    from skill2env.cli.progress import shown
    from skill2env.hub.integrity import verify_hub
    from skill2env.ingest.text import printable

    with shown(quiet=quiet or as_json) as progress:
        found = verify_hub(open_hub(hub), repair=repair, workers=workers, progress=progress)
    if as_json:
        print_json(found.document())
    else:
        for item in found.problems:
            print(printable(f"{item.what}: {item.digest}: {item.why}", 300))
        words = "damaged, removed for the next sync" if repair else "damaged"
        print(f"{found.skills} skills and {found.notices} notices read, {len(found.problems)} problems ({words})"
              if found.problems else f"{found.skills} skills and {found.notices} notices are whole")  # fmt: skip
    if found.problems:
        raise typer.Exit(ExitCode.REJECTED)


app.add_typer(hub_read.app)
