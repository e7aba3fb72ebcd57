"""Exchange the base images of a finished task for another binding, and keep the result only when it verifies.

The change is made in a copy beside the task; the task itself is replaced, and the index of its dataset with it, after
every gate has accepted the copy.
"""

import shutil
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from skill2env.create.freeze import freeze_digest
from skill2env.errors import UserError
from skill2env.grounding.ground import GATE as GROUNDING
from skill2env.harbor.task_toml import change_provenance
from skill2env.publish.dataset import INDEX_NAME, DatasetState, commit, locked, require_state
from skill2env.publish.entry import TaskEntry, gate_digests
from skill2env.publish.publish import content_digest
from skill2env.records import Verdict, VerdictStatus
from skill2env.sandbox import bindings, catalog
from skill2env.sandbox.base_registry import resolve
from skill2env.sandbox.bindings import Binding, Named
from skill2env.sandbox.instructions import BuildFailed
from skill2env.sandbox.logins import Login
from skill2env.sandbox.rootfs import ensure_base
from skill2env.store.files import move_into_place, staged_folder, storage, write_text
from skill2env.verify.gate import GateContext
from skill2env.verify.many import profile_of
from skill2env.verify.verify import verify

OURS, PUBLIC = "ours", "public"
_DOCKERFILES = ("environment/Dockerfile", "tests/Dockerfile")
_TASK_TOML = "task.toml"
_BEFORE_THE_SEAL = frozenset({GROUNDING})
"""Gates that are not run again: they looked at where files come from, whatever the base."""

type MakeContext = Callable[[Mapping[str, str]], GateContext]
"""Image map (references that our bases take the place of) -> how gates run."""


@dataclass(slots=True)
class Rebound:
    """What came of it."""

    references: dict[str, str] = field(default_factory=dict[str, str])
    """Reference that was replaced -> reference that stands there now."""
    verdict: Verdict | None = None
    """None when there was nothing to change."""
    stood_in: bool = False
    """The gates ran on our base in place of the image that is named now."""
    written: Path | None = None
    """The changed task; None when nothing was changed or it was not accepted."""


def rebind(
    task: Path,
    to: str,
    *,
    context: MakeContext,
    out: Path | None = None,
    login: Login | None = None,
    progress: Callable[[str], None] | None = None,
) -> Rebound:
    """Rewrite FROM in a task's Dockerfiles, verify the task anew, and keep it when it is accepted.

    Args:
        task: a task directory, alone or in a dataset of ours.
        to: ``ours`` (the bases of this machine), ``public`` (what they are bound to), or any image reference.
        context: called once the new references are known.
        out: where the changed task goes; None replaces the task itself.
        login: for the registry that is asked for digests.
        progress: told a line for each step.

    Raises:
        UserError: it is no task, its base has no such binding, or `out` exists.
        InfraError: a base cannot be built, the registry cannot be reached, or the disk is full.
    """
    texts = _texts(task)
    if out is not None and out.exists():
        raise UserError(f"{out} exists", hint="name a folder that does not exist yet")
    choose = _Chooser(to, login, progress)
    try:
        changed = {name: bindings.rewrite(text, choose) for name, text in texts.items()}
    except BuildFailed as failure:
        raise UserError(f"a Dockerfile of {task} cannot be read: {failure.message}") from None
    result = Rebound({old: new for old, new in choose.references.items() if old != new})
    if changed == texts:
        return result
    with _place(task, out) as (place, state), staged_folder(place.parent) as staged:
        with storage("copying the task", task):
            staged.chmod(0o755)
            shutil.copytree(task, staged, symlinks=True, dirs_exist_ok=True)
        for name, text in changed.items():
            write_text(staged / name, text)
        result.verdict = verify(
            staged,
            profile=profile_of(staged),
            context=context(choose.stand_ins),
            progress=(lambda gate: progress(f"{task.name}: gate {gate}")) if progress else None,
        )
        result.stood_in = any(gate.values.get("stood_in") for gate in result.verdict.gates)
        if result.verdict.status is not VerdictStatus.ACCEPTED:
            return result
        _note(staged, result, choose.run)
        move_into_place(staged, place)
        result.written = place
        if state is not None:
            _update(place, state, result.verdict, choose.run)
    return result


class _Chooser:
    """Decides the new reference of each FROM, and remembers what it decided."""

    def __init__(self, to: str, login: Login | None, progress: Callable[[str], None] | None) -> None:
        self._to, self._login, self._progress = to, login, progress
        self._resolved: dict[str, str] = {}
        self.references: dict[str, str] = {}
        self.stand_ins: dict[str, str] = {}
        """New reference -> base that may run in its place."""
        self.run = ""
        """For the record: catalog name and digest, or the reference, of the first FROM."""

    def __call__(self, named: Named) -> Binding:
        if not named.base:
            raise UserError(
                f"FROM {named.reference} means no base of the catalog",
                hint="`skill2env sandbox bases list` names them; only they have another binding",
            )
        binding = self._choose(named)
        self.references[named.reference] = binding.reference
        return binding

    def _choose(self, named: Named) -> Binding:
        if self._to == OURS:
            base = ensure_base(named.base, progress=self._progress)
            self.run = self.run or f"{base.name}@{base.digest}"
            return Binding(base.reference)
        public = self._to == PUBLIC
        reference = self._pinned(catalog.lookup(named.base).public if public else self._to)
        self.stand_ins[reference] = catalog.DEFAULT_BASE if public else named.base
        self.run = self.run or reference
        return Binding(reference, named.base if public else "")

    def _pinned(self, reference: str) -> str:
        """The reference with a digest; asked for once."""
        if "@" in reference:
            return reference
        if reference not in self._resolved:
            self._resolved[reference] = f"{reference}@{resolve(reference, login=self._login).digest}"
        return self._resolved[reference]


def _texts(task: Path) -> dict[str, str]:
    """The Dockerfiles of a task.

    Raises:
        UserError: there is none that can be read.
    """
    found: dict[str, str] = {}
    for name in _DOCKERFILES:
        path = task / name
        if path.is_symlink() or not path.is_file():
            continue
        try:
            found[name] = path.read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path} cannot be read: {error}") from None
    if not found:
        raise UserError(f"{task} is no task with a Dockerfile", hint="give the folder that holds task.toml")
    return found


@contextmanager
def _place(task: Path, out: Path | None) -> Generator[tuple[Path, DatasetState | None]]:
    """(where the result goes, state of the dataset whose index must follow), with the dataset locked meanwhile."""
    task = task.resolve()
    if out is not None:
        yield out.absolute(), None
    elif (task.parent / INDEX_NAME).is_file():
        with locked(task.parent):
            yield task, require_state(task.parent)
    else:
        yield task, None


def _note(staged: Path, result: Rebound, run: str) -> None:
    """Bring our own provenance up to date; a task of somebody else has none and stays as it is."""
    path = staged / _TASK_TOML
    assert result.verdict is not None
    text = path.read_text(encoding="utf-8")
    changed = change_provenance(
        text,
        base_image=run,
        freeze_digest=freeze_digest(staged),
        gates=result.verdict.gates,
        kept=_BEFORE_THE_SEAL,
    )
    if changed != text:
        write_text(path, changed)


def _update(place: Path, state: DatasetState, verdict: Verdict, run: str) -> None:
    """Let the dataset's manifest, card and version follow."""
    from skill2env.harbor.digest import task_digest

    def follow(entry: TaskEntry) -> TaskEntry:
        if entry.folder != place.name:
            return entry
        return entry.model_copy(
            update={
                "digest": task_digest(place),
                "content": content_digest(place),
                "base_image": run,
                "freeze_digest": freeze_digest(place),
                "gates": {name: found for name, found in entry.gates.items() if name in _BEFORE_THE_SEAL}
                | gate_digests(verdict),
            }
        )

    commit(place.parent, state, [follow(entry) for entry in state.entries])
