"""One batch: its folders, ledger, author, gates and elements. Stages get it as their context.

Heavy parts (Harbor, sandboxes, gates) are loaded when a stage first needs them, so that a batch with nothing left to do
is over in a second.
"""

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skill2env import __version__
from skill2env.authors.protocol import Allowance, Author, Limit, identity_for, seconds_of
from skill2env.config import RunConfig
from skill2env.create import SessionNote, create_prompt_digest
from skill2env.errors import Boundary, BudgetReached, InfraError, UserError
from skill2env.parts import Parts
from skill2env.progress import Event, EventKind, Progress
from skill2env.publish.dataset import CARD_NAME, INDEX_NAME, DatasetState, read_state
from skill2env.publish.entry import MANIFEST_NAME, TaskEntry
from skill2env.records import (
    Attempt,
    AttemptStatus,
    AuthorIdentity,
    Phase,
    Severity,
    TaskSpec,
    Usage,
    digest_of,
)
from skill2env.spent import Spent
from skill2env.store import report
from skill2env.store.files import check_writable, storage
from skill2env.store.folders import cache_home
from skill2env.store.ledger import FINISHED, Ledger, content_key
from skill2env.store.run_folder import RunFolder
from skill2env.work import Cancelled, ItemWork, SkillWork

_PAUSE_SEC = 1.0


@dataclass(slots=True)
class Batch:
    """Everything that the stages of one batch share."""

    config: RunConfig
    folder: RunFolder
    dataset: Path
    ledger: Ledger
    run: int
    author: Author
    progress: Progress
    skills: list[SkillWork]
    present: Mapping[str, TaskEntry]
    """Tasks that the dataset holds at the start."""
    items: list[ItemWork] = field(default_factory=list[ItemWork])
    published: DatasetState | None = None
    advice: list[str] = field(default_factory=list[str])
    cancelled: threading.Event = field(default_factory=threading.Event)
    money: threading.Condition = field(default_factory=threading.Condition)
    """Held while money is set aside; told when a session is settled."""
    spent: Spent = field(default_factory=Spent)
    """Where the time of this run goes."""
    parts: Parts = field(init=False)

    def __post_init__(self) -> None:
        self.parts = Parts(
            self.config, self.folder.evidence, self.folder.notices, self.progress, self.cancelled
        )

    # ---------------------------------------------------------------------------------------- running

    def cancel(self, wait: Callable[[], object]) -> None:
        """Stop what runs, and wait for it with `wait`; elements that are under way are left as they are."""
        self.cancelled.set()
        self.parts.cancel(wait)

    def end(self, status: str) -> None:
        """Note how the run ended, and where its time went."""
        parts = {f"author/{what}": sec for what, sec in seconds_of(self.author).items()}
        self.ledger.set_spent(self.run, {**self.spent.seconds, **parts})
        self.ledger.end_run(self.run, status)

    def advise(self, sentence: str) -> None:
        """Keep a sentence for the end of the run."""
        if sentence not in self.advice:
            self.advice.append(sentence)

    def is_fatal(self, error: InfraError) -> bool:
        """Whether every other element would fail the same way: the disk, that is, when trying again cannot help."""
        return error.boundary is Boundary.STORAGE and not error.transient

    def tried[R](self, work: Callable[[], R]) -> R:
        """Do `work`; again, with a pause, when the surroundings failed and trying again can help.

        Raises:
            InfraError: the last failure.
            Cancelled: the batch is being stopped.
        """
        left = self.config.verify.infra_retries
        while True:
            try:
                return work()
            except InfraError as error:
                if self.cancelled.is_set():
                    raise Cancelled from None
                if not error.transient or not left:
                    raise
                self.cancelled.wait(_PAUSE_SEC * (self.config.verify.infra_retries - left + 1))
                left -= 1

    # ---------------------------------------------------------------------------------------- ledger

    def recall(self, stage: str, subject: str, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
        """The finished result for these inputs; tells when an earlier one no longer counts, and why."""
        found = self.ledger.lookup(stage, subject, inputs)
        if found.changed:
            self.progress(Event(EventKind.REDO, f"{stage} {subject}", ", ".join(found.changed)))
        return found.result

    def before_session(self, note: SessionNote, author: AuthorIdentity) -> Allowance | None:
        """What a session may cost; set aside until `note_session` settles it. None where nothing is limited.

        Waits while the money that is left is set aside for sessions under way.

        Raises:
            BudgetReached: everything is spent.
            Cancelled: the batch is being stopped.
        """
        if self.cancelled.is_set():
            raise Cancelled
        if not author.model or not self.config.budget.limited:
            return None
        with self.money:
            while (allowance := self._allowance(note)) is None:
                self.money.wait(1.0)
                if self.cancelled.is_set():
                    raise Cancelled
            if allowance.micro_dollars > 0:
                self.ledger.reserve(
                    note.key,
                    run=self.run,
                    subject=note.subject,
                    phase=note.phase,
                    round_=note.round,
                    author=author,
                    micro_dollars=allowance.micro_dollars,
                )
        return allowance

    def _allowance(self, note: SessionNote) -> Allowance | None:
        """What is left for a session; None to wait for others, nothing when its task has used up what one may cost."""
        budget = self.config.budget
        left, limit = budget.micro_dollars_per_session, Limit.SESSION
        if budget.usd is not None:
            most = round(budget.usd * 1e6)
            # In this order a session that is settled in between counts twice for a moment, and never not at all.
            held = self.ledger.reserved()
            spent = self.spent_micro_dollars()
            if spent >= most:
                raise BudgetReached(
                    f"the budget of ${budget.usd:.2f} is reached: ${spent / 1e6:.4f} are spent",
                    hint="raise --max-usd and run the same command again; finished work is kept",
                )
            free = most - spent - held
            if free <= 0:
                return None
            if free <= left:
                left, limit = free, Limit.RUN
        if budget.usd_per_task is not None and note.phase is not Phase.PLAN:
            used = report.spend(self.ledger, note.subject).micro_dollars
            free = max(0, round(budget.usd_per_task * 1e6) - used)
            if free <= left:
                left, limit = free, Limit.TASK
        return Allowance(left, limit)

    def spent_micro_dollars(self) -> int:
        """What all sessions of the run folder have cost."""
        return report.spend(self.ledger).micro_dollars

    def release(self, key: str) -> None:
        """Give back what was set aside for a session that is not noted."""
        with self.money:
            self.ledger.release(key)
            self.money.notify_all()

    def note_session(self, note: SessionNote, author: AuthorIdentity) -> None:
        """Note a session and its cost; that of one that failed without a bill is unknown if its author has a model."""
        usage = note.usage
        if note.outcome != FINISHED and author.model and usage == Usage():
            usage = usage.model_copy(update={"micro_dollars": None})
        with self.money:
            self.ledger.add_session(
                note.key,
                run=self.run,
                subject=note.subject,
                phase=note.phase,
                round_=note.round,
                author=author,
                usage=usage,
                outcome=note.outcome,
                hosts=note.hosts,
            )
            self.money.notify_all()

    def attempt_key(self, work: SkillWork, spec: TaskSpec) -> str:
        """Content key of an attempt."""
        return content_key("attempt", self.attempt_inputs(work, spec))

    def attempt_inputs(self, work: SkillWork, spec: TaskSpec) -> dict[str, Any]:
        """Everything that determines where an attempt ends."""
        assets = self.config.assets
        return {
            # What is decided about public files; left out where it is the usual, as for most tasks.
            **({"asset_policy": digest_of(self.parts.asset_policy)} if assets.licences else {}),
            **({"asset_hosts": list(assets.hosts)} if assets.hosts else {}),
            "spec": spec.model_dump(mode="json"),
            "author": identity_for(self.author, work.known).model_dump(mode="json"),
            "config": self.config.determining(),
            "prompts": create_prompt_digest(),
            "bases": self.parts.bases,
            "version": __version__,
        }

    def identity(self) -> str:
        """Digest of what this batch was given: skills, settings and author."""
        return digest_of(
            {
                "config": self.config.determining(),
                "author": self.author.identity,
                "skills": sorted(work.skill.digest for work in self.skills if work.skill),
            }
        )

    def close(
        self,
        item: ItemWork,
        status: AttemptStatus,
        *,
        reason: str = "",
        detail: str = "",
        candidate: str = "",
    ) -> Attempt:
        """End an item and make the record of it; the caller keeps it in the ledger (`keep`)."""
        author = identity_for(self.author, item.of.known)
        used = report.spend(self.ledger, item.spec.task_name)
        item.attempt = Attempt(
            key=item.key,
            task_name=item.spec.task_name,
            skill_slug=item.spec.skill_slug,
            skill_digest=item.spec.skill_digest,
            workflow=item.spec.workflow.name,
            axes=item.spec.axes,
            author=author,
            status=status,
            reason=reason,
            detail=detail,
            repairs=item.candidate.repairs if item.candidate else 0,
            usage=Usage(
                model=author.model,
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                cached_tokens=used.cached_tokens,
                micro_dollars=None if used.unpriced else used.micro_dollars,
            ),
            candidate=candidate,
            verdict=item.verdict,
        )
        return item.attempt

    def close_element(self, element: SkillWork | ItemWork) -> None:
        """Keep an ended item in the ledger and tell how the element stands."""
        if isinstance(element, ItemWork) and element.attempt is not None and not element.reused:
            self.ledger.put_attempt(self.run, element.attempt)
        kind = EventKind.REUSED if element.reused else EventKind.DONE
        self.progress(Event(kind, element.label, element.outcome))

    def drop_doubles(self) -> None:
        """Keep one of several skills with the same bytes, the first in canonical order."""
        first: dict[str, SkillWork] = {}
        for work in self.skills:
            digest = work.skill.digest if work.skill else str(work.path)
            if digest in first:
                self.progress(Event(EventKind.NOTE, work.label, f"the same skill as {first[digest].label}"))
            first.setdefault(digest, work)
        self.skills = list(first.values())

    def stands(self, item: ItemWork) -> bool:
        """Whether an item was published and still lies in the dataset as it was, under the terms that hold now."""
        entry = self.present.get(item.spec.task_name)
        skill = item.of.known
        return (
            entry is not None
            and (entry.source, entry.licence) == (skill.origin, skill.licence.spdx)
            and self.ledger.publication(item.key) == (entry.folder, entry.digest)
            and (self.dataset / entry.folder / "task.toml").is_file()
        )

    def elements(self, scope: str) -> Sequence[SkillWork | ItemWork]:
        """What stages of a scope work on, in canonical order."""
        return self.skills if scope == "skill" else self.items

    def relative(self, path: Path) -> str:
        """A path of the run folder as the ledger keeps it."""
        return path.relative_to(self.folder.path).as_posix()


@contextmanager
def open_batch(
    paths: Sequence[Path], *, out: Path, run: Path, config: RunConfig, progress: Progress
) -> Generator[Batch]:
    """Find the skills, take the folders and begin a run.

    Raises:
        UserError: no skill is found, the folders lie inside each other, or the author cannot be had.
        InfraError: boundary ``storage``; a folder cannot be written to or is in use.
    """
    from skill2env.ingest import find_skills
    from skill2env.ingest.text import printable

    out, run = out.absolute(), run.absolute()
    found: dict[Path, SkillWork] = {}
    for path in paths:
        discovery = find_skills(path)
        for folder in discovery.folders:
            found.setdefault(folder.resolve(), SkillWork(folder, printable(folder.resolve().name)))
        for diagnostic in discovery.diagnostics:
            if diagnostic.severity is not Severity.INFO:
                progress(Event(EventKind.NOTE, printable(str(path / diagnostic.where)), diagnostic.message))
    author = _make_author(config)
    _check_folders(out, run)
    folder = RunFolder(run)
    with folder.locked(), Ledger.open(folder.ledger) as ledger:
        number = ledger.begin_run(
            config=config.model_dump(mode="json"),
            config_digest=config.digest(),
            author=author.identity,
            dataset=out,
            version=__version__,
        )
        lost = ledger.settle_lost()
        if lost:
            progress(
                Event(EventKind.NOTE, "budget", f"{lost} sessions were lost to a kill and count as paid")
            )
        yield Batch(
            config=config,
            folder=folder,
            dataset=out,
            ledger=ledger,
            run=number,
            author=author,
            progress=progress,
            skills=[found[path] for path in sorted(found)],
            present={entry.name: entry for entry in read_state(out).entries},
        )


def _check_folders(out: Path, run: Path) -> None:
    if out == run or out in run.parents or run in out.parents:
        raise UserError(
            f"the dataset {out} and the run folder {run} lie inside each other",
            hint="give two folders beside each other with --out and --run",
        )
    if (out / CARD_NAME).exists() and not ((out / MANIFEST_NAME).exists() or (out / INDEX_NAME).exists()):
        raise UserError(
            f"{out} is no dataset folder, and its {CARD_NAME} would be overwritten",
            hint="give a new folder, or one that holds a dataset, with --out",
        )
    try:
        f"{out}{run}".encode()
    except UnicodeEncodeError:
        raise UserError(
            f"the name of {out} or {run} is not UTF-8", hint="give others with --out and --run"
        ) from None
    with storage("preparing the folder", out.parent):
        out.parent.mkdir(parents=True, exist_ok=True)
    check_writable(out if out.exists() else out.parent)


def _make_author(config: RunConfig) -> Author:
    from skill2env.authors.registry import AuthorSettings, make_author

    settings = AuthorSettings(
        model=config.author.model,
        recordings=config.author.recordings,
        accept_stale=config.author.accept_stale,
        record_to=config.author.record_to,
        cache=cache_home() / "authors",
        api=config.author.api,
        api_base=config.author.api_base,
        key_variable=config.author.key_variable,
        prices=config.author.prices,
        limited=config.budget.limited,
        sandbox=config.sandbox.kind,
        network=config.author.network,
        hosts=config.author.hosts,
        timeout_sec=config.author.timeout_sec,
        requests_at_once=config.author.requests_at_once,
        agent_dockerfile=config.author.agent_dockerfile,
        options=config.author.options,
    )
    return make_author(config.author.name, settings)
