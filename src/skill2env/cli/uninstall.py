"""``skill2env uninstall``: leave nothing behind outside the user's own folders."""

from typing import Annotated

import typer

from skill2env.cli.cache import remove_cache
from skill2env.cli.output import print_json, size

app = typer.Typer(add_completion=False)


@app.command()
def uninstall(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Remove the cache folder, and say how to remove the program itself.

    Datasets and run folders are yours and stay.
    """
    from skill2env.store.folders import cache_home

    home = cache_home()
    freed = remove_cache(yes=yes)
    if as_json:
        print_json({"removed": str(home), "bytes": freed})
        return
    stays = "; what else lies there stays" if home.exists() else ""
    print(f"removed the cache in {home} ({size(freed)}){stays}")
    print("the program itself: `pip uninstall skill2env`, or delete its virtual environment")
