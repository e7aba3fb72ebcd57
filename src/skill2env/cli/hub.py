"""``skill2env hub``: collect, judge, search and hand on a corpus of skills."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skill2env.cli.output import ExitCode, print_json, print_table, size, tell
from skill2env.errors import UserError

if TYPE_CHECKING:
    from skill2env.hub.folder import Hub
    from skill2env.hub.queries import Filter
    from skill2env.hub.update import Updated

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Collect skills from packages, repositories, archives and folders; judge, search and hand them on.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
HubFolder = Annotated[Path, typer.Option("--hub", help="The hub's folder.", envvar="SKILL2ENV_HUB")]
WorkerCount = Annotated[
    int, typer.Option("--workers", min=0, max=64, help="Processes; 0 takes one a core.", show_default=False)
]
_HERE = Path("hub")


def _recipes() -> list[str]:
    from skill2env.hub.recipes import names

    return names()


def _sources_of(ctx: typer.Context) -> list[str]:
    """Ids to complete; none when the hub cannot be read."""
    from skill2env.errors import Skill2EnvError
    from skill2env.hub.folder import Hub

    try:
        return [spec.id for spec in Hub(Path(ctx.params.get("hub") or _HERE)).config().source]
    except Skill2EnvError:
        return []


def _domains() -> list[str]:
    from skill2env.records import Domain

    return [*(domain.value for domain in Domain), "unsure"]


def _verdicts() -> list[str]:
    from skill2env.hub.rules import ScreeningVerdict

    return [verdict.value for verdict in ScreeningVerdict]


def _kinds() -> list[str]:
    from skill2env.hub.records import SourceKind

    return [kind.value for kind in SourceKind]


@app.command()
def add(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE...",
            help="A folder, an archive, a repository's URL (#COMMIT pins it), pypi:NAME==VERSION, npm:NAME@VERSION,"
            " or a folder with an index.jsonl.",
            show_default=False,
        ),
    ] = None,
    *,
    hub: HubFolder = _HERE,
    recipe: Annotated[
        str, typer.Option(help="Add the sources of a recipe, by name or file.", autocompletion=_recipes)
    ] = "",
    name: Annotated[str, typer.Option("--id", help="Name of the source within the hub.")] = "",
    kind: Annotated[
        str, typer.Option(help="What the source is, when that is guessed wrong.", autocompletion=_kinds)
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
            metavar="[ID]...", help="Sources to bring up to date; none means all.", autocompletion=_sources_of
        ),
    ] = None,
    *,
    hub: HubFolder = _HERE,
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
    hub: HubFolder = _HERE,
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


@app.command("list")
def list_skills(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD]...", help="Words that must occur in name, description or body."),
    ] = None,
    *,
    hub: HubFolder = _HERE,
    source: Annotated[
        list[str] | None, typer.Option(help="Of this source.", autocompletion=_sources_of)
    ] = None,
    domain: Annotated[
        list[str] | None, typer.Option(help="Of this domain, or 'unsure'.", autocompletion=_domains)
    ] = None,
    licence: Annotated[list[str] | None, typer.Option(help="Under this licence, or 'none'.")] = None,
    language: Annotated[list[str] | None, typer.Option(help="In this language (ISO 639-1).")] = None,
    verdict: Annotated[
        list[str] | None, typer.Option(help="With this verdict.", autocompletion=_verdicts)
    ] = None,
    flag: Annotated[list[str] | None, typer.Option(help="With a flag of this rule.")] = None,
    no_flag: Annotated[list[str] | None, typer.Option(help="Without flags of this rule.")] = None,
    scripts: Annotated[bool | None, typer.Option(help="With, or without, scripts.")] = None,
    allowed: Annotated[bool | None, typer.Option(help="Allowed, or refused, by the licence policy.")] = None,
    copies: Annotated[bool | None, typer.Option(help="Copies of other skills, or no copies.")] = None,
    chosen: Annotated[bool | None, typer.Option(help="What an export takes, or what it leaves.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="Show at most so many; 0 shows all.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Search and list skills; filters add up, a repeated filter widens."""
    from skill2env.hub.queries import Filter

    wanted = Filter(
        words=" ".join(words or ()),
        sources=tuple(source or ()),
        domains=tuple(domain or ()),
        licences=tuple(licence or ()),
        languages=tuple(language or ()),
        verdicts=tuple(verdict or ()),
        flags=tuple(flag or ()),
        without_flags=tuple(no_flag or ()),
        scripts=scripts,
        allowed=allowed,
        copies=copies,
        chosen=chosen,
    )
    _list(_open(hub), wanted, limit, as_json=as_json)


def _list(hub: "Hub", wanted: "Filter", limit: int, *, as_json: bool) -> None:
    from skill2env.hub.database import Database
    from skill2env.hub.queries import find
    from skill2env.ingest.text import printable

    with Database.read(hub.index) as database:
        rows = list(find(database, wanted, limit=limit or -1))
    if as_json:
        print_json(rows)
        return
    print_table(
        ("digest", "name", "verdict", "domain", "licence", "size", "place"),
        [
            (
                row["digest"][7:19],
                printable(row["name"], 32),
                row["verdict"] or "-",
                row["domain"] or "unsure",
                printable(row["spdx"], 24) or "none",
                size(row["size"]),
                printable(f"{row['source']}:{row['path']}", 60),
            )
            for row in rows
        ],
    )
    print(f"{len(rows)} skills" + (" (there may be more: --limit)" if limit and len(rows) == limit else ""))


def _open(folder: Path) -> "Hub":
    from skill2env.hub.folder import Hub

    here = Hub(folder)
    here.require()
    return here


Which = Annotated[
    str,
    typer.Argument(
        metavar="SKILL",
        help="A digest or its first digits, SOURCE:PATH, a path within its source, a name, or a skill's folder.",
        show_default=False,
    ),
]


@app.command()
def show(skill: Which, hub: HubFolder = _HERE, as_json: AsJson = False) -> None:
    """Show what is stored of one skill: what it is, where it was found, where its files lie."""
    from skill2env.cli.hub_print import print_skill
    from skill2env.hub.explain import explain

    told = explain(_open(hub), skill)
    if as_json:
        print_json(told)
        return
    for item in told:
        print_skill(item)


@app.command()
def why(skill: Which, hub: HubFolder = _HERE, as_json: AsJson = False) -> None:
    """Explain every decision on one skill: licence, screening, copies, domain, and whether an export takes it."""
    from skill2env.cli.hub_print import print_why
    from skill2env.hub.explain import explain

    told = explain(_open(hub), skill)
    if as_json:
        print_json(told)
        return
    for item in told:
        print_why(item)


@app.command()
def stats(hub: HubFolder = _HERE, as_json: AsJson = False) -> None:
    """Count everything: sources, licences and evidence, verdicts, flags, copies, domains, languages."""
    from skill2env.cli.hub_print import print_stats
    from skill2env.hub.database import Database
    from skill2env.hub.queries import stats as counts

    with Database.read(_open(hub).index) as database:
        found: dict[str, Any] = counts(database)
    if as_json:
        print_json(found)
    else:
        print_stats(found)


@app.command()
def verify(
    hub: HubFolder = _HERE,
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
        found = verify_hub(_open(hub), repair=repair, workers=workers, progress=progress)
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


@app.command()
def export(
    out: Annotated[
        Path, typer.Argument(help="Folder, or .jsonl or .parquet file, to make.", show_default=False)
    ],
    *,
    hub: HubFolder = _HERE,
    words: Annotated[str, typer.Option(help="Only skills with these words.")] = "",
    source: Annotated[
        list[str] | None, typer.Option(help="Only of this source.", autocompletion=_sources_of)
    ] = None,
    domain: Annotated[
        list[str] | None, typer.Option(help="Only of this domain.", autocompletion=_domains)
    ] = None,
    language: Annotated[list[str] | None, typer.Option(help="Only in this language.")] = None,
    scripts: Annotated[bool | None, typer.Option(help="Only with, or without, scripts.")] = None,
    verdict: Annotated[
        list[str] | None,
        typer.Option(help="Verdicts that are taken.", autocompletion=_verdicts, show_default="compile"),
    ] = None,
    with_copies: Annotated[bool, typer.Option("--with-copies", help="Copies as well.")] = False,
    limit: Annotated[int, typer.Option(min=0, help="Take at most so many, by name; 0 takes all.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Hand on chosen skills: allowed by the policy, verdict compile, no copies; licences kept, secrets redacted.

    A folder is ready for `skill2env compile` and is itself a source for another hub. A .jsonl or .parquet file holds
    the whole index, one record a skill, whatever was decided about it.
    """
    from skill2env.hub.queries import Filter

    here = _open(hub)
    if out.suffix in (".jsonl", ".parquet"):
        from skill2env.hub.tables import export_table

        count = export_table(here, out)
        found: dict[str, Any] = {"out": str(out), "skills": count}
    else:
        from skill2env.hub.export import export_skills

        wanted = Filter(
            words=words,
            sources=tuple(source or ()),
            domains=tuple(domain or ()),
            languages=tuple(language or ()),
            verdicts=tuple(verdict or ("compile",)),
            scripts=scripts,
            allowed=True,
            copies=None if with_copies else False,
        )
        found = export_skills(here, out, wanted, limit=limit).document()
    if as_json:
        print_json(found)
    else:
        extra = f", {found['redacted']} with secrets redacted" if found.get("redacted") else ""
        print(f"{found['skills']} skills written to {out}{extra}")
