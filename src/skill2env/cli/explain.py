"""`skill2env explain`: why a task was rejected, skipped or left pending, and how to mend it."""

import textwrap
from typing import Annotated

import typer

from skill2env.cli.output import print_json, print_table

app = typer.Typer()


@app.command()
def explain(
    name: Annotated[
        str | None, typer.Argument(help="A reason, a skip reason, a boundary, or the code of a finding.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Explain one word of the reasons table, or list them all."""
    from skill2env.verify.explain import Explanation, names
    from skill2env.verify.explain import explain as look_up

    if name is None:
        every = [look_up(word) for word in names()]
        if json:
            print_json([item.model_dump(mode="json") for item in every])
        else:
            print_table(("NAME", "KIND", "MEANING"), ((item.name, item.kind, item.meaning) for item in every))
        return
    found: Explanation = look_up(name)
    if json:
        print_json(found.model_dump(mode="json"))
        return
    print(f"{found.name} ({found.kind})")
    print(textwrap.fill(found.meaning, 100, initial_indent="  ", subsequent_indent="  "))
    print("\nWhat to do:")
    for sentence in found.mend:
        print(textwrap.fill(sentence, 100, initial_indent="  - ", subsequent_indent="    "))
    if found.findings:
        print("\nFindings that lead here:")
        print(textwrap.fill(", ".join(found.findings), 100, initial_indent="  ", subsequent_indent="  "))
