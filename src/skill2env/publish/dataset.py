"""A dataset folder as a whole: who holds it, what it says about itself, and how its index files are rewritten.

Layout::

    TASK/...         task folders, immediate children as Harbor wants them
    LICENSES/...     notices of the source skills
    manifest.jsonl   one line a task
    README.md        the card
    dataset.toml     Harbor's manifest; written last, so it is the commit

Everything in it is a function of the tasks and of what earlier compiles and take-downs left in ``dataset.toml``.
"""

import fcntl
import os
import shutil
import tomllib
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.publish.card import render_card
from skill2env.publish.entry import MANIFEST_NAME, TaskEntry, manifest_text, read_manifest
from skill2env.publish.notices import FOLDER_NAME
from skill2env.publish.version import next_version
from skill2env.records import digest_bytes
from skill2env.store.files import check_writable, storage, sweep, write_text

INDEX_NAME = "dataset.toml"
CARD_NAME = "README.md"

type Yield = Mapping[str, int]
"""``status`` or ``status:reason`` -> attempts, of one compile."""


@dataclass(frozen=True, slots=True)
class DatasetState:
    """What a dataset says about itself."""

    name: str
    description: str
    version: str | None = None
    """None until the first commit."""
    entries: tuple[TaskEntry, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict[str, str])
    """Task name -> digest as in ``dataset.toml``."""
    yields: Mapping[str, Yield] = field(default_factory=dict[str, Yield])
    """Identity of a compile -> where its attempts ended."""
    taken_down: tuple[str, ...] = ()
    """Selectors ``kind:value`` that may not come back."""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other index files -> digest as in ``dataset.toml``."""


@contextmanager
def locked(dataset: Path) -> Generator[None]:
    """Hold a dataset folder for this process; it is made when absent and unfinished pieces are swept.

    The lock is on the folder itself, so it leaves no file behind.

    Raises:
        InfraError: boundary ``storage``; another process holds it or it cannot be written to.
    """
    check_writable(dataset)
    descriptor = os.open(dataset, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InfraError(
                Boundary.STORAGE,
                f"another process is changing the dataset {dataset}",
                hint="wait for it and run the same command again; finished work is kept",
            ) from None
        except OSError:
            pass  # a filesystem without locks: the run folder's lock still keeps one run from colliding with itself
        sweep(dataset)
        sweep(dataset / FOLDER_NAME)
        yield
    finally:
        os.close(descriptor)


def read_state(dataset: Path, *, name: str = "", description: str = "") -> DatasetState:
    """Read a dataset folder; `name` and `description` are used when it has no ``dataset.toml`` yet.

    Raises:
        UserError: an index file is damaged or of another kind.
    """
    entries = tuple(read_manifest(dataset))
    path = dataset / INDEX_NAME
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return DatasetState(name=name, description=description, entries=entries)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(
            f"cannot read {path}: {error}", hint="restore it or compile into another --out"
        ) from None
    try:
        about: dict[str, Any] = tree["dataset"]
        ours: dict[str, Any] = tree.get("metadata", {}).get("skill2env", {})
        return DatasetState(
            name=about["name"],
            description=about.get("description", ""),
            version=about.get("version"),
            entries=entries,
            digests={task["name"]: task["digest"] for task in tree.get("tasks", [])},
            yields=ours.get("compiles", {}),
            taken_down=tuple(ours.get("taken_down", [])),
            files={item["path"]: item["digest"] for item in tree.get("files", [])},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path} is not a dataset manifest: {error!r}", hint="compile into another --out"
        ) from None


def require_state(dataset: Path) -> DatasetState:
    """Read a dataset folder that must exist.

    Raises:
        UserError: it is not a dataset of ours.
    """
    if not (dataset / INDEX_NAME).is_file() or not (dataset / MANIFEST_NAME).is_file():
        raise UserError(
            f"{dataset} is not a dataset folder: it needs {INDEX_NAME} and {MANIFEST_NAME}",
            hint="`skill2env compile PATH --out DIR` makes one",
        )
    return read_state(dataset)


def commit(dataset: Path, before: DatasetState, entries: Iterable[TaskEntry], **changes: Any) -> DatasetState:
    """Rewrite the index files for `entries`; with the lock held, after the task folders are in place.

    Args:
        dataset: the folder.
        before: the state to start from.
        entries: all tasks from now on.
        changes: other fields of `DatasetState` to replace (``yields``, ``taken_down``, ``description``).

    Returns:
        The new state.

    Raises:
        InfraError: boundary ``storage``.
    """
    listed = tuple(sorted(entries, key=lambda e: e.name))
    digests = {entry.name: entry.digest for entry in listed}
    after = replace(
        before,
        entries=listed,
        digests=digests,
        version=next_version(before.version, before.digests, digests),
        **changes,
    )
    _prune_notices(dataset, listed)
    if after == before and index_is_whole(dataset, before):
        return before  # nothing to write, and no need to load Harbor
    texts = {MANIFEST_NAME: manifest_text(list(listed)), CARD_NAME: _card(after)}
    after = replace(after, files={name: digest_bytes(text.encode()) for name, text in texts.items()})
    for name, text in (*texts.items(), (INDEX_NAME, _index(after))):
        path = dataset / name
        if not path.is_file() or path.read_bytes() != text.encode():
            write_text(path, text)
    return after


def index_is_whole(dataset: Path, state: DatasetState) -> bool:
    """True when the index files are the ones that the commit names."""
    return bool(state.files) and all(
        (dataset / name).is_file() and digest_bytes((dataset / name).read_bytes()) == digest
        for name, digest in state.files.items()
    )


def _card(state: DatasetState) -> str:
    reasons: Counter[tuple[str, str]] = Counter()
    for counts in state.yields.values():
        for label, count in counts.items():
            status, _, reason = label.partition(":")
            reasons[status, reason] += count
    return render_card(
        name=state.name,
        version=state.version or "",
        description=state.description,
        entries=state.entries,
        reasons=reasons,
        taken_down=state.taken_down,
    )


def _index(state: DatasetState) -> str:
    from skill2env.harbor.dataset import Dataset, DatasetEntry, DatasetHeader, render_dataset_toml

    ours = {
        "compiles": {
            identity: dict(sorted(state.yields[identity].items())) for identity in sorted(state.yields)
        },
        "taken_down": sorted(state.taken_down),
    }
    header = DatasetHeader(
        name=state.name,
        version=state.version or "",
        description=state.description,
        keywords=tuple(_keywords(state.entries)),
        metadata={"skill2env": ours},
    )
    tasks = tuple(DatasetEntry(name=entry.name, digest=entry.digest) for entry in state.entries)
    return render_dataset_toml(Dataset(header=header, tasks=tasks, files=state.files))


def _keywords(entries: Sequence[TaskEntry]) -> list[str]:
    return sorted({"agent-skills", *(entry.domain for entry in entries if entry.domain)})


def _prune_notices(dataset: Path, entries: Sequence[TaskEntry]) -> None:
    """Remove notices of skills that no task derives from any more."""
    folder = dataset / FOLDER_NAME
    if not folder.is_dir():
        return
    wanted = {name for entry in entries for name in (entry.notices, *entry.assets)}
    with storage("removing notices below", folder):
        for path in sorted(folder.iterdir()):
            if path.name not in wanted and path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
        if not any(folder.iterdir()):
            folder.rmdir()
