"""The freeze: what is sealed, whether it still is, and putting it back.

Sealed is every file outside ``solution/``, with its bytes and its executable bit; of task.toml everything but
``[metadata]``, which holds what is learned only afterwards, so that the digest of a published task can be checked
with nothing but the task. A session that changes, removes or adds a file outside ``solution/`` has broken the freeze.
Whatever it did, the host lays the sealed files out anew from its own copy before the next step.

Covers: content, executable bit, file set, damage to the host's own copy. Does not cover: empty folders (the task
format has none), and whoever can write to the run folder itself.
"""

import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skill2env.authors.staging import lay_out
from skill2env.authors.workspace import TOOL_DEBRIS, TakenFile
from skill2env.errors import Boundary, InfraError, boundary
from skill2env.records import digest_bytes, digest_of

SOLUTION_FOLDER = "solution"
TASK_TOML = "task.toml"


@dataclass(frozen=True, slots=True)
class Changes:
    """How a set of files differs from what was handed out, paths sorted."""

    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    def lines(self) -> tuple[str, ...]:
        """One line a file, for people and evidence."""
        named = (("changed", self.changed), ("deleted", self.deleted), ("added", self.added))
        return tuple(f"{verb} {path}" for verb, paths in named for path in paths)


@dataclass(frozen=True, slots=True)
class Seal:
    """A sealed contract and the host's own copy of it."""

    files: dict[str, TakenFile]
    """Path -> file, sorted."""
    digest: str
    store: Path
    """Folder with the sealed bytes. Belongs to the host; never handed out, only copied from."""

    def ledger_lines(self) -> dict[str, str]:
        """Path -> mode and digest, as the ledger keeps them."""
        return sealed_lines(self.files, (self.store / TASK_TOML).read_bytes())

    def restore(self, task_dir: Path) -> None:
        """Make everything in `task_dir` outside ``solution/`` equal to the sealed files, byte for byte.

        Raises:
            InfraError: boundary ``storage``; also when the host's own copy no longer has the sealed digest.
        """
        with boundary(Boundary.STORAGE, f"restoring the sealed files of {task_dir}"):
            if scan(self.store) != self.files:
                raise InfraError(
                    Boundary.STORAGE,
                    f"the sealed copy {self.store} was changed",
                    hint="delete the run's work folder and run again",
                    transient=False,
                )
            task_dir.mkdir(parents=True, exist_ok=True)
            for entry in sorted(task_dir.iterdir()):
                if entry.is_dir() and not entry.is_symlink():
                    if entry.name != SOLUTION_FOLDER:
                        shutil.rmtree(entry)
                else:
                    entry.unlink()
            lay_out(self.files, self.store, task_dir)


def seal(task_dir: Path, store: Path) -> Seal:
    """Seal everything in `task_dir` outside ``solution/`` and keep a copy in the new folder `store`.

    Raises:
        InfraError: boundary ``storage``.
    """
    with boundary(Boundary.STORAGE, f"sealing {task_dir}"):
        files = without_solution(scan(task_dir))
        lay_out(files, task_dir, store)
        digest = _digest(files, (store / TASK_TOML).read_bytes())
        return Seal(files, digest, store)


def freeze_digest(task_dir: Path) -> str:
    """The digest under which `task_dir` would be sealed: equal before and after publishing.

    Raises:
        OSError: task.toml is missing or a file cannot be read.
        tomllib.TOMLDecodeError: task.toml is not TOML.
    """
    return _digest(without_solution(scan(task_dir)), (task_dir / TASK_TOML).read_bytes())


def compare(before: Mapping[str, TakenFile], after: Mapping[str, TakenFile]) -> Changes:
    """What happened to the files outside ``solution/``."""
    old, new = without_solution(before), without_solution(after)
    return Changes(
        changed=tuple(sorted(path for path in old.keys() & new.keys() if old[path] != new[path])),
        deleted=tuple(sorted(old.keys() - new.keys())),
        added=tuple(sorted(new.keys() - old.keys())),
    )


def scan(folder: Path) -> dict[str, TakenFile]:
    """Files of a folder that the host wrote itself, sorted by path. Links are not followed and not listed."""
    found: dict[str, TakenFile] = {}
    for parent, names, files in folder.walk():
        names[:] = [name for name in names if name not in TOOL_DEBRIS]
        for name in files:
            path = parent / name
            if path.is_file() and not path.is_symlink():
                executable = bool(path.stat().st_mode & 0o100)
                found[path.relative_to(folder).as_posix()] = TakenFile(
                    digest_bytes(path.read_bytes()), executable
                )
    return dict(sorted(found.items()))


def without_solution(files: Mapping[str, TakenFile]) -> dict[str, TakenFile]:
    """The files outside ``solution/``. A file that is itself called ``solution`` is outside."""
    return {path: taken for path, taken in files.items() if not path.startswith(f"{SOLUTION_FOLDER}/")}


def sealed_lines(files: Mapping[str, TakenFile], task_toml: bytes) -> dict[str, str]:
    """Path -> ``MODE DIGEST``; of task.toml the digest of its settings without ``[metadata]``."""
    lines = {path: taken.line() for path, taken in sorted(files.items())}
    settings = tomllib.loads(task_toml.decode())
    settings.pop("metadata", None)
    lines[TASK_TOML] = f"{lines[TASK_TOML].partition(' ')[0]} {digest_of(settings)}"
    return lines


def _digest(files: Mapping[str, TakenFile], task_toml: bytes) -> str:
    return digest_of(sealed_lines(files, task_toml))
