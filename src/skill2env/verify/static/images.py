"""What a Dockerfile does beyond its syntax: versions that move, downloads, other platforms, ways to private files."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from skill2env.sandbox.catalog import CATALOG
from skill2env.sandbox.instructions import Copy, From, Heredoc, Instruction, Run
from skill2env.verify.gate import Hit
from skill2env.verify.reading import read_file, read_text, walk
from skill2env.verify.static import bash
from skill2env.verify.static.fetches import fetched

WHERE = "environment/Dockerfile"
_PRIVATE = frozenset({"tests", "solution"})
_PINNED = re.compile(r"[=@]\S|\.(?:whl|tgz|deb|gem)$|tar\.gz$|^git\+\S+@[0-9a-f]{7,}|^\.{0,2}/|^\$|^-")


def more_hits(
    task_dir: Path, instructions: Sequence[Instruction], references: Sequence[str]
) -> Iterator[Hit]:
    """Findings about an agent's Dockerfile that parses.

    Args:
        task_dir: the task.
        instructions: its instructions, unexpanded.
        references: images that it names, with variables filled in.
    """
    for instruction in instructions:
        where = f"{WHERE}:{instruction.place.line}"
        if isinstance(instruction, From):
            yield from _from(instruction, where)
        elif isinstance(instruction, Copy):
            for heredoc in instruction.files:
                yield from _heredoc(heredoc, where)
        elif isinstance(instruction, Run):
            for command in bash.read(instruction.script or " ".join(instruction.argv or ())).commands:
                yield from _command(command.call, where)
    for reference in references:
        yield from _moving(reference)
    yield from private_links(task_dir)
    yield from compose_hits(task_dir)
    yield from _not_executable(task_dir, "\n".join(instruction.place.text for instruction in instructions))


def _not_executable(task_dir: Path, dockerfile: str) -> Iterator[Hit]:
    """Scripts of the world that the instruction starts by their path although nothing makes them executable."""
    text = read_text(task_dir / "instruction.md") or ""
    started = {
        code.split()[0]
        for code in re.findall(r"`([^`\n]+)`", text)
        if code.split()[1:] or code.startswith("./")
    }
    if "chmod" in dockerfile:
        return
    for path, status in walk(task_dir / "environment"):
        name = path.rpartition("/")[2]
        if status.st_mode & 0o111 or not any(
            word.startswith(("/", "./")) and word.endswith("/" + name) for word in started
        ):
            continue
        if (read_file(task_dir / "environment" / path) or b"").startswith(b"#!"):
            yield Hit("not-executable", "is started by its path and is not executable", f"environment/{path}")


def _from(instruction: From, where: str) -> Iterator[Hit]:
    if re.search(r"(?i)^\s*FROM\s+.*--platform", instruction.place.text):
        yield Hit("dockerfile-platform", "FROM names a platform", where)
    if "$" in instruction.reference:
        yield Hit(
            "dockerfile-variable-base", f"FROM {instruction.reference} depends on a build argument", where
        )


def _moving(base: str) -> Iterator[Hit]:
    name, _, digest = base.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    # A name of our catalog stands for one image for ever.
    if base and base not in CATALOG and base != "scratch" and not digest and tag in ("", "latest"):
        yield Hit("dockerfile-latest", f"FROM {base} means whatever is newest on the day of the build", WHERE)


def _heredoc(heredoc: Heredoc, where: str) -> Iterator[Hit]:
    if "/logs/verifier" in heredoc.body:
        yield Hit("dockerfile-copies-private", "a here-document holds what writes a reward", where)


def _command(call: tuple[str, ...], where: str) -> Iterator[Hit]:
    if call == ("nproc",):
        yield Hit("bare-nproc", "nproc tells the machine's processors, not the task's", where)
    found = fetched(call)
    if found is None:
        return
    if found[0] != "installs":
        yield Hit("dockerfile-fetch", f"{' '.join(call)[:120]} gets what may be another file tomorrow", where)
        return
    moving = _unpinned(call)
    if moving:
        yield Hit("dockerfile-unpinned-package", f"installs {', '.join(moving[:5])} without a version", where)


def _unpinned(call: tuple[str, ...]) -> list[str]:
    words = list(call)
    if re.fullmatch(r"python[\d.]*", words[0]):
        words = words[2:]
    if words[0] == "uv":
        words = words[1:]
    if words[0] not in ("pip", "pip3", "npm", "pnpm", "yarn", "gem", "cargo"):
        return []  # packages of a distribution move with its release
    packages: list[str] = []
    skip = False
    for at, word in enumerate(words[2:], 2):
        if skip:
            skip = False
        elif word in (
            "-r",
            "--requirement",
            "-c",
            "--constraint",
            "-i",
            "--index-url",
            "--version",
            "-v",
            "--prefix",
        ):
            skip = True
            if word in ("--version", "-v") and at:
                return []
        elif not word.startswith("-") and not _PINNED.search(word.removeprefix("@")):
            packages.append(word)
    return packages


def private_links(task_dir: Path) -> Iterator[Hit]:
    """Links of the build context that lead to the verifier's or the solution's files."""
    root = task_dir.resolve()
    for path, _ in walk(task_dir / "environment"):
        place = task_dir / "environment" / path
        if not place.is_symlink():
            continue
        try:
            target = place.resolve()
        except (OSError, RuntimeError):
            continue
        if target.is_relative_to(root) and target.relative_to(root).parts[:1] in {
            (name,) for name in _PRIVATE
        }:
            shown = target.relative_to(root).as_posix()
            yield Hit("dockerfile-copies-private", f"a link to {shown}", f"environment/{path}")


def compose_hits(task_dir: Path) -> Iterator[Hit]:
    """Build contexts and mounts of a compose file that reach private folders of the task."""
    where = "environment/docker-compose.yaml"
    text = read_text(task_dir / where)
    if text is None:
        return
    for path, outside in _context_paths(_load(text)):
        parts = posixpath.normpath(posixpath.join("environment", path)).split("/")
        if parts[0] in _PRIVATE:
            yield Hit("dockerfile-copies-private", f"{outside} is {path}", where)
        elif outside == "a build context" and parts == ["."]:
            yield from _copies_from_root(task_dir, where)


def _copies_from_root(task_dir: Path, where: str) -> Iterator[Hit]:
    dockerfile = read_text(task_dir / WHERE) or ""
    for line in dockerfile.splitlines():
        words = line.split()
        if words[:1] and words[0].upper() in ("COPY", "ADD"):
            sources = [posixpath.normpath(word) for word in words[1:-1] if not word.startswith("--")]
            if any(source == "." or source.split("/")[0] in _PRIVATE for source in sources):
                yield Hit(
                    "dockerfile-copies-private",
                    f"the build context is the task itself: {line.strip()}",
                    where,
                )


def _load(text: str) -> Any:  # whatever the file holds
    from ruamel.yaml import YAML, YAMLError

    try:
        return YAML(typ="safe").load(text)
    except (YAMLError, ValueError, RecursionError):
        return None


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _context_paths(document: Any) -> Iterator[tuple[str, str]]:
    for service in map(_mapping, _mapping(_mapping(document).get("services")).values()):
        build = service.get("build")
        context = _mapping(build).get("context") if isinstance(build, dict) else build
        if isinstance(context, str):
            yield context, "a build context"
        for volume in cast("list[Any]", service.get("volumes") or []):
            source = (
                _mapping(volume).get("source") if isinstance(volume, dict) else str(volume).partition(":")[0]
            )
            if isinstance(source, str) and source.startswith("."):
                yield source, "a mount"
