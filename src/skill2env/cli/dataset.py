"""``skill2env dataset``: show, take down, push and pull."""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from skill2env.cli.output import ExitCode, print_json, print_table
from skill2env.errors import UserError

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Show, take down from, push and pull datasets."
)

Folder = Annotated[Path, typer.Argument(help="Dataset folder.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command()
def show(dataset: Folder, as_json: AsJson = False) -> None:
    """List the tasks of a dataset with skill, licence and domain, and check them against its index."""
    from skill2env.publish.dataset import require_state
    from skill2env.publish.integrity import problems

    state = require_state(dataset)
    found = problems(dataset)
    if as_json:
        print_json(
            {
                "name": state.name,
                "version": state.version,
                "tasks": [json.loads(entry.model_dump_json()) for entry in state.entries],
                "taken_down": state.taken_down,
                "problems": found,
            }
        )
    else:
        print(f"{state.name} {state.version}: {len(state.entries)} tasks")
        rows = [
            (
                e.folder,
                e.skill,
                e.licence or "unknown",
                e.source or "local",
                e.domain or "undecided",
                e.author,
            )
            for e in state.entries
        ]
        print_table(("task", "skill", "licence", "source", "domain", "author"), rows)
        domains = Counter(e.domain or "undecided" for e in state.entries)
        print("domains: " + ", ".join(f"{name} {count}" for name, count in sorted(domains.items())))
        for problem in found:
            print(f"problem: {problem}")
    if found:
        raise typer.Exit(ExitCode.REJECTED)


@app.command()
def drop(
    dataset: Folder,
    *,
    source: Annotated[
        list[str] | None, typer.Option(help="Where the skill came from; * and ? match.")
    ] = None,
    licence: Annotated[
        list[str] | None, typer.Option(help="SPDX expression of the skill, or 'unknown'; * and ? match.")
    ] = None,
    skill: Annotated[
        list[str] | None, typer.Option(help="Slug or digest of the skill; * and ? match.")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="Name or folder of the task; * and ? match.")] = None,
    as_json: AsJson = False,
) -> None:
    """Take tasks down: remove them, update card, manifest and version, and keep them from coming back."""
    from skill2env.publish.takedown import Selector
    from skill2env.publish.takedown import drop as drop_tasks

    given = {"source": source, "licence": licence, "skill": skill, "task": task}
    selectors = [Selector(kind, pattern) for kind, patterns in given.items() for pattern in patterns or ()]
    empty = next((selector for selector in selectors if not selector.pattern.strip()), None)
    if empty is not None:
        raise UserError(f"--{empty.kind} is empty", hint="give a value, or * for everything")
    if not selectors:
        raise UserError("nothing to take down", hint="give --source, --licence, --skill or --task")
    state, gone = drop_tasks(dataset, selectors)
    if as_json:
        print_json(
            {"version": state.version, "dropped": [entry.name for entry in gone], "left": len(state.entries)}
        )
        return
    for entry in gone:
        print(f"dropped {entry.name}")
    print(f"{state.name} is now {state.version} with {len(state.entries)} tasks")


@app.command("push-images")
def push_images(
    dataset: Annotated[
        Path, typer.Argument(help="Dataset folder, or any folder of tasks.", show_default=False)
    ],
    registry: Annotated[
        str, typer.Argument(help="Host and prefix, as localhost:5000/tasks.", show_default=False)
    ],
    *,
    out: Annotated[Path, typer.Option(help="New folder for the copies.", show_default=False)],
    engine: Annotated[str, typer.Option(help="'docker' or 'podman': builds and pushes.")] = "docker",
    as_json: AsJson = False,
) -> None:
    """Push each task's image, and write copies of the tasks that name it by digest.

    For trainers that take docker_image and build no Dockerfile.
    """
    if engine not in ("docker", "podman"):
        raise UserError(f"--engine {engine} is not known", hint="'docker' or 'podman'")
    from skill2env.publish.images import push_images as push_all
    from skill2env.verify.many import find_tasks

    def tell(text: str) -> None:
        if not as_json:
            print(text)

    found = push_all(find_tasks([dataset]), registry, out, kind=engine, progress=tell)
    if as_json:
        print_json({"images": found})


@app.command()
def push(
    dataset: Folder,
    repo: Annotated[str, typer.Argument(help="OWNER/NAME on the hub; ignored with --to harbor.")] = "",
    *,
    to: Annotated[str, typer.Option(help="'huggingface' or 'harbor'.")] = "huggingface",
    endpoint: Annotated[str | None, typer.Option(help="Base URL of the hub; default: the library's.")] = None,
    public: Annotated[bool, typer.Option(help="Visibility of what is new there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Publish a dataset folder to a Hugging Face dataset repository or to Harbor's registry."""
    if to == "harbor":
        from skill2env.publish.registry import push_to_registry

        where = push_to_registry(dataset, public=public)
    elif to == "huggingface":
        from skill2env.publish.huggingface import push as push_to_hub

        if not repo:
            raise UserError("the repository is missing", hint="skill2env dataset push DATASET OWNER/NAME")
        where = push_to_hub(dataset, repo, endpoint=endpoint, private=not public)
    else:
        raise UserError(f"--to {to} is not known", hint="'huggingface' or 'harbor'")
    if as_json:
        print_json({"pushed": where})
    else:
        print(where)


@app.command()
def pull(
    repo: Annotated[str, typer.Argument(help="OWNER/NAME of a dataset repository.", show_default=False)],
    dataset: Annotated[Path, typer.Argument(help="Folder to make.", show_default=False)],
    endpoint: Annotated[str | None, typer.Option(help="Base URL of the hub; default: the library's.")] = None,
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch a dataset from a Hugging Face dataset repository and check every task against its digest."""
    from skill2env.publish.huggingface import pull as pull_from_hub

    state = pull_from_hub(repo, dataset, endpoint=endpoint, revision=revision)
    if as_json:
        print_json({"name": state.name, "version": state.version, "tasks": len(state.entries)})
    else:
        print(f"{state.name} {state.version}: {len(state.entries)} tasks in {dataset}")
