"""`skill2env skill`: what is understood of a skill, with every diagnostic."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skill2env.cli.output import print_json, print_table

if TYPE_CHECKING:
    from skill2env.records import Diagnostic, Skill

app = typer.Typer(no_args_is_help=True)
_SHOWN_FILES = 40


@app.command()
def show(
    path: Annotated[Path, typer.Argument(help="A skill's folder, or its SKILL.md.")],
    json: Annotated[
        bool, typer.Option("--json", help="Print the whole record as one JSON document.")
    ] = False,
) -> None:
    """Show what is understood of one skill: name, when to use it, files, licence, and every diagnostic."""
    from skill2env.ingest import load_skill

    skill = load_skill(path, upstream=True)
    if json:
        print_json(skill.model_dump(mode="json"))
        return
    _print_head(skill)
    _print_files(skill)
    _print_diagnostics(skill.diagnostics)


@app.command("list")
def list_skills(
    path: Annotated[Path, typer.Argument(help="A folder of skills.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON record a line.")] = False,
) -> None:
    """List the skills at or below a folder, with size, licence and the number of warnings."""
    from skill2env.ingest import find_skills, load_skill
    from skill2env.records import Severity

    rows: list[tuple[str, ...]] = []
    for folder in find_skills(path).folders:
        skill = load_skill(folder)
        odd = sum(d.severity is not Severity.INFO for d in skill.diagnostics)
        if json:
            print_json({"path": str(folder), "name": skill.name, "digest": skill.digest, "files": len(skill.files),
                        "bytes": skill.size, "licence": skill.licence.spdx, "warnings": odd})  # fmt: skip
        rows.append(
            (
                skill.name,
                str(len(skill.files)),
                f"{skill.size:,}",
                skill.licence.spdx or "-",
                str(odd),
                str(folder),
            )
        )
    if not json:
        print_table(("NAME", "FILES", "BYTES", "LICENCE", "WARNINGS", "FOLDER"), rows)


def _print_head(skill: "Skill") -> None:
    import textwrap

    print(skill.name)
    if skill.description:
        print(textwrap.fill(skill.description, 100, initial_indent="  ", subsequent_indent="  "))
    print(f"\n  digest    {skill.digest}")
    licence = skill.licence
    told = (
        f"{licence.spdx or 'not understood'} ({licence.evidence.value.replace('_', ' ')}: {licence.where})"
        if licence.where
        else "no statement found"
    )
    print(f"  licence   {told}")
    print(f"  text      {len(skill.body.split()):,} words in {skill.entry}")
    if skill.triggers:
        print("\nWhen to use it:")
        for sentence in skill.triggers:
            print(textwrap.fill(sentence, 100, initial_indent="  - ", subsequent_indent="    "))


def _print_files(skill: "Skill") -> None:
    print(f"\nFiles ({len(skill.files)}, {skill.size:,} bytes):")
    for item in skill.files[:_SHOWN_FILES]:
        extra = f" -> {item.target}" if item.target else " (executable)" if item.executable else ""
        print(f"  {item.size:>10,}  {item.kind.value:<8} {item.path}{extra}")
    if len(skill.files) > _SHOWN_FILES:
        print(f"  ... and {len(skill.files) - _SHOWN_FILES} more (--json lists all)")
    for path in skill.missing_references:
        print(f"  {'missing':>10}  {'':<8} {path}")


def _print_diagnostics(diagnostics: "tuple[Diagnostic, ...]") -> None:
    import textwrap

    from skill2env.records import Severity

    if not diagnostics:
        print("\nNothing odd was noticed.")
    for severity, title in (
        (Severity.ERROR, "Errors"),
        (Severity.WARN, "Warnings"),
        (Severity.INFO, "Notes"),
    ):
        chosen = [d for d in diagnostics if d.severity is severity]
        if chosen:
            print(f"\n{title} ({len(chosen)}):")
        for item in chosen:
            place = f" [{item.where}]" if item.where else ""
            print(
                textwrap.fill(
                    f"{item.code}: {item.message}{place}",
                    110,
                    initial_indent="  ",
                    subsequent_indent="      ",
                )
            )
