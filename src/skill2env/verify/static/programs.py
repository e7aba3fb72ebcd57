"""Which programs a task runs: test.sh and solve.sh, what they call, and what they hold inside.

A file that the agent is given is the agent's, also where the verifier keeps a copy of it; it is no program of the task.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath

from skill2env.verify.reading import decode, read_file, walk
from skill2env.verify.static import bash, python

_READ_LIMIT = 512 * 1024
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_SHELLS = frozenset({"bash", "sh", "dash", "ash", "zsh", "ksh"})
_SUFFIXES = {".sh": "shell", ".bash": "shell", ".py": "python"}


class Role(StrEnum):
    """Whose program it is."""

    VERIFIER = "tests"
    SOLUTION = "solution"


class Origin(StrEnum):
    """Where its text stands."""

    FILE = "file"
    INLINE = "inline"
    """Given to an interpreter by a here-document or as an argument."""
    WRITTEN = "written"
    """Written to a file by a script that starts it later."""


@dataclass(frozen=True, slots=True)
class Program:
    """Something that runs."""

    path: str
    """File of the task that holds it."""
    line: int
    """Line of that file before its first line."""
    role: Role
    language: str
    """``shell`` or ``python``."""
    text: str
    origin: Origin = Origin.FILE

    def where(self, line: int) -> str:
        """Place of a line of it, as findings name it."""
        return f"{self.path}:{self.line + line}"


@dataclass(frozen=True, slots=True)
class Invocation:
    """A program that a program starts."""

    words: tuple[str, ...]
    line: int
    guarded: bool = False

    @property
    def call(self) -> tuple[str, ...]:
        """See `bash.Command.call`."""
        return bash.unwrapped(self.words)


def programs(task_dir: Path, role: Role) -> tuple[Program, ...]:
    """Programs of one role in every step, in the order in which they are reached."""
    public = public_digests(task_dir)
    found: list[Program] = []
    for top in _folders(task_dir, role):
        found += _reached(task_dir, top, role, public)
    return tuple(found)


def public_digests(task_dir: Path) -> frozenset[str]:
    """SHA-256 of every file of environment/."""
    found: set[str] = set()
    for path, _ in walk(task_dir / "environment"):
        data = read_file(task_dir / "environment" / path)
        if data:
            found.add(hashlib.sha256(data).hexdigest())
    return frozenset(found)


def invocations(program: Program) -> Iterator[Invocation]:
    """What a program starts."""
    if program.language == "shell":
        for command in bash.read(program.text).commands:
            yield Invocation(command.words, command.line, command.guarded)
    else:
        source = python.read(program.text)
        if source is None:
            return
        for words, line in source.commands():
            if unshelled := _shell_argument(bash.unwrapped(words)):
                for command in bash.read(unshelled).commands:
                    yield Invocation(command.words, line)
            else:
                yield Invocation(words, line)


def _folders(task_dir: Path, role: Role) -> list[str]:
    steps = sorted(path.parent.name for path in (task_dir / "steps").glob(f"*/{role.value}"))
    return [role.value, *(f"steps/{step}/{role.value}" for step in steps)]


def _reached(task_dir: Path, top: str, role: Role, public: frozenset[str]) -> list[Program]:
    texts: dict[str, str] = {}
    for path, _ in walk(task_dir / top):
        data = read_file(task_dir / top / path, _READ_LIMIT)
        text = decode(data)
        if data and text is not None and hashlib.sha256(data).hexdigest() not in public:
            texts[path] = text
    entry = "test.sh" if role is Role.VERIFIER else "solve.sh"
    pending = [path for path in texts if path == entry or path.endswith(f"/{entry}")]
    seen: set[str] = set(pending)
    found: list[Program] = []
    while pending:
        path = pending.pop(0)
        language = _language(path, texts[path])
        if not language:
            continue
        inner = list(_with_inner(Program(f"{top}/{path}", 0, role, language, texts[path])))
        found += inner
        mentioned = "\n".join(program.text for program in inner)
        fresh = [other for other in texts if other not in seen and _is_mentioned(other, mentioned)]
        seen |= set(fresh)
        pending += fresh
    return found


def _is_mentioned(path: str, text: str) -> bool:
    name = PurePosixPath(path)
    if re.search(rf"(?<![\w.-]){re.escape(name.name)}(?![\w-])", text):
        return True
    if name.suffix == ".py" and re.search(rf"\b(?:import|from)\s+(?:\w+\.)*{re.escape(name.stem)}\b", text):
        return True
    return "pytest" in text and bool(re.fullmatch(r"(?:test_\w+|\w+_test|conftest)\.py", name.name))


def _language(path: str, text: str) -> str:
    first = text.split("\n", 1)[0]
    if first.startswith("#!"):
        words = [word.rpartition("/")[2] for word in first[2:].split() if not word.startswith("-")]
        program = next((word for word in words if word != "env"), "")
        return _language_of(program)
    return _SUFFIXES.get(PurePosixPath(path).suffix, "")


def _language_of(program: str) -> str:
    if program in _SHELLS:
        return "shell"
    return "python" if _PYTHON.fullmatch(program) else ""


def _with_inner(program: Program, depth: int = 0) -> Iterator[Program]:
    yield program
    if program.language != "shell" or depth > 3:
        return
    script = bash.read(program.text)
    started = {word for command in script.commands for word in command.words}
    for command in script.commands:
        for inner in _inside(program, command, started):
            yield from _with_inner(inner, depth + 1)


def _inside(program: Program, command: bash.Command, started: set[str]) -> Iterator[Program]:
    call = command.call
    if not call:
        return
    language = _language_of(call[0])

    def made(text: str, line: int, kind: str, origin: Origin) -> Program:
        return Program(program.path, program.line + line - 1, program.role, kind, text, origin)

    if language and command.stdin is not None and _reads_stdin(call):
        yield made(command.stdin, command.stdin_line, language, Origin.INLINE)
    argument = _shell_argument(call) if language == "shell" else _python_argument(call) if language else ""
    if call[0] == "eval":
        language, argument = "shell", " ".join(call[1:])
    if argument:
        yield made(argument, command.line, language, Origin.INLINE)
    if call[0] in ("cat", "tee") and command.stdin is not None:
        for target in _targets(command):
            kind = _language(target, command.stdin)
            if kind and target in started:
                yield made(command.stdin, command.stdin_line, kind, Origin.WRITTEN)


def _targets(command: bash.Command) -> set[str]:
    written = {item.target for item in command.redirects if item.operator.startswith((">", "&>"))}
    if command.call[0] == "tee":
        written |= {word for word in command.call[1:] if not word.startswith("-")}
    return written


def _reads_stdin(call: tuple[str, ...]) -> bool:
    plain = [word for word in call[1:] if not word.startswith("-") or word == "-"]
    return not plain or plain[0] in ("-", "/dev/stdin") or "-s" in call[1:]


def _shell_argument(call: tuple[str, ...]) -> str:
    if not call or call[0] not in _SHELLS:
        return ""
    for at, word in enumerate(call[1:-1], 1):
        if re.fullmatch(r"-\w*c", word):
            return call[at + 1]
    return ""


def _python_argument(call: tuple[str, ...]) -> str:
    for at, word in enumerate(call[1:-1], 1):
        if re.fullmatch(r"-[A-Za-z]*c", word):
            return call[at + 1]
        if not word.startswith("-"):
            return ""
    return ""
