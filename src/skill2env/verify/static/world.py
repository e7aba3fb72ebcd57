"""What the agent is shown: the instruction, and the files that its image is made from."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from skill2env.packed import members
from skill2env.verify.gate import Subject
from skill2env.verify.reading import decode, read_file, read_text, walk

FILE_LIMIT = 8 * 1024 * 1024
"""Longer files are not read, and count as opaque; bytes."""
TOTAL_LIMIT = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Shown:
    """One text that the agent can read."""

    path: str
    """Of the task; a member of an archive behind ``!``."""
    text: str


@dataclass(frozen=True, slots=True)
class World:
    """Everything of the task that the agent can read."""

    instruction: str
    texts: tuple[Shown, ...]
    """Files of environment/, the Dockerfile among them, archives unpacked."""
    paths: tuple[str, ...]
    """Relative paths of the files of environment/."""
    opaque: tuple[str, ...] = field(default=())
    """Files that hold more than can be read here, and members of archives (behind ``!``)."""

    @property
    def everything(self) -> str:
        """Instruction, texts and paths as one text."""
        return "\n".join([self.instruction, self.data])

    @property
    def data(self) -> str:
        """Texts and paths, without the instruction."""
        return "\n".join([*(shown.text for shown in self.texts), *self.paths])


def world_of(subject: Subject) -> World:
    """Read the instruction of every step and the files of environment/."""
    root = subject.task_dir
    places = [root / "instruction.md", *sorted((root / "steps").glob("*/instruction.md"))]
    instruction = "\n".join(text for text in map(read_text, places) if text)
    texts: list[Shown] = []
    paths: list[str] = []
    opaque: list[str] = []
    total = 0
    for path, _ in walk(root / "environment"):
        data = read_file(root / "environment" / path, FILE_LIMIT)
        if data is None:
            if (root / "environment" / path).is_file():
                paths.append(path)
                opaque.append(path)
            continue
        paths.append(path)
        total += len(data)
        if total > TOTAL_LIMIT:
            opaque.append(path)
            continue
        closed: list[tuple[str, str]] = []
        shown = list(texts_of(f"environment/{path}", data, closed))
        opaque += [inner for inner, _ in closed]
        texts += shown
        if not shown and data:
            opaque.append(path)
    return World(instruction, tuple(texts), tuple(paths), tuple(opaque))


def texts_of(path: str, data: bytes, closed: list[tuple[str, str]], depth: int = 0) -> Iterator[Shown]:
    """The texts of one file.

    Args:
        path: of the task.
        data: the file.
        closed: receives (path, why) of what in it cannot be read.
        depth: of archives within archives.
    """
    text = decode(data)
    if text is not None:
        if text:
            yield Shown(path, text)
        return
    for member in members(path, data) if depth < 2 else ():
        inner = f"{path}!{member.name}"
        if member.problem:
            closed.append((inner, member.problem))
        yield from texts_of(inner, member.data, closed, depth + 1)
    if depth == 0 and data[:16] == b"SQLite format 3\0":
        yield Shown(path, data.decode("utf-8", errors="replace"))
    elif b"\0" not in data[:1024]:  # another encoding
        yield Shown(path, data.decode("latin-1"))


def words_of(text: str) -> set[str]:
    """Lower-case words and numbers of a text, those of names like ``first_last`` and ``firstLast`` one by one."""
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text)
    return {word.lower() for word in re.findall(r"[^\W_]+", split)}
