"""Accepted candidates -> task folders of a dataset: staged, finished, moved into place one by one, then committed.

A kill at any moment leaves whole task folders and the old index, or the new one; the next publish of the same
candidates ends in the same bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from skill2env.harbor.likeness import Portrait, portrait_of, quick_twins
from skill2env.publish.dataset import DatasetState, commit, locked, read_state
from skill2env.publish.entry import TaskEntry, make_entry
from skill2env.publish.notices import (
    FOLDER_NAME,
    asset_folder,
    notice_folder,
    write_asset_notice,
    write_notices,
)
from skill2env.publish.takedown import blocking
from skill2env.records import Candidate, Reason, Skill, Verdict, digest_bytes, digest_of
from skill2env.store.files import copy_tree, move_into_place, staged_folder, write_text

_UNCOUNTED = "task.toml"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A candidate that passed every gate, and what its manifest line needs."""

    attempt_key: str
    candidate: Candidate
    """`path` is where the folder really lies."""
    verdict: Verdict
    skill: Skill
    skill_dir: Path
    notices: Sequence[tuple[str, Path]] = ()
    """Notice files around the skill, with the names to keep them under."""
    asset_texts: Mapping[str, Path] = field(default_factory=dict[str, Path])
    """Digest -> licence text of public files that the task holds."""


@dataclass(frozen=True, slots=True)
class Published:
    """Where a candidate went."""

    attempt_key: str
    folder: str = ""
    """Name of the task's folder; empty when it was refused."""
    digest: str = ""
    """Harbor's digest of the published folder."""
    refused: Reason | None = None
    """``duplicate`` or ``taken_down``."""
    detail: str = ""


def publish(
    accepted: Sequence[Accepted],
    dataset: Path,
    *,
    name: str,
    description: str,
    task_toml: Callable[[Accepted], str],
    identity: str,
    ended: Mapping[str, int],
    near_duplicates: bool = False,
) -> tuple[DatasetState, list[Published]]:
    """Add candidates to a dataset, replacing tasks of the same name.

    Args:
        accepted: in any order; they are published sorted by task name, so that the result does not depend on it.
        dataset: the folder; made when absent.
        name: of the dataset when it is new.
        description: of the dataset when it is new.
        task_toml: renders the final task.toml with the gate results.
        identity: digest of what this compile was given; a compile with the same identity replaces its yield.
        ended: ``status:reason`` -> attempts of this compile that ended elsewhere, for the card.
        near_duplicates: let candidates join that nearly equal a task of the dataset.

    Returns:
        The state of the dataset afterwards and one `Published` per candidate, in order of task name.

    Raises:
        InfraError: boundary ``storage``; the same call again goes on.
        UserError: the dataset's index files are damaged.
    """
    ordered = sorted(accepted, key=lambda item: item.candidate.spec.task_name)
    with locked(dataset):
        before = read_state(dataset, name=name, description=description)
        entries = {entry.name: entry for entry in before.entries}
        standing = None if near_duplicates else _Standing(dataset)
        outcomes: list[Published] = []
        for item in ordered:
            outcome, entry = _place(item, dataset, entries, standing, before.taken_down, task_toml)
            outcomes.append(outcome)
            if entry is not None:
                entries[entry.name] = entry
        counts = _tally(ended, outcomes)
        yields = {**before.yields, identity: counts} if counts else before.yields
        return commit(dataset, before, entries.values(), yields=yields), outcomes


def _place(
    item: Accepted,
    dataset: Path,
    entries: Mapping[str, TaskEntry],
    standing: "_Standing | None",
    taken_down: Sequence[str],
    task_toml: Callable[[Accepted], str],
) -> tuple[Published, TaskEntry | None]:
    """Put one candidate where it belongs, or say why it may not join."""
    candidate = item.candidate
    name = candidate.spec.task_name
    content = content_digest(candidate.path)
    twin = next((e for e in entries.values() if e.content == content and e.name != name), None)
    if twin is not None:
        return _refuse(item, Reason.DUPLICATE, f"the same files as {twin.name}"), None
    if standing is not None and (name not in entries or entries[name].content != content):
        near = standing.twin_of(candidate.path, [e for e in entries.values() if e.name != name])
        if near:
            return _refuse(item, Reason.DUPLICATE, near), None
    folder = _folder_name(name, entries)
    with staged_folder(dataset) as staged:
        copy_tree(candidate.path, staged)
        write_text(staged / _UNCOUNTED, task_toml(item))
        entry = make_entry(
            candidate, item.verdict, item.skill, folder=folder, digest=_harbor_digest(staged), content=content
        )
        blocker = blocking(entry, taken_down)
        if blocker:
            return _refuse(item, Reason.TAKEN_DOWN, f"matches the take-down {blocker}"), None
        if entries.get(name) != entry or not _is_intact(dataset / folder, entry):
            staged.chmod(0o755)
            move_into_place(staged, dataset / folder)
    _keep_notices(item, dataset)
    return Published(item.attempt_key, folder=folder, digest=entry.digest), entry


class _Standing:
    """What the tasks of the dataset look like, read when something new is compared with them."""

    def __init__(self, dataset: Path) -> None:
        self._dataset = dataset
        self._portraits: dict[str, Portrait] = {}

    def twin_of(self, candidate: Path, entries: Sequence[TaskEntry]) -> str:
        """A sentence that names the task of which a candidate is a near-duplicate; empty when there is none."""
        mine = portrait_of(candidate)
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.digest not in self._portraits:
                self._portraits[entry.digest] = portrait_of(self._dataset / entry.folder, entry.name)
            found = quick_twins(self._portraits[entry.digest], mine)
            if found is not None:
                return f"a near-duplicate of {entry.name}: {found.score:.0%} alike"
        return ""


def _refuse(item: Accepted, reason: Reason, detail: str) -> Published:
    return Published(item.attempt_key, refused=reason, detail=detail)


def _harbor_digest(folder: Path) -> str:
    from skill2env.harbor.digest import task_digest

    return task_digest(folder)


def _is_intact(folder: Path, entry: TaskEntry) -> bool:
    return folder.is_dir() and _harbor_digest(folder) == entry.digest


def content_digest(task: Path) -> str:
    """Digest of every regular file of a task but task.toml, whose metadata differs from dataset to dataset."""
    listed = {
        path.relative_to(task).as_posix(): digest_bytes(path.read_bytes())
        for path in sorted(task.rglob("*"))
        if path.is_file() and not path.is_symlink() and path != task / _UNCOUNTED
    }
    return digest_of(listed)


def _folder_name(name: str, entries: Mapping[str, TaskEntry]) -> str:
    """The slug, or ``organisation--slug`` when another task has that folder."""
    known = entries.get(name)
    if known is not None:
        return known.folder
    slug = name.rsplit("/", maxsplit=1)[-1]
    taken = {entry.folder for entry in entries.values()} | {FOLDER_NAME}
    return name.replace("/", "--") if slug in taken else slug


def _keep_notices(item: Accepted, dataset: Path) -> None:
    """Write the notices of a skill; left alone when they are there and say the same."""
    _keep(
        dataset / FOLDER_NAME / notice_folder(item.skill),
        lambda staged: write_notices(item.skill, item.skill_dir, staged, item.notices),
    )
    for asset in item.candidate.assets:
        text = item.asset_texts.get(asset.notice)
        _keep(dataset / FOLDER_NAME / asset_folder(asset.sha256), partial(write_asset_notice, asset, text))


def _keep(target: Path, write: Callable[[Path], None]) -> None:
    with staged_folder(target.parent) as staged:
        write(staged)
        if target.is_dir() and _contents(target) == _contents(staged):
            return
        staged.chmod(0o755)
        move_into_place(staged, target)


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def _tally(ended: Mapping[str, int], outcomes: Sequence[Published]) -> dict[str, int]:
    counts = {label: count for label, count in ended.items() if count}
    for outcome in outcomes:
        label = f"rejected:{outcome.refused}" if outcome.refused else "published"
        counts[label] = counts.get(label, 0) + 1
    return counts
