"""Is a dataset folder what its own index says? Every problem is a sentence; nothing is mended here."""

from pathlib import Path

from skill2env.errors import UserError
from skill2env.publish.dataset import CARD_NAME, INDEX_NAME, DatasetState, index_is_whole, require_state
from skill2env.publish.entry import MANIFEST_NAME
from skill2env.publish.notices import FOLDER_NAME
from skill2env.store.files import TEMPORARY_PREFIX

_INDEXES = {MANIFEST_NAME, CARD_NAME, INDEX_NAME, FOLDER_NAME}


def problems(dataset: Path) -> list[str]:
    """What is wrong with a dataset folder, sorted: digests, missing and unlisted folders, doubles, index files.

    Raises:
        UserError: it is not a dataset folder, or an index file cannot be read.
    """
    state = require_state(dataset)
    found = [f"{name}: changed or missing since it was published" for name in changed_tasks(dataset, state)]
    folders = [entry.folder for entry in state.entries]
    for name in sorted({folder for folder in folders if folders.count(folder) > 1}):
        found.append(f"{name}: listed twice in {MANIFEST_NAME}")
    if state.digests != {entry.name: entry.digest for entry in state.entries}:
        found.append(f"{MANIFEST_NAME} and {INDEX_NAME} list different tasks or digests")
    if not index_is_whole(dataset, state):
        found.append(f"{MANIFEST_NAME} or {CARD_NAME} differs from the digest in {INDEX_NAME}")
    known = {*folders, *_INDEXES}
    for path in sorted(dataset.iterdir()):
        if path.name in known or path.name == ".git":
            continue
        why = (
            "left by an interrupted publish"
            if path.name.startswith(TEMPORARY_PREFIX)
            else "not in the manifest"
        )
        found.append(f"{path.name}: {why}")
    for entry in state.entries:
        if not (dataset / FOLDER_NAME / entry.notices).is_dir():
            found.append(f"{entry.name}: the notices of its skill are missing")
        if any(not (dataset / FOLDER_NAME / name).is_dir() for name in entry.assets):
            found.append(f"{entry.name}: the notices of a public file in it are missing")
    return sorted(found)


def changed_tasks(dataset: Path, state: DatasetState) -> tuple[str, ...]:
    """Names of the tasks that are missing or differ from the digest in dataset.toml, sorted."""
    from skill2env.harbor import dataset as harbor

    folders = [(entry.name, entry.folder) for entry in state.entries]
    return harbor.changed_tasks(dataset, harbor.read_dataset_toml(dataset), folders)


def check_tasks(dataset: Path, state: DatasetState) -> None:
    """Check every task folder against the digest that the dataset pins.

    Raises:
        UserError: names the tasks that differ or are missing.
    """
    changed = changed_tasks(dataset, state)
    if changed:
        raise UserError(
            f"{len(changed)} task(s) of {dataset.name} differ from {INDEX_NAME}: {', '.join(changed[:5])}",
            hint="compile again to restore them, or drop them",
        )
