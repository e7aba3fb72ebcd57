"""Instructions -> a recipe: what each layer needs, with every variable resolved. Knows no files and no sandbox."""

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from skill2env.sandbox.dockerfile import (
    Assign,
    BuildFailed,
    Command,
    Copy,
    From,
    Instruction,
    Place,
    Run,
    Setting,
)
from skill2env.sandbox.expand import ExpansionError, expand, expand_body

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_DEFAULT_SHELL = ("/bin/sh", "-c")


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """How commands run in an image: what the Dockerfile says, over the base."""

    env: Mapping[str, str]
    workdir: str
    """Absolute; ``/`` when the Dockerfile sets none."""
    user: str
    """Name or uid; empty for root."""
    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    recorded: tuple[tuple[str, str], ...] = ()
    """EXPOSE, VOLUME, HEALTHCHECK and the like, as written."""


@dataclass(frozen=True, slots=True)
class RunStep:
    """A command to run as `user` in `workdir`; without a network when `offline`."""

    place: Place
    argv: tuple[str, ...]
    env: Mapping[str, str]
    workdir: str
    user: str
    offline: bool = False


@dataclass(frozen=True, slots=True)
class CopyStep:
    """Files of the context (patterns) and literal files (name, text) to `target`, absolute; ``/`` ends a folder."""

    place: Place
    sources: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    target: str
    owner: str
    mode: int | None
    unpack: bool


@dataclass(frozen=True, slots=True)
class WorkdirStep:
    """A folder to make when it is missing."""

    place: Place
    path: str


Step = RunStep | CopyStep | WorkdirStep


@dataclass(frozen=True, slots=True)
class Recipe:
    """A Dockerfile with nothing left to look up but files."""

    base: str
    """Image reference after FROM."""
    place: Place
    """Where FROM stands."""
    steps: tuple[Step, ...]
    config: ImageConfig


def resolve(instructions: Sequence[Instruction], *, architecture: str) -> Recipe:
    """Resolve variables, working directories and users of a parsed Dockerfile.

    Args:
        instructions: from `dockerfile.parse`.
        architecture: of the base (``amd64``), for the platform arguments such as ``TARGETARCH``.

    Raises:
        BuildFailed: a variable form is malformed, or a value makes no sense.
    """
    state = _State(architecture)
    for instruction in instructions:
        try:
            state.apply(instruction)
        except ExpansionError as error:
            raise BuildFailed(str(instruction.place), error.message) from error
    assert state.base is not None  # parse() refuses a Dockerfile without FROM
    place, reference = state.base
    config = ImageConfig(
        dict(state.env),
        state.workdir,
        state.user,
        state.command,
        state.entrypoint,
        state.labels,
        tuple(state.recorded),
    )
    return Recipe(reference, place, tuple(state.steps), config)


class _State:
    def __init__(self, architecture: str) -> None:
        platform = f"linux/{architecture}"
        self.globals = {
            f"{side}{name}": value
            for side in ("TARGET", "BUILD")
            for name, value in (
                ("PLATFORM", platform),
                ("OS", "linux"),
                ("ARCH", architecture),
                ("VARIANT", ""),
            )
        }
        self.args: dict[str, str] = {}
        self.env: dict[str, str] = {"PATH": DEFAULT_PATH}
        self.base: tuple[Place, str] | None = None
        self.steps: list[Step] = []
        self.workdir, self.user, self.shell = "/", "", _DEFAULT_SHELL
        self.command: tuple[str, ...] = ()
        self.entrypoint: tuple[str, ...] = ()
        self.labels: dict[str, str] = {}
        self.recorded: list[tuple[str, str]] = []

    def values(self) -> dict[str, str]:
        return {**self.args, **self.env}

    def apply(self, instruction: Instruction) -> None:
        match instruction:
            case From():
                reference = expand(instruction.reference, self.globals)
                if not reference:
                    raise BuildFailed(
                        str(instruction.place), "FROM names nothing after its variables are filled in"
                    )
                self.base = (instruction.place, reference)
            case Run():
                self.run(instruction)
            case Copy():
                self.copy(instruction)
            case Assign():
                self.assign(instruction)
            case Setting():
                self.setting(instruction)
            case Command():
                self.set_command(instruction)

    def run(self, run: Run) -> None:
        argv = run.argv or (*self.shell, run.script)
        if run.argv is None and run.script.startswith("#!"):
            # A heredoc that brings its own interpreter: the shell writes it to a file and runs that.
            keep = 'f=$(mktemp) && printf %s "$1" > "$f" && chmod 700 "$f" && "$f"; r=$?; rm -f "$f"; exit $r'
            argv = ("/bin/sh", "-c", keep, "sh", run.script)
        offline = "--network=none" in run.place.text.split(maxsplit=3)[1:3]
        self.steps.append(RunStep(run.place, argv, self.values(), self.workdir, self.user, offline))

    def copy(self, copy: Copy) -> None:
        values = self.values()
        target = expand(copy.target, values)
        sources = tuple(expand(source, values) for source in copy.sources)
        files = tuple(
            (doc.name, expand_body(doc.body, values) if doc.expand else doc.body) for doc in copy.files
        )
        absolute = self.absolute(target)
        if target.endswith("/") or posixpath.basename(target) in (".", ".."):
            absolute = absolute.rstrip("/") + "/"
        if len(sources) + len(files) > 1 and not absolute.endswith("/"):
            raise BuildFailed(
                str(copy.place), "with several sources the target must be a folder and end in /"
            )
        chmod = expand(copy.chmod, values)
        if chmod and not (set(chmod) <= set("01234567") and len(chmod) <= 4):
            raise BuildFailed(str(copy.place), f"--chmod={chmod} is no octal mode")
        mode = int(chmod, 8) if chmod else None
        owner = expand(copy.chown, values)
        self.steps.append(CopyStep(copy.place, sources, files, absolute, owner, mode, copy.unpack))

    def assign(self, assign: Assign) -> None:
        values = self.values() if self.base else self.globals
        for name, raw in assign.pairs:
            if assign.keyword == "ARG":
                self.argument(name, raw, values)
                values = self.values() if self.base else self.globals
                continue
            key = expand(name, values)
            target = self.env if assign.keyword == "ENV" else self.labels
            if not key:
                raise BuildFailed(str(assign.place), f"{assign.keyword} with an empty name")
            target[key] = expand(raw or "", values)

    def argument(self, name: str, raw: str | None, values: Mapping[str, str]) -> None:
        if self.base is None:
            if raw is not None:
                self.globals[name] = expand(raw, values)
        elif raw is not None:
            self.args[name] = expand(raw, values)
        elif name in self.globals:
            self.args[name] = self.globals[name]

    def setting(self, setting: Setting) -> None:
        value = setting.value
        match setting.keyword:
            case "WORKDIR":
                self.workdir = self.absolute(expand(value, self.values()))
                self.steps.append(WorkdirStep(setting.place, self.workdir))
            case "USER":
                # A group after the colon is dropped: commands run with the user's own groups.
                name = expand(value, self.values()).partition(":")[0]
                if not name:
                    raise BuildFailed(str(setting.place), "USER names nobody")
                self.user = "" if name in ("root", "0") else name
            case _:
                self.recorded.append((setting.keyword, value))

    def set_command(self, command: Command) -> None:
        words = command.words
        match command.keyword:
            case "SHELL":
                self.shell = words
            case "CMD":
                self.command = words if command.exec_form else (*self.shell, *words)
            case _:
                self.entrypoint = words if command.exec_form else (*self.shell, *words)
                self.command = ()

    def absolute(self, path: str) -> str:
        joined = posixpath.normpath(posixpath.join(self.workdir, path))
        return "/" + joined.lstrip("/")
