"""The reading half of ``skill2env hub``: list, show, why, stats, export."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skill2env.cli.hub_options import (
    HERE,
    AsJson,
    HubFolder,
    domain_names,
    open_hub,
    source_ids,
    verdict_names,
)
from skill2env.cli.output import print_json, print_table, size

if TYPE_CHECKING:
    from skill2env.hub.folder import Hub
    from skill2env.hub.queries import Filter

app = typer.Typer(add_completion=False)


@app.command("list")
def list_skills(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD]...", help="Words that must occur in name, description or body."),
    ] = None,
    *,
    hub: HubFolder = HERE,
    source: Annotated[
        list[str] | None, typer.Option(help="Of this source.", autocompletion=source_ids)
    ] = None,
    domain: Annotated[
        list[str] | None, typer.Option(help="Of this domain, or 'unsure'.", autocompletion=domain_names)
    ] = None,
    licence: Annotated[list[str] | None, typer.Option(help="Under this licence, or 'none'.")] = None,
    language: Annotated[list[str] | None, typer.Option(help="In this language (ISO 639-1).")] = None,
    verdict: Annotated[
        list[str] | None, typer.Option(help="With this verdict.", autocompletion=verdict_names)
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
    _list(open_hub(hub), wanted, limit, as_json=as_json)


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


Which = Annotated[
    str,
    typer.Argument(
        metavar="SKILL",
        help="A digest or its first digits, SOURCE:PATH, a path within its source, a name, or a skill's folder.",
        show_default=False,
    ),
]


@app.command()
def show(skill: Which, hub: HubFolder = HERE, as_json: AsJson = False) -> None:
    """Show what is stored of one skill: what it is, where it was found, where its files lie."""
    from skill2env.cli.hub_print import print_skill
    from skill2env.hub.explain import explain

    told = explain(open_hub(hub), skill)
    if as_json:
        print_json(told)
        return
    for item in told:
        print_skill(item)


@app.command()
def why(skill: Which, hub: HubFolder = HERE, as_json: AsJson = False) -> None:
    """Explain every decision on one skill: licence, screening, copies, domain, and whether an export takes it."""
    from skill2env.cli.hub_print import print_why
    from skill2env.hub.explain import explain

    told = explain(open_hub(hub), skill)
    if as_json:
        print_json(told)
        return
    for item in told:
        print_why(item)


@app.command()
def stats(hub: HubFolder = HERE, as_json: AsJson = False) -> None:
    """Count everything: sources, licences and evidence, verdicts, flags, copies, domains, languages."""
    from skill2env.cli.hub_print import print_stats
    from skill2env.hub.database import Database
    from skill2env.hub.queries import stats as counts

    with Database.read(open_hub(hub).index) as database:
        found: dict[str, Any] = counts(database)
    if as_json:
        print_json(found)
    else:
        print_stats(found)


@app.command()
def export(
    out: Annotated[
        Path, typer.Argument(help="Folder, or .jsonl or .parquet file, to make.", show_default=False)
    ],
    *,
    hub: HubFolder = HERE,
    words: Annotated[str, typer.Option(help="Only skills with these words.")] = "",
    source: Annotated[
        list[str] | None, typer.Option(help="Only of this source.", autocompletion=source_ids)
    ] = None,
    domain: Annotated[
        list[str] | None, typer.Option(help="Only of this domain.", autocompletion=domain_names)
    ] = None,
    language: Annotated[list[str] | None, typer.Option(help="Only in this language.")] = None,
    scripts: Annotated[bool | None, typer.Option(help="Only with, or without, scripts.")] = None,
    verdict: Annotated[
        list[str] | None,
        typer.Option(help="Verdicts that are taken.", autocompletion=verdict_names, show_default="compile"),
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

    here = open_hub(hub)
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
