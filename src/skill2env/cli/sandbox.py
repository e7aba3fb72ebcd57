"""``skill2env sandbox``: base images, layers, and what runs."""

from typing import TYPE_CHECKING, Annotated

import typer

from skill2env.cli import bases
from skill2env.cli.output import print_json, print_table, size

if TYPE_CHECKING:
    from skill2env.sandbox.cache import CacheItem

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Base images, built layers, and what runs in sandboxes."
)
layers = typer.Typer(no_args_is_help=True, help="List or prune the layers that Dockerfiles were built into.")
app.add_typer(bases.app, name="bases")
app.add_typer(layers, name="layers")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command()
def status(as_json: AsJson = False) -> None:
    """Say how sandboxes run here, which run now, and what they keep on disk."""
    from skill2env.sandbox.cache import cache_items
    from skill2env.sandbox.doctor import namespace_works
    from skill2env.sandbox.identity import current_identity
    from skill2env.store.folders import cache_home

    items = cache_items()
    running = sorted({i.name.partition("-")[0] for i in items if i.kind == "scratch" and i.needed})
    kinds = ("base", "layer", "scratch")
    kept = {kind: [item for item in items if item.kind == kind] for kind in kinds}
    told = {
        "folder": str(cache_home()),
        "tier": current_identity().tier.value,
        "works": namespace_works(),
        "running": [int(pid) for pid in running if pid.isdigit()],
        "kept": {
            kind: {"count": len(found), "bytes": sum(item.size_bytes for item in found)}
            for kind, found in kept.items()
        },
    }
    if as_json:
        print_json(told)
        return
    works = "works" if told["works"] else "does not work here; see `skill2env doctor`"
    print(f"namespace sandbox, tier {told['tier']}: {works}")
    print(f"sandboxes of these processes run: {', '.join(running) or 'none'}")
    rows = [(kind, len(found), size(sum(i.size_bytes for i in found))) for kind, found in kept.items()]
    print_table((f"in {cache_home()}", "count", "size"), rows)


@layers.command("list")
def list_layers(as_json: AsJson = False) -> None:
    """List built layers with the instructions that they hold, the largest first."""
    from skill2env.sandbox.cache import cache_items
    from skill2env.sandbox.layers import layer_steps

    found = [item for item in cache_items() if item.kind == "layer"]
    found.sort(key=lambda item: (-item.size_bytes, item.name))
    if as_json:
        print_json({"layers": [_layer_record(item, layer_steps(item.path)) for item in found]})
        return
    rows = [
        (i.name, size(i.size_bytes), f"{i.idle_days:.0f}", _shortened(layer_steps(i.path))) for i in found
    ]
    print_table(("layer", "size", "idle days", "last instruction"), rows)


def _layer_record(item: "CacheItem", steps: list[str]) -> dict[str, object]:
    return {
        "name": item.name,
        "bytes": item.size_bytes,
        "idle_days": round(item.idle_days, 1),
        "steps": steps,
    }


def _shortened(steps: list[str]) -> str:
    last = " ".join(steps[-1].split()) if steps else ""
    return last if len(last) <= 80 else last[:79] + "…"


@layers.command("prune")
def prune_layers(
    idle_days: Annotated[
        float, typer.Option(help="Remove layers that were not used for so many days.", min=0)
    ] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Remove layers that were not used for a while; the next build of their Dockerfiles makes them again."""
    from skill2env.sandbox.cache import prune

    removed: list[CacheItem] = []
    freed = prune(idle_days=idle_days, kinds=("layer",), progress=removed.append)
    if as_json:
        print_json({"bytes": freed, "removed": [item.name for item in removed]})
        return
    print(f"{len(removed)} layers removed, {size(freed)} freed")
