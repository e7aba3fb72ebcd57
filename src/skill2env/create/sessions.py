"""One authoring session: lay out the workspace, ask, take the files, remember the result."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from skill2env.authors.protocol import (
    Allowance,
    AllowanceSpent,
    Author,
    AuthorFailed,
    CreateReply,
    CreateRequest,
    Limit,
    identity_for,
)
from skill2env.authors.staging import lay_out, stage_source
from skill2env.authors.workspace import DEFAULT_LIMITS, CollectLimits, TakenFile, collect
from skill2env.create.cache import PhaseCache, SessionResult, file_lines
from skill2env.create.host import Host, SessionNote
from skill2env.create.outcome import Stop
from skill2env.errors import Boundary, InfraError, boundary
from skill2env.records import Phase, Skill, TaskSpec, Usage, digest_of


@dataclass(frozen=True, slots=True)
class Given:
    """What a session finds in ``task/``, and what it is told."""

    phase: Phase
    prompt: str
    files: Mapping[str, TakenFile]
    origin: Path
    """Folder that holds the bytes of `files`."""
    round: int = 0
    feedback: str = ""


@dataclass(frozen=True, slots=True)
class Session:
    """A finished session and the folder with what was taken of its files."""

    result: SessionResult
    files: Path


@dataclass(frozen=True, slots=True)
class Desk:
    """Runs the sessions of one TaskSpec."""

    spec: TaskSpec
    skill: Skill
    skill_dir: Path
    author: Author
    host: Host
    cache: PhaseCache
    work_dir: Path
    informed: bool
    limits: CollectLimits = DEFAULT_LIMITS
    hosts: set[str] = field(default_factory=set[str])
    """``HOST:PORT VERDICT`` of what the sessions so far asked for."""

    def reached(self) -> tuple[str, ...]:
        """``HOST:PORT`` that the sessions so far reached, sorted."""
        return tuple(sorted({line.partition(" ")[0] for line in self.hosts if line.endswith(" allowed")}))

    def run(self, given: Given) -> Session:
        """Take the session from the cache, or hold it and keep it there.

        Raises:
            InfraError: the author or the disk failed; noted, never cached.
            BudgetReached: the run's money is spent, before this session or by it.
            Stop: this task's money is.
        """
        key = self._key(given)
        folder = self.work_dir / f"{given.phase.value}-{given.round}"
        cached = self.cache.get(key, folder / "files")
        note = SessionNote(key, self.spec.task_name, given.phase, given.round, Usage(), cached is not None)
        if cached is not None:
            self.hosts.update(cached.reply.hosts)
            self.host.note_session(replace(note, usage=cached.reply.usage, hosts=cached.reply.hosts))
            return Session(cached, folder / "files")
        allowance = self.host.before_session(note)
        if allowance is not None and allowance.micro_dollars <= 0:
            raise Stop(allowance.exceeded("before this session"))
        result = self._paid(given, folder, note, allowance)
        return Session(result, folder / "files")

    def _paid(
        self, given: Given, folder: Path, note: SessionNote, allowance: Allowance | None
    ) -> SessionResult:
        """Hold a session and keep it; whatever happens, what it cost is noted or what was set aside is given back."""
        used, hosts = note.usage, note.hosts
        try:
            with boundary(Boundary.STORAGE, f"clearing {folder}"):
                if folder.exists():
                    shutil.rmtree(folder)
            reply, workspace = self._hold(given, folder, allowance)
            used, hosts = reply.usage, reply.hosts
            self.hosts.update(hosts)
            result = self._take(reply, workspace, folder / "files", self._limits(given))
            shutil.rmtree(workspace, ignore_errors=True)
            self.cache.put(note.key, result, folder / "files")
        except InfraError as error:
            used = error.usage if isinstance(error, AuthorFailed) else used
            self.host.note_session(replace(note, usage=used, outcome=error.boundary.value))
            raise
        except AllowanceSpent as spent:
            self.host.note_session(replace(note, usage=spent.usage, outcome="budget"))
            if allowance is not None and allowance.limit is not Limit.RUN:
                raise Stop(allowance.exceeded(f"in its {given.phase.value} session")) from spent
            raise
        except Exception:
            self.host.release(note.key)
            raise
        self.host.note_session(replace(note, usage=used, hosts=hosts))
        return result

    def _key(self, given: Given) -> str:
        return digest_of(
            {
                "author": identity_for(self.author, self.skill),
                "spec": self.spec,
                "phase": given.phase,
                "round": given.round,
                "prompt": given.prompt,
                "feedback": given.feedback,
                "informed": self.informed,
                "files": file_lines(given.files),
            }
        )

    def _hold(self, given: Given, folder: Path, allowance: Allowance | None) -> tuple[CreateReply, Path]:
        """Lay out the workspace and ask; gives the reply and the workspace."""
        workspace = folder / "workspace"
        stage_source(self.skill, self.skill_dir, workspace / "source")
        lay_out(given.files, given.origin, workspace / "task")
        if given.phase is not Phase.CONTRACT:
            (workspace / "task" / "solution").mkdir(exist_ok=True)
        if given.phase is Phase.REPAIR:
            (workspace / "feedback").mkdir()
            (workspace / "feedback" / "verifier.txt").write_text(given.feedback, encoding="utf-8")
        reply = self.author.create(
            CreateRequest(
                spec=self.spec,
                skill=self.skill,
                skill_dir=self.skill_dir,
                phase=given.phase,
                workspace=workspace,
                prompt=given.prompt,
                round=given.round,
                feedback=given.feedback,
                allowance=allowance,
                informed=self.informed,
            )
        )
        return reply, workspace

    def _limits(self, given: Given) -> CollectLimits:
        """What the session was given does not count against what it may hand in."""
        if not given.files:
            return self.limits
        return replace(
            self.limits, max_files=2 * self.limits.max_files, max_total_bytes=2 * self.limits.max_total_bytes
        )

    def _take(
        self, reply: CreateReply, workspace: Path, target: Path, limits: CollectLimits
    ) -> SessionResult:
        """Collect the files, unless the reply says that there is nothing to take."""
        if reply.skipped is not None:
            return SessionResult(reply=reply)
        if reply.refused is not None:
            return SessionResult(reply=reply, refusals=(reply.refused,))
        taken = collect(workspace / "task", target, limits)
        return SessionResult(reply=reply, refusals=taken.refusals, lines=file_lines(taken.files))
