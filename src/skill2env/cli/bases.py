"""``skill2env sandbox bases``: build, list, name, push, resolve and exchange base images."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skill2env.cli.output import ExitCode, print_json, print_table, tell
from skill2env.cli.verify import SANDBOX_HELP, summary
from skill2env.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill2env.rebind import Rebound
    from skill2env.sandbox.logins import Login

app = typer.Typer(
    no_args_is_help=True,
    help="Base images: build them, name them in Dockerfiles, bring them to a registry, exchange them for public ones.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Name = Annotated[str, typer.Argument(help="Name in the catalog.", show_default=False)]
User = Annotated[str | None, typer.Option("--user", help="Login name; default: docker's configuration file.")]
PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input.")
]


@app.command("list")
def list_bases(as_json: AsJson = False) -> None:
    """List the catalog, and which bases this machine has."""
    from skill2env.sandbox.catalog import CATALOG

    records = [_record(name) for name in CATALOG]
    if as_json:
        print_json({"bases": records})
        return
    rows = [
        (r["name"], r["digest"][:19] if r["digest"] else "not built", f"{r['megabytes']} MB", r["about"])
        for r in records
    ]
    print_table(("base", "digest", "size", "for"), rows)


def _record(name: str) -> dict[str, Any]:
    from skill2env.sandbox.base_store import built_base
    from skill2env.sandbox.catalog import lookup

    entry, base = lookup(name), built_base(name)
    return {
        "name": entry.name,
        "about": entry.about,
        "packages": list(entry.packages),
        "megabytes": entry.megabytes,
        "public": entry.public,
        "stands_for": list(entry.stands_for),
        "digest": base.digest if base else None,
        "reference": base.reference if base else None,
        "architecture": base.architecture if base else None,
        "rootfs": str(base.rootfs) if base else None,
    }


@app.command()
def build(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names in the catalog.", show_default="the default base")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every base of the catalog.")] = False,
    as_json: AsJson = False,
) -> None:
    """Build bases from Debian's packages; one that is there already costs nothing."""
    from skill2env.sandbox.catalog import CATALOG, DEFAULT_BASE, lookup
    from skill2env.sandbox.rootfs import ensure_base

    if every and names:
        raise UserError("--all goes without names", hint="give either")
    wanted = list(CATALOG) if every else list(dict.fromkeys(names or [DEFAULT_BASE]))
    for name in wanted:
        lookup(name)  # a wrong name is said before minutes are spent on the right ones
    built = [ensure_base(name, progress=tell) for name in wanted]
    if as_json:
        print_json({"bases": [_record(base.name) for base in built]})
        return
    for base in built:
        print(base.reference)


@app.command()
def ref(name: Name, as_json: AsJson = False) -> None:
    """Print what to write after FROM: the reference with its digest. The base is built when it is not there."""
    from skill2env.sandbox.rootfs import ensure_base

    reference = ensure_base(name, progress=tell).reference
    if as_json:
        print_json({"name": name, "reference": reference})
    else:
        print(reference)


@app.command()
def push(
    name: Name,
    registry: Annotated[
        str, typer.Argument(help="HOST[:PORT]/PREFIX.", show_default="$SKILL2ENV_REGISTRY")
    ] = "",
    *,
    tag: Annotated[str, typer.Option(help="Also name it so.", show_default="from the digest")] = "",
    user: User = None,
    password_stdin: PasswordStdin = False,
    as_json: AsJson = False,
) -> None:
    """Bring a base to a registry, so that any engine can build on it; plain HTTP is used on this machine only."""
    from skill2env.sandbox import catalog
    from skill2env.sandbox.base_registry import push_base
    from skill2env.sandbox.rootfs import ensure_base

    catalog.lookup(name)
    login = _login(user, password_stdin=password_stdin)
    base = ensure_base(name, progress=tell)
    pushed = push_base(base, registry or catalog.registry(), tag=tag, login=login, progress=tell)
    if as_json:
        print_json(
            {
                "name": name,
                "reference": pushed.reference,
                "tag": pushed.tag,
                "bytes": pushed.bytes_sent,
            }
        )
        return
    if not pushed.bytes_sent:
        tell(f"{name}: the registry had it already")
    print(pushed.reference)


@app.command()
def resolve(
    reference: Annotated[
        str, typer.Argument(help="Name in the catalog, or any image reference.", show_default=False)
    ],
    *,
    user: User = None,
    password_stdin: PasswordStdin = False,
    as_json: AsJson = False,
) -> None:
    """Ask a registry which digest a public image has now; a name of the catalog means the image it is bound to."""
    from skill2env.sandbox.base_registry import resolve as ask

    found = ask(reference, login=_login(user, password_stdin=password_stdin))
    if as_json:
        print_json({"asked": reference, "reference": str(found), "digest": found.digest, "tag": found.tag})
    else:
        print(found)


@app.command()
def rewrite(
    task: Annotated[Path, typer.Argument(help="Task directory.", show_default=False)],
    *,
    to: Annotated[
        str,
        typer.Option(
            help="'ours', 'public' (Debian's image with the same packages), or an image reference.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the changed task.", show_default="replace the task")
    ] = None,
    sandbox: Annotated[str, typer.Option(help=SANDBOX_HELP)] = "auto",
    allow_unlimited: Annotated[
        bool, typer.Option(help="Run even where this machine cannot enforce a requested limit.")
    ] = False,
    user: User = None,
    password_stdin: PasswordStdin = False,
    as_json: AsJson = False,
) -> None:
    """Exchange the bases that a task's Dockerfiles name, with digests, and run every gate again.

    A task that is not accepted with its new base is left as it was. In a dataset of ours the index follows.
    Exit codes: 0 done, 1 rejected, 2 usage, 3 infrastructure.
    """
    import tempfile

    from skill2env.harbor.sandboxes import choose_sandbox
    from skill2env.interrupts import interruptible
    from skill2env.rebind import rebind
    from skill2env.verify.gate import GateContext

    with (
        interruptible(),
        tempfile.TemporaryDirectory(prefix="skill2env-", ignore_cleanup_errors=True) as logs,
    ):
        Path(logs).chmod(0o755)

        def context(image_map: "Mapping[str, str]") -> GateContext:
            choice = choose_sandbox(sandbox, image_map=image_map, allow_unlimited=allow_unlimited)
            return GateContext(choice, Path(logs), image_map=image_map)

        login = _login(user, password_stdin=password_stdin)
        done = rebind(task, to, context=context, out=out, login=login, progress=tell)
    raise typer.Exit(_print_rebound(task, done, as_json=as_json))


def _print_rebound(task: Path, done: "Rebound", *, as_json: bool) -> ExitCode:
    """Say what came of it; returns the exit code."""
    verdict = done.verdict
    status = verdict.status.value if verdict else "unchanged"
    if as_json:
        print_json(
            {
                "task": str(task),
                "references": done.references,
                "verdict": status,
                "reason": verdict.reason.value if verdict and verdict.reason else None,
                "boundary": verdict.boundary or None if verdict else None,
                "message": verdict.message if verdict else "",
                "stood_in": done.stood_in,
                "written": str(done.written) if done.written else None,
            }
        )
    else:
        for old, new in done.references.items():
            print(f"{old} -> {new}")
        print(summary(verdict) if verdict else "unchanged: the Dockerfiles name it already")
        if done.stood_in:
            print("the gates ran on our base in its place; --sandbox docker runs the named image itself")
        if verdict and not done.written:
            print(f"{task} is as it was")
    return {"rejected": ExitCode.REJECTED, "infra": ExitCode.INFRA}.get(status, ExitCode.OK)


def _login(user: str | None, *, password_stdin: bool) -> "Login | None":
    """The login that the options name; None when they name none.

    Raises:
        UserError: one half is missing.
    """
    from skill2env.sandbox.logins import Login

    if user is None and not password_stdin:
        return None
    if user is None or not password_stdin:
        raise UserError(
            "--user and --password-stdin go together", hint="printf %s PASSWORD | skill2env ... --user NAME"
        )
    password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise UserError("there is no password on standard input", hint="printf %s PASSWORD | skill2env ...")
    return Login(user, password)
