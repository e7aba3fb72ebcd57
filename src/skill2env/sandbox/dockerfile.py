"""Dockerfile text -> typed instructions, still unexpanded (`recipe` resolves variables).

Covers: one stage, heredocs, line continuations, shell and exec form. Does not cover, and says so with the line:
several stages and ``COPY --from``, ``RUN --mount``, ``ADD`` of URLs, ``ONBUILD``, the ``escape`` directive.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from skill2env.errors import Skill2EnvError

TEXT_LIMIT_BYTES = 1 << 20
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
    """``FROM reference``."""

    place: Place
    reference: str


@dataclass(frozen=True, slots=True)
class Run:
    """``RUN``: `argv` in exec form, else `script` for the shell."""

    place: Place
    script: str
    argv: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """``COPY`` or ``ADD`` of files of the context, or of heredocs."""

    place: Place
    sources: tuple[str, ...]
    target: str
    files: tuple[Heredoc, ...] = ()
    chown: str = ""
    chmod: str = ""
    unpack: bool = False
    """True for ``ADD``: local archives would be unpacked."""


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


@dataclass(frozen=True, slots=True)
class _RawDoc:
    name: str
    content: str


@dataclass(frozen=True, slots=True)
class _Raw:
    """What the parser library returns, with types (the library is compiled and has none)."""

    cmd: str
    json: bool
    original: str
    line: int
    flags: tuple[str, ...]
    value: tuple[str, ...]
    heredocs: tuple[_RawDoc, ...]


Instruction = From | Run | Copy | Assign | Setting | Command


def parse(text: str) -> tuple[Instruction, ...]:
    """Read a Dockerfile.

    Raises:
        BuildFailed: it is malformed, too large, or uses what is not supported.
    """
    if len(text) > TEXT_LIMIT_BYTES:
        raise BuildFailed("reading", f"the Dockerfile is larger than {TEXT_LIMIT_BYTES} bytes")
    if re.match(r"\ufeff?\s*(#[^\n]*\n\s*)*#\s*escape\s*=\s*`", text):
        raise BuildFailed("reading", "the escape directive is not supported")
    instructions = tuple(_instruction(raw) for raw in _commands(text.removeprefix("\ufeff")))
    stages = [i for i in instructions if isinstance(i, From)]
    if not stages:
        raise BuildFailed("reading", "the Dockerfile has no FROM")
    if len(stages) > 1:
        raise BuildFailed(str(stages[1].place), "several stages are not supported", hint="Use one FROM.")
    before = instructions[: instructions.index(stages[0])]
    for early in before:
        if not (isinstance(early, Assign) and early.keyword == "ARG"):
            raise BuildFailed(str(early.place), "only ARG may stand before FROM")
    return instructions


def _commands(text: str) -> list[_Raw]:
    library: Any = import_module("dockerfile")
    try:
        found = library.parse_string(text)
    except (library.GoParseError, ValueError) as error:
        raise BuildFailed("reading", str(error)) from error
    return [
        _Raw(
            str(c.cmd), bool(c.json), str(c.original), int(c.start_line), tuple(c.flags), tuple(c.value),
            tuple(_RawDoc(str(d.name), str(d.content)) for d in c.heredocs),
        )
        for c in found
    ]  # fmt: skip


def _instruction(command: _Raw) -> Instruction:
    place = Place(command.line, command.original.rstrip("\n"))
    keyword = command.cmd.upper()
    reader = _READERS.get(keyword)
    if reader is None:
        raise BuildFailed(str(place), f"{keyword} is not supported")
    return reader(place, keyword, command)


def _flags(place: Place, command: _Raw, known: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for flag in command.flags:
        name, _, value = flag.removeprefix("--").partition("=")
        if name not in known:
            raise BuildFailed(str(place), f"--{name} is not supported", hint=_FLAG_HINTS.get(name, ""))
        found[name] = value
    return found


_FLAG_HINTS = {
    "from": "Copy from the build context instead of another stage.",
    "mount": "Install without mounts; downloads are cached by layer.",
}


def _from(place: Place, _: str, command: _Raw) -> From:
    _flags(place, command, ("platform",))
    if len(command.value) not in (1, 3) or (len(command.value) == 3 and command.value[1].lower() != "as"):
        raise BuildFailed(str(place), "FROM needs one image reference, or a reference and AS name")
    return From(place, command.value[0])


def _run(place: Place, _: str, command: _Raw) -> Run:
    flags = _flags(place, command, ("network", "security"))
    if (
        flags.get("network", "default") not in ("default", "none")
        or flags.get("security", "sandbox") != "sandbox"
    ):
        raise BuildFailed(str(place), "RUN cannot leave the sandbox")
    if command.json:
        if not command.value:
            raise BuildFailed(str(place), "RUN needs a command")
        return Run(place, "", tuple(command.value))
    line = command.value[0] if command.value else ""
    if not command.heredocs:
        if not line.strip():
            raise BuildFailed(str(place), "RUN needs a command")
        return Run(place, line)
    markers = _markers(line)
    if len(markers) == 1 and markers[0].group(0) == line.strip():
        return Run(place, _body(command.heredocs[0], markers[0]))
    bodies = "".join(f"{doc.content}{doc.name}\n" for doc in command.heredocs)
    return Run(place, f"{line}\n{bodies}")


_MARKER = re.compile(r"""(?P<fd>\d*)<<(?P<chomp>-?)(?P<quote>["']?)(?P<name>[A-Za-z_][\w.]*)(?P=quote)""")


def _markers(line: str) -> list[re.Match[str]]:
    return list(_MARKER.finditer(line))


def _body(doc: _RawDoc, marker: re.Match[str]) -> str:
    return re.sub(r"(?m)^\t+", "", doc.content) if marker["chomp"] else doc.content


def _copy(place: Place, keyword: str, command: _Raw) -> Copy:
    flags = _flags(place, command, ("chown", "chmod", "link"))
    words = list(command.value)
    if len(words) < 2:
        raise BuildFailed(str(place), f"{keyword} needs at least one source and a target")
    *sources, target = words
    files: list[Heredoc] = []
    if command.heredocs:
        bodies = {doc.name: doc for doc in command.heredocs}
        for word in [w for w in sources if w.startswith("<<")]:
            marker = _MARKER.fullmatch(word)
            if marker is None or marker["name"] not in bodies:
                raise BuildFailed(str(place), f"the heredoc {word} cannot be read")
            files.append(
                Heredoc(marker["name"], _body(bodies[marker["name"]], marker), expand=not marker["quote"])
            )
            sources.remove(word)
    if keyword == "ADD" and any(re.match(r"(?i)(https?|git|ssh|ftp)://|git@", s) for s in sources):
        raise BuildFailed(
            str(place), "ADD of a URL is not supported", hint="Put the file into the build context."
        )
    return Copy(
        place,
        tuple(sources),
        target,
        tuple(files),
        flags.get("chown", ""),
        flags.get("chmod", ""),
        keyword == "ADD",
    )


def _assign(place: Place, keyword: str, command: _Raw) -> Assign:
    value = command.value
    if len(value) % 2:
        raise BuildFailed(str(place), f"{keyword} needs names and values")
    return Assign(place, keyword, tuple(zip(value[::2], value[1::2], strict=True)))


def _arg(place: Place, keyword: str, command: _Raw) -> Assign:
    pairs: list[tuple[str, str | None]] = []
    for word in command.value:
        name, equals, value = word.partition("=")
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise BuildFailed(str(place), f"{name!r} is no variable name")
        pairs.append((name, value if equals else None))
    return Assign(place, keyword, tuple(pairs))


def _setting(place: Place, keyword: str, command: _Raw) -> Setting:
    value = json.dumps(list(command.value)) if command.json else " ".join(command.value)
    if not value.strip():
        raise BuildFailed(str(place), f"{keyword} needs a value")
    return Setting(place, keyword, value)


def _command(place: Place, keyword: str, command: _Raw) -> Command:
    if keyword == "SHELL" and not (command.json and command.value):
        raise BuildFailed(str(place), "SHELL needs the exec form, a list of strings")
    return Command(place, keyword, tuple(command.value), command.json)


_READERS: dict[str, Callable[[Place, str, _Raw], Instruction]] = {
    "FROM": _from,
    "RUN": _run,
    "COPY": _copy,
    "ADD": _copy,
    "ENV": _assign,
    "LABEL": _assign,
    "ARG": _arg,
    **dict.fromkeys(
        ("WORKDIR", "USER", "EXPOSE", "VOLUME", "STOPSIGNAL", "HEALTHCHECK", "MAINTAINER"), _setting
    ),
    **dict.fromkeys(("CMD", "ENTRYPOINT", "SHELL"), _command),
}
