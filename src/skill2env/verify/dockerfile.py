"""Gate `dockerfile`: one pinned stage, nothing private, nothing from outside, and a user for the agent."""

import posixpath
import re
from collections.abc import Iterator, Sequence

from skill2env.harbor.task_toml import AGENT_USER
from skill2env.sandbox.dockerfile import parse
from skill2env.sandbox.instructions import (
    BuildFailed,
    Command,
    Copy,
    From,
    Instruction,
    NeedsDocker,
    Run,
    Setting,
)
from skill2env.sandbox.recipe import CopyStep, Recipe, RunStep
from skill2env.sandbox.resolving import resolve
from skill2env.verify.gate import GateContext, Hit, Report, Subject
from skill2env.verify.reading import read_text
from skill2env.verify.static.images import more_hits

WHERE = "environment/Dockerfile"
_ALLOWED_SETTINGS = frozenset({"WORKDIR", "USER", "STOPSIGNAL"})
_PRIVATE_TARGETS = ("/tests", "/solution", "/logs")
_PRIVATE_NAMES = frozenset({"test.sh", "solve.sh", "rubric.md"})
_PRIVATE_FOLDERS = frozenset({"tests", "solution"})
_ADDS_USER = re.compile(rf"\b(?:useradd|adduser)\b[^\n;&|]*\s{AGENT_USER}(?:\s|$|[;&|])")
_PINNED = re.compile(r"@sha256:[0-9a-f]{64}$")


def check(subject: Subject, context: GateContext) -> Report:  # noqa: ARG001
    """Read environment/Dockerfile."""
    text = read_text(subject.task_dir / WHERE)
    if text is None:
        return Report(not_run="there is no Dockerfile that can be read")
    try:
        instructions = parse(text)
        recipe = resolve(instructions, architecture="amd64")
    except BuildFailed as failure:
        return Report(list(_unread(failure)))
    more = list(_more_than_the_format(recipe))
    references = [stage.base for stage in recipe.stages if isinstance(stage.base, str)]
    always = [
        *more,
        *more_hits(subject.task_dir, instructions, references),
        *(
            hit
            for stage in recipe.stages
            for step in stage.steps
            if isinstance(step, CopyStep)
            for hit in _copy(step)
        ),
    ]
    if more:
        return Report(always)
    hits = [
        *_base(recipe),
        *always,
        *_instructions(instructions),
        *_user(instructions, recipe),
    ]
    return Report(hits, {"base": recipe.base})


def base_reference(text: str) -> str:
    """Image reference after FROM with its variables filled in; empty when the Dockerfile cannot be read."""
    try:
        return resolve(parse(text), architecture="amd64").base
    except BuildFailed:
        return ""


def _unread(failure: BuildFailed) -> Iterator[Hit]:
    if "ADD of a URL" in failure.log:
        code = "dockerfile-download"
    else:
        code = "dockerfile-instruction" if isinstance(failure, NeedsDocker) else "dockerfile-syntax"
    line = re.match(r"line (\d+)", failure.step)
    yield Hit(code, failure.log.strip()[:300], f"{WHERE}:{line[1]}" if line else WHERE)


def _more_than_the_format(recipe: Recipe) -> Iterator[Hit]:
    for stage in recipe.stages[1:]:
        yield Hit(
            "dockerfile-stages", "several stages are not part of the format", f"{WHERE}:{stage.place.line}"
        )
    for stage in recipe.stages:
        for step in stage.steps:
            if isinstance(step, CopyStep) and step.origin is not None:
                yield Hit(
                    "dockerfile-stages", "--from is not part of the format", f"{WHERE}:{step.place.line}"
                )
            if isinstance(step, RunStep) and step.mounts:
                yield Hit(
                    "dockerfile-instruction",
                    "--mount is not part of the format",
                    f"{WHERE}:{step.place.line}",
                )


def _base(recipe: Recipe) -> Iterator[Hit]:
    if not _PINNED.search(recipe.base):
        yield Hit(
            "dockerfile-unpinned", f"FROM {recipe.base} names no digest", f"{WHERE}:{recipe.place.line}"
        )


def _copy(step: CopyStep) -> Iterator[Hit]:
    where = f"{WHERE}:{step.place.line}"
    for source in () if step.origin is not None else step.sources:
        path = posixpath.normpath(source.lstrip("/") or ".")
        parts = path.split("/")
        if parts[0] == "..":
            private = any(part in _PRIVATE_FOLDERS for part in parts)
            code = "dockerfile-copies-private" if private else "dockerfile-leaves-context"
            yield Hit(code, f"{source} lies outside the build context", where)
        elif parts[-1] in _PRIVATE_NAMES:
            yield Hit("dockerfile-copies-private", f"copies {source}", where)
    target = posixpath.normpath(step.target)
    if any(target == private or target.startswith(private + "/") for private in _PRIVATE_TARGETS):
        yield Hit("dockerfile-copies-private", f"copies to {target}", where)


def _instructions(instructions: Sequence[Instruction]) -> Iterator[Hit]:
    for instruction in instructions:
        keyword = ""
        match instruction:
            case Copy(unpack=True):
                keyword = "ADD"
            case Setting() if instruction.keyword not in _ALLOWED_SETTINGS:
                keyword = instruction.keyword
            case Command():
                keyword = instruction.keyword
            case _:
                continue
        yield Hit(
            "dockerfile-instruction",
            f"{keyword} is not part of the format",
            f"{WHERE}:{instruction.place.line}",
        )


def _user(instructions: Sequence[Instruction], recipe: Recipe) -> Iterator[Hit]:
    if recipe.config.user:
        yield Hit(
            "dockerfile-agent-user",
            f"USER stays {recipe.config.user} at the end; verifiers run as root",
            WHERE,
        )
    scripts = (run.script or " ".join(run.argv or ()) for run in instructions if isinstance(run, Run))
    if not any(_ADDS_USER.search(script.replace("\\\n", " ") + "\n") for script in scripts):
        first = next(item for item in instructions if isinstance(item, From))
        yield Hit(
            "dockerfile-agent-user", f"no RUN creates the user {AGENT_USER}", f"{WHERE}:{first.place.line}"
        )
