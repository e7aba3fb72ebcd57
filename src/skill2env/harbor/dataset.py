"""Harbor's dataset manifest (dataset.toml): names and digests of the tasks of a folder, always the same bytes."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harbor.models.dataset.manifest import DatasetFileRef, DatasetInfo, DatasetManifest, DatasetTaskRef
from harbor.models.task.config import Author

from skill2env.errors import UserError
from skill2env.harbor.digest import task_digest
from skill2env.harbor.toml_text import to_toml

MANIFEST_NAME = "dataset.toml"


@dataclass(frozen=True, slots=True)
class DatasetHeader:
    """What a dataset says about itself."""

    name: str
    """``organisation/name``."""
    version: str
    """Semantic version."""
    description: str = ""
    authors: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Free TOML values below ``[metadata]``."""


@dataclass(frozen=True, slots=True)
class DatasetEntry:
    """One task of a dataset."""

    name: str
    """``organisation/name`` as in the task's own task.toml."""
    digest: str
    """``sha256:`` and 64 hex digits, see `digest.task_digest`."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A manifest, read or to be written."""

    header: DatasetHeader
    tasks: tuple[DatasetEntry, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further files of the dataset (plain names) to their digests."""


def render_dataset_toml(dataset: Dataset) -> str:
    """TOML text of a manifest: tasks sorted by name and digest, files by name, independent of the order given.

    Raises:
        UserError: a name, version or digest does not have the form that Harbor asks for.
    """
    header = dataset.header
    try:
        manifest = DatasetManifest(
            dataset=DatasetInfo(
                name=header.name,
                version=header.version,
                description=header.description,
                authors=[Author(name=author) for author in header.authors],
                keywords=sorted(set(header.keywords)),
            ),
            metadata=dict(header.metadata),
            tasks=[
                DatasetTaskRef(name=entry.name, digest=entry.digest)
                for entry in sorted(dataset.tasks, key=lambda entry: (entry.name, entry.digest))
            ],
            files=[
                DatasetFileRef(path=name, digest=digest) for name, digest in sorted(dataset.files.items())
            ],
        )
    except ValueError as error:
        raise UserError(
            f"dataset.toml cannot be written: {error}", hint="mend the name or the version"
        ) from error
    data = manifest.model_dump(mode="json", exclude_none=True)
    return to_toml({key: data[key] for key in ("dataset", "tasks", "files", "metadata")})


def read_dataset_toml(path: Path) -> Dataset:
    """Read a manifest.

    Args:
        path: the dataset.toml itself, or the folder that holds it.

    Raises:
        UserError: it is missing, is not TOML, or breaks Harbor's schema.
    """
    file = path / MANIFEST_NAME if path.is_dir() else path
    try:
        manifest = DatasetManifest.from_toml(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(
            f"no dataset manifest: {file}", hint="give the folder of a published dataset"
        ) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValueError) as error:
        raise UserError(
            f"{file} is not a dataset manifest: {error}", hint="publish the dataset again"
        ) from error
    info = manifest.dataset
    return Dataset(
        header=DatasetHeader(
            name=info.name,
            version=info.version or "",
            description=info.description,
            authors=tuple(author.name for author in info.authors),
            keywords=tuple(info.keywords),
            metadata=manifest.metadata,
        ),
        tasks=tuple(DatasetEntry(name=task.name, digest=task.digest) for task in manifest.tasks),
        files={item.path: item.digest for item in manifest.files},
    )


def changed_tasks(folder: Path, dataset: Dataset, folders: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Names of the tasks whose files no longer have the digest that the manifest names, sorted.

    Args:
        folder: the dataset folder.
        dataset: its manifest.
        folders: pairs of task name and sub-folder; a listed task without a folder that can be read counts
            as changed.
    """
    where = dict(folders)
    return tuple(
        sorted(
            entry.name
            for entry in dataset.tasks
            if entry.name not in where
            or not (folder / where[entry.name]).is_dir()
            or _digest_if_readable(folder / where[entry.name]) != entry.digest
        )
    )


def _digest_if_readable(task_dir: Path) -> str:
    try:
        return task_digest(task_dir)
    except OSError:
        return ""
