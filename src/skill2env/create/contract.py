"""What the contract session handed in: choose the files, read contract.json, pin the base image."""

import json
import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from skill2env.authors.workspace import TakenFile, path_problem
from skill2env.create.outcome import rejected
from skill2env.records import SHA256_PREFIX, Reason, Skipped, SkipReason, TaskContract
from skill2env.sandbox.dockerfile import parse
from skill2env.sandbox.instructions import BuildFailed, From

CONTRACT_FILE = "contract.json"
SKIP_FILE = "skip.json"
DOCKERFILE = "environment/Dockerfile"
MAX_JSON_BYTES = 256 * 1024

_TOP_FILES = frozenset({"instruction.md"})
_TOP_FOLDERS = ("environment/", "tests/")
_REWARD = "reward"
_RESERVED = frozenset({DOCKERFILE, "tests/test.sh", "tests/rubric.md"})


def choose(files: Mapping[str, TakenFile]) -> tuple[dict[str, TakenFile], tuple[str, ...]]:
    """Split a contract session's files into those of the task, and those that the host leaves behind.

    A solution or a task.toml that the session wrote as well is left behind: both are made later, by somebody else.
    """
    kept = {
        path: taken for path, taken in files.items() if path in _TOP_FILES or path.startswith(_TOP_FOLDERS)
    }
    return kept, tuple(sorted(files.keys() - kept.keys() - {CONTRACT_FILE}))


def read_skip(folder: Path, path: str) -> Skipped | None:
    """The skip that an author wrote as a file, or None. An unreadable one counts as giving up, since it is meant."""
    data = _read(folder / path)
    if data is None:
        return None
    try:
        return Skipped.model_validate(json.loads(data))
    except (ValidationError, ValueError, RecursionError):
        text = data.decode("utf-8", "replace")
        return Skipped(reason=SkipReason.AUTHOR_GAVE_UP, detail=" ".join(text.split())[:200])


def read_contract(folder: Path) -> TaskContract:
    """Parse contract.json.

    Raises:
        Stop: it is missing or breaks its schema, or names a metric twice, a reserved metric or an impossible path.
    """
    data = _read(folder / CONTRACT_FILE)
    if data is None:
        raise rejected(
            Reason.CONTRACT_INVALID, f"{CONTRACT_FILE} is missing or larger than {MAX_JSON_BYTES} bytes"
        )
    try:
        contract = TaskContract.model_validate_json(data)
    except ValidationError as error:
        lines = tuple(f"{_where(item['loc'])}: {item['msg']}" for item in error.errors(include_url=False))
        raise rejected(Reason.CONTRACT_INVALID, f"{CONTRACT_FILE}: {lines[0]}", details=lines) from None
    problems = tuple(_problems(contract))
    if problems:
        raise rejected(Reason.CONTRACT_INVALID, f"{CONTRACT_FILE}: {problems[0]}", details=problems)
    return contract


def _where(loc: tuple[Any, ...]) -> str:
    return ".".join(str(step) for step in loc) or "(whole file)"


def _problems(contract: TaskContract) -> list[str]:
    names = [metric.name for metric in contract.metrics]
    found = [f"metrics: {name} is named twice" for name in sorted({n for n in names if names.count(n) > 1})]
    if _REWARD in names:
        found.append("metrics: reward is the mean of the others and cannot be a metric")
    for path in contract.artifacts:
        clean = posixpath.normpath(path)
        if not path.startswith("/") or clean != path.rstrip("/") or clean == "/" or not path.isprintable():
            found.append(f"artifacts: {path!r} is not a plain absolute path")
        elif clean == "/logs" or clean.startswith("/logs/"):
            found.append(f"artifacts: {path!r} lies below /logs")
    return found + _asset_problems(contract)


def _asset_problems(contract: TaskContract) -> list[str]:
    """What is wrong with where public files are to lie."""
    found: list[str] = []
    places: set[str] = set()
    for asset in contract.assets:
        if asset.paths and not asset.url:
            found.append(f"assets: {asset.what!r} has paths and no url")
        for path in asset.paths:
            folder, _, rest = path.partition("/")
            if path_problem(path) or not rest or folder not in {"environment", "tests"}:
                found.append(f"assets: {path!r} is no path below environment/ or tests/")
            elif path in _RESERVED or path in places:
                found.append(f"assets: {path!r} is the place of another file")
            places.add(path)
    return found


def _read(path: Path) -> bytes | None:
    """A collected file's bytes; None when it is missing or too large."""
    if not path.is_file() or path.stat().st_size > MAX_JSON_BYTES:
        return None
    return path.read_bytes()


@dataclass(frozen=True, slots=True)
class PinnedBase:
    """A Dockerfile whose base is named by digest."""

    text: str
    name: str
    """``NAME@sha256:...`` of the base."""


def pin_base(text: str, resolve: Callable[[str], str | None], known: tuple[str, ...]) -> PinnedBase:
    """Replace the catalog name after FROM by its reference; every other byte stays.

    Args:
        text: the author's Dockerfile.
        resolve: catalog name -> reference with a digest.
        known: names of the catalog, for the message.

    Raises:
        Stop: the Dockerfile cannot be read, or names something else than a catalog base.
    """
    try:
        bases = [item for item in parse(text) if isinstance(item, From)]
    except BuildFailed as failure:
        raise rejected(Reason.DOCKERFILE_RULE, f"{DOCKERFILE}: {failure.message}") from None
    if len(bases) != 1:
        raise rejected(Reason.DOCKERFILE_RULE, f"{DOCKERFILE}: {len(bases)} FROM instructions, not one")
    name = bases[0].reference
    reference = resolve(name)
    if reference is None:
        raise rejected(
            Reason.DOCKERFILE_RULE,
            f"{DOCKERFILE}: FROM {name} is not a name of the catalog ({', '.join(known)}); the host pins it",
        )
    lines = text.split("\n")
    first = bases[0].place.line - 1
    pinned = "\n".join(lines[first:]).replace(name, reference, 1)
    digest = reference.rpartition("@")[2]
    assert digest.startswith(SHA256_PREFIX), "the catalog's references carry a digest"
    return PinnedBase(text="\n".join([*lines[:first], pinned]), name=f"{name}@{digest}")
