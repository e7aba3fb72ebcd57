"""Entry point: assembles the verbs, turns errors into messages and exit codes.

A verb's module is imported only when that verb is used, so that ``skill2env --help`` stays fast; the one-line helps
come from the table below.
"""

import errno
import os
import sys
import traceback
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any, cast

import typer
import typer.core
import typer.main
from typer.core import TyperGroup

from skill2env import __version__
from skill2env.cli.output import ExitCode, exit_code, harden_streams, print_error, tell
from skill2env.errors import Skill2EnvError, UserError

VERBS: dict[str, str] = {
    "compile": "Compile skills into verified tasks and publish them as a dataset.",
    "verify": "Run the gates on Harbor tasks, ours or anybody's.",
    "health": "Show what earlier verifications said of each task, and what drifted.",
    "audit": "Label a random sample of tasks on a local page; rates with intervals.",
    "skill": "Show what is understood of a skill, with every diagnostic.",
    "hub": "Collect, judge, search and hand on a corpus of skills.",
    "record": "Store any author's sessions, so that they can be replayed.",
    "run": "List, show and audit runs.",
    "analyze": "Measure a dataset: coverage, fidelity, contamination, copies, difficulty; compare two.",
    "rollout": "Let an agent solve tasks, and keep what is trained on, judged and counted.",
    "judge": "Score how rollouts were done, against their rubric and a constitution.",
    "lift": "Say what a skill is worth to an agent: the same tasks with it and without.",
    "train": "Train a small model on compiled tasks, in real sandboxes; curves and gains.",
    "dataset": "Show, take down from, push and pull datasets.",
    "explain": "Explain why a task was rejected or skipped, and how to mend it.",
    "sandbox": "Build, list, push and exchange base images; list and prune layers.",
    "doctor": "Explain what this machine can run, and what would fix the rest.",
    "cache": "Show, prune or clear what can be downloaded or built again.",
    "uninstall": "Remove everything that skill2env keeps outside your folders.",
}
"""Verb -> one-line help. `skill2env.cli.VERB` holds it as `app`, a Typer."""

_COMPLETION = ("install_completion", "show_completion")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
COMPLETION_VARIABLE = "_SKILL2ENV_COMPLETE"


class LazyVerbs(MutableMapping[str, Any]):
    """Verb -> command, importing the verb's module on first access."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            if name not in VERBS:
                raise KeyError(name)
            module = import_module(f"skill2env.cli.{name}")
            command = typer.main.get_command(module.app)
            command.name = name
            command.params = [p for p in command.params if p.name not in _COMPLETION]  # the root has them
            self._loaded[name] = command
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)


class VerbGroup(TyperGroup):
    """The top-level group: knows the names and helps of all verbs without importing them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = LazyVerbs()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Verbs in the order of the table."""
        return list(VERBS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Print the table instead of asking each verb for its help."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Complete verbs without importing any; options as usual."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        item = cast("Any", typer.core).CompletionItem  # typer does not re-export it officially
        return [item(name, help=text) for name, text in VERBS.items() if name.startswith(incomplete)]


app = typer.Typer(
    name="skill2env",
    cls=VerbGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Compile Agent Skills into verified, containerised RL environments in Harbor's task format.",
    epilog="Exit codes: 0 done, 1 rejected or inconsistent, 2 usage, 3 infrastructure or pending, 4 budget reached,"
    " 130 interrupted.",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"skill2env {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Compile Agent Skills into verified, containerised RL environments in Harbor's task format."""


# Typer brings its own copy of click in some versions; its error class is the root of the public BadParameter.
_UsageProblem = cast("type[Exception]", typer.BadParameter.__mro__[2])


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; nothing but a bug of ours prints a traceback."""
    as_json = "--json" in arguments
    command = typer.main.get_command(app)
    try:
        try:
            with command.make_context("skill2env", list(arguments)) as context:
                command.invoke(context)
            sys.stdout.flush()
        except KeyboardInterrupt:
            tell("\ninterrupted; run the same command again to go on")
            return ExitCode.INTERRUPTED
        except typer.Exit as stop:
            return stop.exit_code
        except typer.Abort:
            tell("nothing was done")
            return ExitCode.USAGE
        except _UsageProblem as problem:
            return _usage(problem, as_json=as_json)
        except Skill2EnvError as error:
            print_error(error, as_json=as_json)
            return exit_code(error)
    except BrokenPipeError:
        # Whoever read our output has gone; a further write at exit would complain, so there is nowhere to write to.
        _drop_output()
        return ExitCode.OK
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            _drop_output()
            tell(f"error: the output cannot be written: {error.strerror}")
            return ExitCode.INFRA
        traceback.print_exc()
        print(
            f"\nskill2env {__version__} has a bug here. Please report the lines above together with the command"
            " and the output of `skill2env doctor` at the project's issue tracker.",
            file=sys.stderr,
        )
        return ExitCode.REJECTED
    return ExitCode.OK


def _drop_output() -> None:
    """Send what is still in the buffer of standard output nowhere, so that the exit does not complain."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(problem: Exception, *, as_json: bool) -> int:
    show = getattr(problem, "show", None)
    message = str(getattr(problem, "message", problem))
    if as_json or show is None:
        print_error(UserError(message, hint="skill2env --help"), as_json=as_json)
    else:
        show()
    return ExitCode.USAGE


def main() -> None:
    """Console script."""
    harden_streams()
    os.environ.setdefault("HARBOR_TELEMETRY", "0")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "true")
    if COMPLETION_VARIABLE in os.environ:
        typer.main.get_command(app)(prog_name="skill2env")
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
