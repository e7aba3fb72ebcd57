"""An author that is an agent: each session is one Harbor trial in a sandbox of its own.

`AgentAuthor` drives the built-in agent or any that Harbor knows, unchanged. The agent never sees the host, another
skill or, when it runs on the host, a key. What it leaves is collected defensively, and only when it said that it was
done.
"""

import math
import shutil
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skill2env import __version__
from skill2env.authors.agent_task import DONE, PLAN_FILE, WORKSPACE, Room, stage_task
from skill2env.authors.protocol import (
    Allowance,
    AllowanceSpent,
    AuthorFailed,
    CreateReply,
    CreateRequest,
    Message,
    PlanReply,
    PlanRequest,
)
from skill2env.authors.staging import lay_out, read_inside, stage_source
from skill2env.authors.workspace import CollectLimits, collect
from skill2env.errors import Boundary, InfraError, boundary
from skill2env.harbor.limits import Timeouts
from skill2env.harbor.outcome import TrialOutcome
from skill2env.harbor.sandboxes import SandboxChoice
from skill2env.harbor.session import AgentReport, Failed, artifact_failed, read_report, usage_so_far
from skill2env.harbor.trial import run_trial
from skill2env.llm.dialogue import TokenUsage
from skill2env.llm.prices import PriceTable
from skill2env.llm.throttle import Throttle
from skill2env.records import AuthorIdentity, Skill, Skipped, SkipReason, TaskSpec, Usage, digest_of
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.scratch import Corner

BUILTIN = "builtin"
HARBOR_PREFIX = "harbor:"
_COLLECT = CollectLimits(max_files=4000, max_total_bytes=128 * 2**20)
"""The workspace holds what the session was given as well; the stage applies the limits on what it may add."""
_MAX_PLAN_BYTES = 4 * 2**20
_BOUNDARIES = {
    "provider": Boundary.PROVIDER,
    "window": Boundary.PROVIDER,
    "machine": Boundary.SANDBOX,
    "agent": Boundary.AUTHOR,
}
_ENDS = {"declined": "declined", "length": "wrote more than the model can write or read"}


@dataclass(frozen=True)
class AgentAuthor:
    """Plans and creates with an agent."""

    name: str
    """``builtin`` or ``harbor:NAME``."""
    agent: str
    """As ``run_trial`` takes it: a name of Harbor's, or an import path."""
    model: str
    sandbox: Callable[[], SandboxChoice]
    """Where sessions run; called once per session."""
    base: Callable[[], str]
    """Reference of the image that sessions work in."""
    base_url: str = ""
    """Address of the endpoint, for agents whose connection Harbor resolves."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of the agent; everything in it that determines output is part of the identity."""
    silent: frozenset[str] = frozenset()
    """Names of `options` that never change what is written: addresses, retries, prices."""
    room: Room = Room()  # noqa: RUF009  # frozen
    determines: Mapping[str, str] = field(default_factory=dict[str, str])
    """What else determines output: the image that sessions work in, the agent's own."""
    prices: PriceTable = field(default_factory=PriceTable)
    throttle: Throttle | None = None
    """Limits sessions at once; None where the agent limits its requests itself."""
    held: Callable[[], Mapping[str, str]] = dict
    """What `keys` answers."""

    @property
    def identity(self) -> AuthorIdentity:
        """Who writes. Models are not deterministic: equal identities mean equal instructions, and sessions are kept."""
        determining = {key: value for key, value in self.options.items() if key not in self.silent}
        return AuthorIdentity(
            name=self.name,
            model=self.model,
            version=__version__,
            digest=digest_of(
                {
                    "options": determining,
                    "network": self.room.network,
                    "hosts": list(self.room.hosts),
                    "timeout_sec": self.room.timeout_sec,
                    "determines": dict(self.determines),
                }
            ),
        )

    def plan(self, request: PlanRequest) -> PlanReply:
        """See `Author.plan`.

        Raises:
            AuthorFailed: the provider, the sandbox or the agent program failed.
        """
        with _scratch() as scratch:
            workspace = scratch / "workspace"
            stage_source(request.skill, request.skill_dir, workspace / "source")
            outcome, report, usage = self._session(
                scratch, workspace, request.prompt, request.allowance, plan=True
            )
            said = _messages(report)
            skipped = self._ended(outcome, report, usage)
            text = "" if skipped else _plan_text(outcome, report)
        return PlanReply(text=text, skipped=skipped, usage=usage, messages=said, hosts=report.hosts)

    def create(self, request: CreateRequest) -> CreateReply:
        """See `Author.create`; the workspace's ``task/`` is replaced by what the session left.

        Raises:
            AuthorFailed: as for `plan`.
        """
        with _scratch() as scratch:
            outcome, report, usage = self._session(
                scratch, request.workspace, request.prompt, request.allowance, plan=False
            )
            skipped = self._ended(outcome, report, usage)
            if skipped is not None:
                said = _messages(report)
                return CreateReply(skipped=skipped, usage=usage, messages=said, hosts=report.hosts)
            taken = collect(_delivered(outcome), scratch / "taken", _COLLECT)
            if not taken.refusals:
                target = request.workspace / "task"
                with boundary(Boundary.STORAGE, f"replacing {target}"):
                    shutil.rmtree(target)
                lay_out(taken.files, scratch / "taken", target)
        refused = taken.refusals[0] if taken.refusals else None
        return CreateReply(refused=refused, usage=usage, messages=_messages(report), hosts=report.hosts)

    def keys(self) -> Mapping[str, str]:
        """See `HoldsKeys.keys`."""
        return self.held()

    def mends_contract(self, skill: Skill, spec: TaskSpec, number: int) -> bool:  # noqa: ARG002
        """Always: an agent reads what was found."""
        return True

    def _session(
        self, scratch: Path, workspace: Path, prompt: str, allowance: Allowance | None, *, plan: bool
    ) -> tuple[TrialOutcome, AgentReport, Usage]:
        task, trials = scratch / "session", scratch / "trials"
        stage_task(task, workspace, prompt=prompt, base=self.base(), room=self.room, plan=plan)
        options = dict(self.options)
        if allowance is not None and self.name == BUILTIN:
            options["max_usd"] = allowance.micro_dollars / 1e6
        try:
            outcome = self._run(
                task,
                self.agent,
                environment=self.sandbox(),
                trials_dir=trials,
                timeouts=Timeouts(agent_sec=self.room.timeout_sec),
                agent_kwargs=options,
                model=self.model,
                base_url=self.base_url,
            )
        except InfraError as error:
            counted, told = usage_so_far(trials)
            used = self._bill(TokenUsage(*counted), told, 0)
            raise AuthorFailed(
                error.boundary, error.message, usage=used, transient=error.transient, hint=error.hint
            ) from error
        report = read_report(outcome)
        tokens = TokenUsage(report.input_tokens, report.output_tokens, report.cached_tokens)
        used = self._bill(tokens, report.cost_usd, report.turns)
        return outcome, report, used.model_copy(update={"estimated": report.estimated})

    def _run(self, *arguments: Any, **settings: Any) -> TrialOutcome:
        with self.throttle.held() if self.throttle else nullcontext():
            return run_trial(*arguments, **settings)

    def _bill(self, tokens: TokenUsage, told_usd: float | None, turns: int) -> Usage:
        """Cost by the price table, else as the agent says; one that says 0 for tokens that it used knows none."""
        used = bool(tokens.input or tokens.output)
        price = self.prices.find(self.model)
        cost: int | None = None
        if price is not None and self.name == BUILTIN and told_usd is not None:
            cost = round(told_usd * 1e6)  # by the same prices, request by request
        elif price is not None:
            cost = price.of_sum(tokens, turns)
            if price.long:  # a sum does not tell how many requests were long
                cost = max(cost, math.ceil((told_usd or 0) * 1e6))
        elif told_usd or not used:
            cost = math.ceil((told_usd or 0) * 1e6)
        return Usage(
            model=self.model,
            input_tokens=tokens.input,
            output_tokens=tokens.output,
            cached_tokens=tokens.cached,
            micro_dollars=cost,
            turns=turns,
        )

    def _ended(self, outcome: TrialOutcome, report: AgentReport, usage: Usage) -> Skipped | None:
        """None when there is something to take, a skip when the author failed; raises when others failed."""
        failed = report.failed
        if report.stop == "money":
            raise AllowanceSpent(
                "the session used up what it may cost",
                usage=usage,
                hint="raise --max-usd, --max-usd-per-task or budget.usd_per_session",
            )
        if failed is not None and failed.whose in _BOUNDARIES:
            raise AuthorFailed(
                _BOUNDARIES[failed.whose],
                failed.message,
                usage=usage,
                transient=failed.transient,
                hint=_hint(failed),
            )
        if failed is not None:
            why = _ENDS.get(failed.whose, f"needed more than {self.room.timeout_sec:g} s")
            return Skipped(
                reason=SkipReason.AUTHOR_GAVE_UP, detail=f"the author {why}: {failed.message}"[:500]
            )
        if artifact_failed(outcome, f"{WORKSPACE}/task"):
            raise AuthorFailed(
                Boundary.SANDBOX, "what the session wrote could not be collected", usage=usage, transient=True
            )
        if not _is_done(outcome):
            end = f" ({report.stop})" if report.stop else ""
            return Skipped(
                reason=SkipReason.AUTHOR_GAVE_UP,
                detail=f"the session ended{end} without saying that it was done: {report.summary}"[:500],
            )
        return None


@contextmanager
def _scratch() -> Generator[Path]:
    """A folder of one session, removed with everything in it, however it ends; after a kill by the next process."""
    corner = Corner.make(current_identity())
    try:
        yield corner.path
    finally:
        corner.remove()


def _delivered(outcome: TrialOutcome) -> Path:
    return outcome.artifacts / WORKSPACE.lstrip("/") / "task"


def _is_done(outcome: TrialOutcome) -> bool:
    try:
        mark = read_inside(outcome.artifacts, DONE.lstrip("/"), limit=4096)
    except OSError:
        return False
    return mark[:4] == b"done"


def _plan_text(outcome: TrialOutcome, report: AgentReport) -> str:
    """The answer in its file, else what the agent said last."""
    try:
        data = read_inside(_delivered(outcome), PLAN_FILE, limit=_MAX_PLAN_BYTES)
    except OSError:
        return report.summary
    return data.decode("utf-8", errors="replace")


def _messages(report: AgentReport) -> tuple[Message, ...]:
    return tuple(Message(role=role, text=text) for role, text in report.messages)


def _hint(failed: Failed) -> str:
    if failed.whose == "provider":
        return "check model, key and address (--model, --api-base); finished sessions are kept, run again to go on"
    if failed.whose == "window":
        return "choose a model that can read more; what it can read is author.options.context_tokens"
    if failed.whose == "agent":
        return "try the agent by itself with `harbor run`, or choose another author"
    return ""
