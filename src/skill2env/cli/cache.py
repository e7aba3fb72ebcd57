"""``skill2env cache``: what can be downloaded or built again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skill2env.cli.output import print_json, print_table, size
from skill2env.errors import UserError

if TYPE_CHECKING:
    from skill2env.sandbox.cache import CacheItem

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Show, prune or clear what can be downloaded or built again.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@app.command()
def show(as_json: AsJson = False) -> None:
    """List base images, layers and scratch folders with their sizes."""
    from skill2env.sandbox.cache import cache_items
    from skill2env.store.folders import cache_home

    items = cache_items()
    total = sum(item.size_bytes for item in items)
    if as_json:
        listed = [
            {
                "kind": item.kind,
                "name": item.name,
                "bytes": item.size_bytes,
                "idle_days": round(item.idle_days, 1),
                "needed": item.needed,
            }
            for item in items
        ]
        print_json({"folder": str(cache_home()), "bytes": total, "items": listed})
        return
    rows = [(i.kind, i.name, size(i.size_bytes), f"{i.idle_days:.0f}", _use(i)) for i in items]
    print_table(("kind", "name", "size", "idle days", ""), rows)
    print(f"{size(total)} in {cache_home()}")


def _use(item: "CacheItem") -> str:
    if item.kind == "foreign":
        return "not made by skill2env, never removed"
    return "" if item.needed else "not needed any more"


@app.command()
def prune(
    idle_days: Annotated[
        float,
        typer.Option(
            help="Remove layers, verdicts and judgements that were not used for so many days.", min=0
        ),
    ] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Remove leftovers, superseded bases, and layers, verdicts and judgements that were not used for a while."""
    from skill2env.sandbox.cache import prune as prune_cache

    removed: list[CacheItem] = []
    freed = prune_cache(idle_days=idle_days, progress=removed.append)
    if as_json:
        print_json({"bytes": freed, "removed": [f"{item.kind} {item.name}" for item in removed]})
        return
    for item in removed:
        print(f"removed {item.kind} {item.name}")
    print(f"{size(freed)} freed")


@app.command()
def clear(yes: Yes = False, as_json: AsJson = False) -> None:
    """Remove the whole cache, and no foreign file; the next run downloads and builds again (about half a minute)."""
    freed = remove_cache(yes=yes)
    if as_json:
        print_json({"bytes": freed})
    else:
        print(f"{size(freed)} freed")


def remove_cache(*, yes: bool) -> int:
    """Ask unless `yes`, then remove the cache; returns the bytes freed.

    Raises:
        UserError: nobody can be asked, or sandboxes are running.
    """
    import sys

    from skill2env.sandbox.cache import clear as clear_cache
    from skill2env.store.folders import cache_home

    home: Path = cache_home()
    if not yes:
        if not sys.stdin.isatty():
            raise UserError(f"removing {home} needs a yes", hint="give --yes")
        typer.confirm(f"Remove the cache in {home}?", abort=True)
    return clear_cache()
