"""What a Dockerfile says, as typed instructions, and the two ways in which one cannot be built."""

from dataclasses import dataclass

from skill2env.errors import Skill2EnvError

_STEP_CHARS = 160


class BuildFailed(Skill2EnvError):
    """The Dockerfile is at fault: it cannot be read, names what is not there, or one of its commands failed."""

    def __init__(self, step: str, log: str, *, exit_code: int | None = None, hint: str = "") -> None:
        """Say which step failed.

        Args:
            step: ``line N: INSTRUCTION ...``, shortened.
            log: what went wrong; for a command the end of its output.
            exit_code: of the command, None where none was run.
            hint: how to mend it.
        """
        tail = log.strip().rpartition("\n")[2][:500]
        code = "" if exit_code is None else f" (exit code {exit_code})"
        super().__init__(f"build failed at {step}{code}: {tail}", hint=hint)
        self.step = step
        self.log = log
        self.exit_code = exit_code


class NeedsDocker(BuildFailed):
    """The Dockerfile uses what an engine can do and this builder cannot, which is no fault of the task."""

    def __init__(self, place: "Place", what: str, *, hint: str = "") -> None:
        """Say what it is and where.

        Args:
            place: the instruction.
            what: the instruction's name, with the flag or form that is not covered.
            hint: what to write instead.
        """
        super().__init__(
            str(place),
            f"needs docker: {what} at line {place.line}",
            hint=hint or "Run it with --sandbox docker.",
        )


@dataclass(frozen=True, slots=True)
class Place:
    """Where an instruction stands."""

    line: int
    text: str
    """The instruction as written, continuation lines joined."""

    def __str__(self) -> str:
        first = " ".join(self.text.split())
        return f"line {self.line}: {first if len(first) <= _STEP_CHARS else first[: _STEP_CHARS - 1] + '…'}"


@dataclass(frozen=True, slots=True)
class Heredoc:
    """Body of a heredoc; `expand` is False when its delimiter was quoted."""

    name: str
    body: str
    expand: bool


@dataclass(frozen=True, slots=True)
class From:
    """``FROM reference AS name``; no name is empty, and names are in lower case."""

    place: Place
    reference: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Mount:
    """``RUN --mount=type=KIND,target=TARGET`` with KIND ``cache`` or ``tmpfs``: a folder that no layer keeps."""

    kind: str
    target: str


@dataclass(frozen=True, slots=True)
class Run:
    """``RUN``: `argv` in exec form, else `script` for the shell."""

    place: Place
    script: str
    argv: tuple[str, ...] | None = None
    mounts: tuple[Mount, ...] = ()
    offline: bool = False


@dataclass(frozen=True, slots=True)
class Copy:
    """``COPY`` or ``ADD`` of files of the context or of another stage, or of heredocs."""

    place: Place
    sources: tuple[str, ...]
    target: str
    files: tuple[Heredoc, ...] = ()
    chown: str = ""
    chmod: str = ""
    unpack: bool = False
    """True for ``ADD``: local archives are unpacked."""
    origin: str = ""
    """Stage (name or number) or image to copy from; empty for the build context."""


@dataclass(frozen=True, slots=True)
class Assign:
    """``ENV``, ``ARG`` or ``LABEL``: names and raw values (None: an ``ARG`` without a default)."""

    place: Place
    keyword: str
    pairs: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """``WORKDIR`` and ``USER``; and what is only recorded, such as ``EXPOSE``, ``VOLUME`` and ``HEALTHCHECK``."""

    place: Place
    keyword: str
    value: str


@dataclass(frozen=True, slots=True)
class Command:
    """``CMD``, ``ENTRYPOINT`` or ``SHELL``: words in exec form, one string in shell form."""

    place: Place
    keyword: str
    words: tuple[str, ...]
    exec_form: bool


Instruction = From | Run | Copy | Assign | Setting | Command
