"""Verdicts of earlier runs, kept by everything that they depend on, so that an unchanged task is judged at once.

The key covers the task's content, the source text of everything that judges, level, profile and options, the sandbox
with its options and bases, and the machine's kind. A verdict that the surroundings prevented is never kept. What a
registry or the package mirror serves is not covered: a scheduled verification goes without the cache.
"""

import hashlib
import json
import os
import platform
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import skill2env
from skill2env.errors import InfraError
from skill2env.records import Record, Verdict, VerdictStatus, digest_bytes, digest_of
from skill2env.sandbox.base_store import recipe_digest
from skill2env.sandbox.catalog import CATALOG
from skill2env.sandbox.identity import current_identity
from skill2env.store.files import write_text
from skill2env.verify.exhibits import Exhibits
from skill2env.verify.gate import GateContext, Level
from skill2env.verify.rules import Profile

_JUDGES = ("verify", "harbor", "sandbox", "records.py", "similarity.py")
_SIZE_LIMIT = 512 * 2**20
_CHUNK = 2**20


class Kept(Record):
    """A verdict and what a reader is shown of its evidence."""

    verdict: Verdict
    exhibits: Exhibits = Exhibits()


@cache
def gates_version() -> str:
    """Digest of the source text of the gates and of all that they run in."""
    root = Path(skill2env.__file__).parent
    files = {
        path.relative_to(root).as_posix(): digest_bytes(path.read_bytes())
        for place in _JUDGES
        for path in ([root / place] if place.endswith(".py") else sorted((root / place).rglob("*.py")))
        if "report" not in path.relative_to(root).parts
    }
    return digest_of(files)


def content_of(task_dir: Path) -> str:
    """Digest of every entry of a task with its kind and right to be executed; empty when it cannot be had.

    That is so for what cannot be read, and for tasks of more than 512 MiB.
    """
    total, lines = 0, list[tuple[str, ...]]()
    try:
        for path, status in _entries(task_dir):
            name = os.fsdecode(os.path.relpath(path, task_dir))
            if stat.S_ISLNK(status.st_mode):
                lines.append((name, "link", str(path.readlink())))
            elif stat.S_ISREG(status.st_mode):
                total += status.st_size
                if total > _SIZE_LIMIT:
                    return ""
                lines.append((name, oct(status.st_mode & 0o111), _sha(path)))
            else:
                lines.append((name, oct(stat.S_IFMT(status.st_mode))))
    except OSError:
        return ""
    return digest_bytes(json.dumps(sorted(lines)).encode())


def _entries(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for entry in os.scandir(folder):
        status = entry.stat(follow_symlinks=False)
        yield Path(entry.path), status
        if stat.S_ISDIR(status.st_mode):
            yield from _entries(Path(entry.path))


def _sha(path: Path) -> str:
    digest = hashlib.sha256()
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def surroundings_of(context: GateContext) -> dict[str, Any]:
    """What a verdict depends on beside the task: sandbox, bases, options, machine."""
    sandbox = context.sandbox
    return {
        "sandbox": [sandbox.name, sandbox.import_path, sorted(sandbox.kwargs.items())],
        "bases": {name: recipe_digest(name) for name in sorted(CATALOG)},
        "images": sorted(context.image_map.items()),
        "network": context.network,
        "repeats": context.oracle_repeats,
        "today": context.today.isoformat() if context.today else "",
        "timeouts": repr(context.timeouts),
        "rights": current_identity().tier.value,
        "machine": platform.machine(),
    }


class VerdictCache:
    """A folder of verdicts. Several processes and threads may use it at once: a file is there whole or not at all."""

    def __init__(self, folder: Path, context: GateContext, level: Level, *, every: bool) -> None:
        """Open it for one kind of run; nothing is made before something is stored.

        Args:
            folder: where the files lie.
            context: how gates run.
            level: see `verify`.
            every: whether all gates run after a rejection.
        """
        self._folder = folder
        self._run = {
            "gates": gates_version(),
            "surroundings": surroundings_of(context),
            "level": level.value,
            "every": every,
        }

    def key(self, content: str, profile: Profile) -> str:
        """What a verdict is kept under; empty when it cannot be kept."""
        return digest_of({**self._run, "content": content, "profile": profile.value}) if content else ""

    def recall(self, key: str) -> Kept | None:
        """An earlier verdict, which counts as used now; None when there is none, or it cannot be read."""
        if not key:
            return None
        path = self._path(key)
        try:
            kept = Kept.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return None
        with suppress(OSError):
            os.utime(path)
        return kept

    def store(self, key: str, kept: Kept) -> None:
        """Keep a verdict, unless it is none; a full or read-only disk costs the next run its time and no more."""
        if not key or kept.verdict.status is VerdictStatus.INFRA:
            return
        path = self._path(key)
        with suppress(OSError, InfraError, ValueError):  # ValueError: text that no encoding takes
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, kept.model_dump_json())

    def _path(self, key: str) -> Path:
        name = key.removeprefix("sha256:")
        return self._folder / name[:2] / f"{name}.json"
