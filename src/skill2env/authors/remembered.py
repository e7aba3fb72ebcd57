"""An author whose finished sessions are kept, so that no run pays twice for the same one.

Covers: kill -9 between any two steps (a session counts as finished once its folder has its final name), identical
answers from memory and from the author (what an author left is collected before it is handed on), the budget.
Does not cover: a session that is killed half way; it starts again.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skill2env.authors.protocol import (
    Author,
    CreateReply,
    CreateRequest,
    PlanReply,
    PlanRequest,
    identity_for,
    pinned_axes,
)
from skill2env.authors.workspace import collect
from skill2env.errors import BudgetReached, InfraError
from skill2env.records import AuthorIdentity, Axes, Phase, Skill, Usage, Workflow, digest_bytes, digest_of
from skill2env.store.files import copy_tree, move_into_place, staged_folder, storage, write_bytes
from skill2env.store.ledger import FINISHED, Ledger
from skill2env.store.report import spend

_REPLY = "reply.json"
_TASK = "task"


@dataclass(frozen=True, slots=True)
class Session:
    """One call of an author, as the ledger names it."""

    key: str
    author: AuthorIdentity
    subject: str
    phase: Phase
    round: int = 0


class RememberedAuthor:
    """Wraps an author; equal requests are answered from the run folder."""

    def __init__(
        self,
        author: Author,
        *,
        ledger: Ledger,
        sessions: Path,
        run: int,
        budget_micro_dollars: int | None = None,
    ) -> None:
        """Wrap `author`.

        Args:
            author: who is asked when nothing is remembered.
            ledger: where sessions and their cost are noted.
            sessions: folder of what finished sessions left.
            run: number of the run in the ledger.
            budget_micro_dollars: no further session starts once all sessions of the ledger cost this much.
        """
        self._author = author
        self._ledger = ledger
        self._sessions = sessions
        self._run = run
        self._budget = budget_micro_dollars

    @property
    def identity(self) -> AuthorIdentity:
        """Of the wrapped author."""
        return self._author.identity

    def identity_for(self, skill: Skill) -> AuthorIdentity:
        """Of the wrapped author."""
        return identity_for(self._author, skill)

    def pinned_axes(self, skill: Skill, workflow: Workflow, variant: int) -> Axes | None:
        """Of the wrapped author."""
        return pinned_axes(self._author, skill, workflow, variant)

    def plan(self, request: PlanRequest) -> PlanReply:
        """As the wrapped author, at most once for equal requests.

        Raises:
            InfraError: as the wrapped author, or boundary ``storage``.
            BudgetReached: before a session that may cost.
        """
        inputs: dict[str, Any] = {
            "phase": Phase.PLAN,
            "author": self.identity_for(request.skill),
            "skill": request.skill.digest,
            "count": request.count,
            "seed": request.seed,
            "prompt": digest_bytes(request.prompt.encode()),
        }
        session = Session(digest_of(inputs), inputs["author"], request.skill.slug, Phase.PLAN)
        folder = self._folder(session.key)
        text = self._read(folder)
        if text is None:
            reply = self._ask(lambda: self._author.plan(request), session)
            with staged_folder(self._sessions) as staged:
                write_bytes(staged / _REPLY, reply.model_dump_json().encode())
                move_into_place(staged, folder)
        else:
            reply = PlanReply.model_validate_json(text)
        self._note(session, reply.usage)
        return reply

    def create(self, request: CreateRequest) -> CreateReply:
        """As the wrapped author, at most once for equal requests; the workspace then holds what it left.

        Raises:
            InfraError: as the wrapped author, or boundary ``storage``.
            BudgetReached: before a session that may cost.
        """
        inputs = self._inputs(request)
        session = Session(
            digest_of(inputs), inputs["author"], request.spec.task_name, request.phase, request.round
        )
        folder = self._folder(session.key)
        text = self._read(folder)
        if text is None:
            reply = self._ask(lambda: self._author.create(request), session)
            reply = self._keep(folder, request.workspace / _TASK, reply)
        else:
            reply = CreateReply.model_validate_json(text)
        _hand_on(folder / _TASK, request.workspace / _TASK)
        self._note(session, reply.usage)
        return reply

    def _inputs(self, request: CreateRequest) -> dict[str, Any]:
        """Everything a session is given. What a failing verifier printed is left out: it follows from the files."""
        prompt = request.prompt.replace(request.feedback, "") if request.feedback else request.prompt
        return {
            "phase": request.phase,
            "round": request.round,
            "author": self.identity_for(request.skill),
            "spec": request.spec,
            "skill": request.skill.digest,
            "prompt": digest_bytes(prompt.encode()),
            "informed": request.informed,
            "task": _tree(request.workspace / _TASK),
        }

    def _keep(self, folder: Path, task: Path, reply: CreateReply) -> CreateReply:
        with staged_folder(self._sessions) as staged:
            taken = collect(task, staged / _TASK)
            if taken.refusals and reply.refused is None:
                reply = reply.model_copy(update={"refused": taken.refusals[0]})
            write_bytes(staged / _REPLY, reply.model_dump_json().encode())
            move_into_place(staged, folder)
        return reply

    def _folder(self, key: str) -> Path:
        return self._sessions / key.removeprefix("sha256:")

    @staticmethod
    def _read(folder: Path) -> str | None:
        with storage("reading a session", folder):
            path = folder / _REPLY
            return path.read_text(encoding="utf-8") if path.is_file() else None

    def _ask[R](self, ask: Callable[[], R], session: Session) -> R:
        """Start a session, unless the budget is reached; note what failed ones cost as far as it is known."""
        spent = spend(self._ledger).micro_dollars
        if self._budget is not None and spent >= self._budget:
            raise BudgetReached(
                f"the budget of ${self._budget / 1e6:.2f} is reached: ${spent / 1e6:.4f} are spent",
                hint="raise --budget-usd and run the same command again; finished work is kept",
            )
        try:
            return ask()
        except InfraError as error:
            if session.author.model:
                unknown = Usage(model=session.author.model, micro_dollars=None)
                self._note(session, unknown, outcome=error.boundary.value)
            raise

    def _note(self, session: Session, usage: Usage, outcome: str = FINISHED) -> None:
        self._ledger.add_session(
            session.key,
            run=self._run,
            subject=session.subject,
            phase=session.phase,
            round_=session.round,
            author=session.author,
            usage=usage,
            outcome=outcome,
        )


def _hand_on(kept: Path, task: Path) -> None:
    """Put what was kept where the author would have left it; a first and a later answer end in the same files."""
    with storage("laying out a session", task):
        if task.is_symlink() or task.is_file():
            task.unlink()
        elif task.exists():
            shutil.rmtree(task)
    copy_tree(kept, task)


def _tree(folder: Path) -> dict[str, str]:
    """Path -> mode and digest of the files that the host laid out for a session."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            mode = "0755" if path.stat().st_mode & 0o100 else "0644"
            found[path.relative_to(folder).as_posix()] = f"{mode} {digest_bytes(path.read_bytes())}"
    return found
