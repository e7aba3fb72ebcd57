"""Instructions -> a recipe: variables, stages, working directories and users resolved, as an engine would."""

import json
import posixpath
from collections.abc import Mapping, Sequence

from skill2env.sandbox.expand import ExpansionError, expand, expand_body
from skill2env.sandbox.instructions import (
    Assign,
    BuildFailed,
    Command,
    Copy,
    From,
    Instruction,
    NeedsDocker,
    Place,
    Run,
    Setting,
)
from skill2env.sandbox.recipe import (
    DEFAULT_PATH,
    CopyStep,
    ImageConfig,
    Recipe,
    RunStep,
    Stage,
    Step,
    WorkdirStep,
)

_DEFAULT_SHELL = ("/bin/sh", "-c")
_NONE: Mapping[str, ImageConfig] = {}


def resolve(
    instructions: Sequence[Instruction], *, architecture: str, known: Mapping[str, ImageConfig] = _NONE
) -> Recipe:
    """Resolve variables, working directories and users of a parsed Dockerfile.

    Args:
        instructions: from `dockerfile.parse`.
        architecture: of the base (``amd64``), for the platform arguments such as ``TARGETARCH``.
        known: image reference -> what that image says; a stage on it goes on from its variables and folder, as root.

    Raises:
        BuildFailed: a variable form is malformed, or a value makes no sense.
    """
    reader = _Stages(architecture, known)
    for instruction in instructions:
        try:
            reader.apply(instruction)
        except ExpansionError as error:
            raise BuildFailed(str(instruction.place), error.message) from error
    return Recipe(tuple(state.finish() for state in reader.states))


class _Stages:
    """Reads instructions stage by stage; ARG before the first FROM is for FROM lines and for ARG without a value."""

    def __init__(self, architecture: str, known: Mapping[str, ImageConfig]) -> None:
        self.known = known
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
        self.states: list[_State] = []
        self.names: dict[str, int] = {}

    def apply(self, instruction: Instruction) -> None:
        match instruction:
            case From():
                self.begin(instruction)
            case Assign() if not self.states:
                for name, raw in instruction.pairs:
                    if raw is not None:
                        self.globals[name] = expand(raw, self.globals)
            case Copy(origin=str(origin)) if origin:
                self.states[-1].copy(instruction, self.origin(instruction, origin))
            case _:
                self.states[-1].apply(instruction)

    def begin(self, instruction: From) -> None:
        place, reference = instruction.place, expand(instruction.reference, self.globals)
        if not reference:
            raise BuildFailed(str(place), "FROM names nothing after its variables are filled in")
        if reference.lower() == "scratch":
            raise NeedsDocker(place, "FROM scratch", hint="Start from a base image, or run with docker.")
        earlier = self.names.get(reference.lower())
        self.states.append(
            _State(self.globals, place, reference).on(self.known.get(reference))
            if earlier is None
            else _State(self.globals, place, earlier, self.states[earlier])
        )
        if instruction.name:
            self.names[instruction.name] = len(self.states) - 1

    def origin(self, copy: Copy, named: str) -> int | str:
        name = expand(named, self.states[-1].values())
        number = self.names.get(name.lower(), int(name) if name.isdigit() else None)
        if number is None:
            return name
        if number >= len(self.states) - 1:
            raise BuildFailed(str(copy.place), f"--from={name} names no earlier stage")
        return number


class _State:
    """One stage while it is read; goes on from `parent` where FROM names an earlier stage."""

    def __init__(
        self, outer: Mapping[str, str], place: Place, base: int | str, parent: "_State | None" = None
    ) -> None:
        self.globals, self.place, self.base = outer, place, base
        self.args: dict[str, str] = {}
        self.steps: list[Step] = []
        self.env: dict[str, str] = dict(parent.env) if parent else {"PATH": DEFAULT_PATH}
        self.workdir = parent.workdir if parent else "/"
        self.user = parent.user if parent else ""
        self.shell = parent.shell if parent else _DEFAULT_SHELL
        self.command: tuple[str, ...] = parent.command if parent else ()
        self.entrypoint: tuple[str, ...] = parent.entrypoint if parent else ()
        self.labels: dict[str, str] = dict(parent.labels) if parent else {}
        self.recorded: list[tuple[str, str]] = list(parent.recorded) if parent else []

    def on(self, config: ImageConfig | None) -> "_State":
        """Itself, going on from what a known image says."""
        if config is not None:
            self.env.update(config.env)
            self.workdir = config.workdir
        return self

    def finish(self) -> Stage:
        config = ImageConfig(
            dict(self.env),
            self.workdir,
            self.user,
            self.command,
            self.entrypoint,
            self.labels,
            tuple(self.recorded),
        )
        return Stage(self.base, self.place, tuple(self.steps), config)

    def values(self) -> dict[str, str]:
        return {**self.args, **self.env}

    def apply(self, instruction: Instruction) -> None:
        match instruction:
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
            case From():
                raise AssertionError("stages are begun outside")

    def run(self, run: Run) -> None:
        argv = run.argv or (*self.shell, run.script)
        if run.argv is None and run.script.startswith("#!"):
            # A heredoc that brings its own interpreter: the shell writes it to a file and runs that.
            keep = 'f=$(mktemp) && printf %s "$1" > "$f" && chmod 700 "$f" && "$f"; r=$?; rm -f "$f"; exit $r'
            argv = ("/bin/sh", "-c", keep, "sh", run.script)
        values = self.values()
        mounts = tuple(self.absolute(expand(mount.target, values)) for mount in run.mounts)
        self.steps.append(RunStep(run.place, argv, values, self.workdir, self.user, run.offline, mounts))

    def copy(self, copy: Copy, origin: int | str | None = None) -> None:
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
        self.steps.append(CopyStep(copy.place, sources, files, absolute, owner, mode, copy.unpack, origin))

    def assign(self, assign: Assign) -> None:
        values = self.values()
        for name, raw in assign.pairs:
            if assign.keyword == "ARG":
                self.argument(name, raw, values)
                values = self.values()
                continue
            key = expand(name, values)
            target = self.env if assign.keyword == "ENV" else self.labels
            if not key:
                raise BuildFailed(str(assign.place), f"{assign.keyword} with an empty name")
            target[key] = expand(raw or "", values)

    def argument(self, name: str, raw: str | None, values: Mapping[str, str]) -> None:
        if raw is not None:
            self.args[name] = expand(raw, values)
        elif name in self.globals:
            self.args[name] = self.globals[name]

    def setting(self, setting: Setting) -> None:
        value = setting.value
        match setting.keyword:
            case "WORKDIR":
                self.workdir = self.absolute(expand(value, self.values()))
                self.steps.append(WorkdirStep(setting.place, self.workdir, self.user))
            case "USER":
                name = expand(value, self.values()).removesuffix(":")
                if not name or name.startswith(":"):
                    raise BuildFailed(str(setting.place), "USER names nobody")
                self.user = "" if name in ("root", "0", "0:0", "root:root") else name
            case "VOLUME":
                # An engine mounts an empty folder there when the container starts.
                self.recorded.append((setting.keyword, value))
                words = json.loads(value) if value.startswith("[") else expand(value, self.values()).split()
                self.steps += [WorkdirStep(setting.place, self.absolute(word)) for word in words]
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
