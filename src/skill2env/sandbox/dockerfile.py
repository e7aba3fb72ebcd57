"""Dockerfile text -> typed instructions, still unexpanded (`recipe` resolves variables).

Covers: several stages, ``COPY --from``, heredocs, line continuations, shell and exec form, ``RUN --network``, and
``RUN --mount`` of caches and temporary folders. Anything else is refused with its line, as ``needs docker``.
"""

import functools
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from skill2env.sandbox.instructions import (
    Assign,
    BuildFailed,
    Command,
    Copy,
    From,
    Heredoc,
    Instruction,
    Mount,
    NeedsDocker,
    Place,
    Run,
    Setting,
)

TEXT_LIMIT_BYTES = 1 << 20


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


def parse(text: str) -> tuple[Instruction, ...]:
    """Read a Dockerfile.

    Raises:
        BuildFailed: it is malformed, too large, or uses what is not supported.
    """
    if len(text) > TEXT_LIMIT_BYTES:
        raise BuildFailed("reading", f"the Dockerfile is larger than {TEXT_LIMIT_BYTES} bytes")
    escape = re.match(r"\ufeff?\s*(#[^\n]*\n\s*)*#\s*escape\s*=\s*`", text)
    if escape:
        raise NeedsDocker(Place(escape[0].count("\n") + 1, "# escape"), "the escape directive")
    instructions = tuple(_instruction(raw) for raw in _commands(text.removeprefix("\ufeff")))
    first = next((number for number, i in enumerate(instructions) if isinstance(i, From)), None)
    if first is None:
        raise BuildFailed("reading", "the Dockerfile has no FROM")
    for early in instructions[:first]:
        if not (isinstance(early, Assign) and early.keyword == "ARG"):
            raise BuildFailed(str(early.place), "only ARG may stand before FROM")
    return instructions


@functools.lru_cache(maxsize=256)  # the library never frees what it returns: a trial would cost a kilobyte
def _commands(text: str) -> tuple[_Raw, ...]:
    library: Any = import_module("dockerfile")
    try:
        found = library.parse_string(text)
    except (library.GoParseError, ValueError) as error:
        raise BuildFailed("reading", str(error)) from error
    return tuple(
        _Raw(
            str(c.cmd), bool(c.json), str(c.original), int(c.start_line), tuple(c.flags), tuple(c.value),
            tuple(_RawDoc(str(d.name), str(d.content)) for d in c.heredocs),
        )
        for c in found
    )  # fmt: skip


def _instruction(command: _Raw) -> Instruction:
    place = Place(command.line, command.original.rstrip("\n"))
    keyword = command.cmd.upper()
    reader = _READERS.get(keyword)
    if reader is None:
        raise NeedsDocker(place, keyword)
    return reader(place, keyword, command)


def _flags(place: Place, command: _Raw, known: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for flag in command.flags:
        name, _, value = flag.removeprefix("--").partition("=")
        if name not in known:
            raise NeedsDocker(place, f"{command.cmd.upper()} --{name}")
        found[name] = value
    return found


def _from(place: Place, _: str, command: _Raw) -> From:
    _flags(place, command, ("platform",))
    words = command.value
    if len(words) not in (1, 3) or (len(words) == 3 and words[1].lower() != "as"):
        raise BuildFailed(str(place), "FROM needs one image reference, or a reference and AS name")
    return From(place, words[0], words[2].lower() if len(words) == 3 else "")


def _mount(place: Place, value: str) -> Mount:
    pairs = [part.partition("=") for part in value.split(",")]
    fields = {name: text for name, _, text in pairs}
    kind = fields.get("type", "bind")
    target = fields.get("target") or fields.get("dst") or fields.get("destination") or ""
    # The same fields that BuildKit knows for them; a cache is always empty here, which it may be anywhere.
    if kind not in ("cache", "tmpfs") or "from" in fields or "source" in fields:
        raise NeedsDocker(
            place, f"RUN --mount=type={kind}", hint="COPY what the command needs, or run with docker."
        )
    if not target:
        raise BuildFailed(str(place), "--mount needs a target")
    return Mount(kind, target)


def _run(place: Place, keyword: str, command: _Raw) -> Run:
    mounts = tuple(
        _mount(place, flag.removeprefix("--mount=")) for flag in command.flags if flag.startswith("--mount=")
    )
    flags = _flags(place, command, ("network", "security", "mount"))
    if (
        flags.get("network", "default") not in ("default", "none")
        or flags.get("security", "sandbox") != "sandbox"
    ):
        raise BuildFailed(str(place), "RUN cannot leave the sandbox")
    script, argv = _what_to_run(place, keyword, command)
    return Run(place, script, argv, mounts, offline=flags.get("network") == "none")


def _what_to_run(place: Place, keyword: str, command: _Raw) -> tuple[str, tuple[str, ...] | None]:
    """(script for the shell, or words in exec form)."""
    if command.json:
        if not command.value:
            raise BuildFailed(str(place), f"{keyword} needs a command")
        return "", tuple(command.value)
    line = command.value[0] if command.value else ""
    if not command.heredocs:
        if not line.strip():
            raise BuildFailed(str(place), f"{keyword} needs a command")
        return line, None
    markers = _markers(line)
    if len(markers) == 1 and markers[0].group(0) == line.strip():
        return _body(command.heredocs[0], markers[0]), None
    bodies = "".join(f"{doc.content}{doc.name}\n" for doc in command.heredocs)
    return f"{line}\n{bodies}", None


_MARKER = re.compile(r"""(?P<fd>\d*)<<(?P<chomp>-?)(?P<quote>["']?)(?P<name>[A-Za-z_][\w.]*)(?P=quote)""")


def _markers(line: str) -> list[re.Match[str]]:
    return list(_MARKER.finditer(line))


def _body(doc: _RawDoc, marker: re.Match[str]) -> str:
    return re.sub(r"(?m)^\t+", "", doc.content) if marker["chomp"] else doc.content


def _copy(place: Place, keyword: str, command: _Raw) -> Copy:
    flags = _flags(place, command, ("chown", "chmod", "link", *(("from",) if keyword == "COPY" else ())))
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
        raise NeedsDocker(
            place, "ADD of a URL", hint="Put the file into the build context, or run with docker."
        )
    return Copy(
        place,
        tuple(sources),
        target,
        tuple(files),
        flags.get("chown", ""),
        flags.get("chmod", ""),
        keyword == "ADD",
        flags.get("from", ""),
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
