"""`skill2env skill`: what is understood of a skill, with every diagnostic."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skill2env.cli.output import print_json, print_table, size

if TYPE_CHECKING:
    from skill2env.records import Skill

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Show what is understood of a skill, or list the skills of a folder.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
_SHOWN_FILES = 40
_WIDTH = 100


@app.command()
def show(
    path: Annotated[Path, typer.Argument(help="A skill's folder, or its SKILL.md.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Show what is understood of one skill: name, when to use it, files, licence, and every diagnostic."""
    from skill2env.ingest import load_skill

    skill = load_skill(path, upstream=True)
    if as_json:
        print_json(skill.model_dump(mode="json"))
        return
    _print_head(skill)
    _print_files(skill)
    _print_diagnostics(skill)


@app.command("list")
def list_skills(
    path: Annotated[Path, typer.Argument(help="A folder of skills.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """List the skills at or below a folder, with size, licence and the number of warnings."""
    from skill2env.errors import UserError
    from skill2env.ingest import find_skills, load_skill
    from skill2env.ingest.text import printable
    from skill2env.records import Severity

    found = find_skills(path)
    listed: list[dict[str, str | int]] = []
    failed: list[UserError] = []
    for folder in found.folders:
        try:
            skill = load_skill(folder)
        except UserError as error:  # found, and then not to be read: the others are still listed
            failed.append(error)
            continue
        odd = sum(item.severity is not Severity.INFO for item in skill.diagnostics)
        listed.append(
            {
                "path": str(folder),
                "name": skill.name,
                "digest": skill.digest,
                "files": len(skill.files),
                "bytes": skill.size,
                "licence": skill.licence.spdx,
                "warnings": odd,
            }
        )
    if as_json:
        noticed = [item.model_dump(mode="json") for item in found.diagnostics]
        print_json(
            {"skills": listed, "diagnostics": noticed, "unreadable": [error.message for error in failed]}
        )
        return
    rows = [
        (
            printable(str(item["name"]), 40),
            item["files"],
            size(int(item["bytes"])),
            item["licence"] or "-",
            item["warnings"],
            printable(str(item["path"])),
        )
        for item in listed
    ]
    print_table(("name", "files", "size", "licence", "warnings", "folder"), rows)
    for item in found.diagnostics:
        _print_wrapped(f"{item.code}: {item.message}" + (f" [{item.where}]" if item.where else ""), "note: ")
    for error in failed:
        print(f"unreadable: {printable(error.message)}")
    print(f"{len(listed)} skills")


def _print_wrapped(text: str, first: str, rest: str = "      ") -> None:
    import textwrap

    from skill2env.ingest.text import printable

    print(textwrap.fill(printable(text), _WIDTH, initial_indent=first, subsequent_indent=rest))


def _print_head(skill: "Skill") -> None:
    from skill2env.ingest.text import printable

    print(printable(skill.name, _WIDTH))
    if skill.description:
        _print_wrapped(skill.description, "  ", "  ")
    licence = skill.licence
    told = "no statement found"
    if licence.where:
        evidence = licence.evidence.value.replace("_", " ")
        told = f"{licence.spdx or 'not understood'} ({evidence}, {licence.where}: {licence.statement})"
    print()
    _print_wrapped(told, "  licence  ", "           ")
    if skill.origin:
        print(f"  origin   {printable(skill.origin, _WIDTH)}")
    print(f"  text     {len(skill.body.split()):,} words in {skill.entry}")
    print(f"  digest   {skill.digest}")
    if skill.triggers:
        print("\nWhen to use it")
        for sentence in skill.triggers:
            _print_wrapped(sentence, "  - ", "    ")


def _print_files(skill: "Skill") -> None:
    from skill2env.ingest.text import printable

    print(f"\nFiles ({len(skill.files)}, {size(skill.size)})")
    folder = ""
    for item in skill.files[:_SHOWN_FILES]:
        parent, _, name = item.path.rpartition("/")
        if parent != folder:
            folder = parent
            print(f"  {printable(parent)}/")
        indent = "    " if parent else "  "
        notes = [item.kind.value] if item.kind.value != "text" else []
        notes += ["executable"] if item.executable else []
        shown = printable(name) + (f" -> {printable(item.target)}" if item.target else "")
        extra = f"  ({', '.join(notes)})" if notes else ""
        print(f"{indent}{shown:<{44 - len(indent)}} {size(item.size):>10}{extra}")
    if len(skill.files) > _SHOWN_FILES:
        print(f"  ... and {len(skill.files) - _SHOWN_FILES} more (--json lists all)")
    for path in skill.missing_references:
        print(f"  {printable(path):<42} {'missing':>10}")


def _print_diagnostics(skill: "Skill") -> None:
    from skill2env.records import Severity

    if not skill.diagnostics:
        print("\nNothing odd was noticed.")
    titles = ((Severity.ERROR, "Errors"), (Severity.WARN, "Warnings"), (Severity.INFO, "Notes"))
    for severity, title in titles:
        chosen = [item for item in skill.diagnostics if item.severity is severity]
        if chosen:
            print(f"\n{title} ({len(chosen)})")
        for item in chosen:
            place = f" [{item.where}]" if item.where else ""
            _print_wrapped(f"{item.code}: {item.message}{place}", "  ", "      ")
