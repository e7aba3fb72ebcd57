"""The stage: contract session, checks, seal, solution session, repairs. See the package and `create.freeze`.

Everything happens below `work_dir`::

    contract-0/files/   what the contract session left, as collected
    task/               the candidate; the only folder that checks see
    sealed/             the host's own copy of the sealed files
    solution-0/files/   what the solution session left, as collected; repair-1/ ... likewise

A killed call leaves nothing that a later one would take: it starts over, and finished sessions come from the cache.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from skill2env.authors.protocol import Author, identity_for, mends_contract
from skill2env.authors.staging import lay_out
from skill2env.authors.workspace import DEFAULT_LIMITS, CollectLimits, TakenFile, path_problem
from skill2env.config import SolutionMode
from skill2env.create.cache import NO_CACHE, PhaseCache
from skill2env.create.contract import DOCKERFILE, SKIP_FILE, choose, pin_base, read_contract
from skill2env.create.ends import raise_if_infra, stop_if_refused, stop_if_skipped
from skill2env.create.freeze import SOLUTION_FOLDER, TASK_TOML, Seal, compare, scan, seal
from skill2env.create.host import Grounded, Host
from skill2env.create.outcome import CreateRejected, Stop, rejected
from skill2env.create.prompting import (
    bounded,
    contract_prompt,
    create_prompt_digest,
    mend_prompt,
    repair_prompt,
    solution_prompt,
)
from skill2env.create.sessions import Desk, Given, Session
from skill2env.errors import Boundary, UserError, boundary
from skill2env.records import (
    Candidate,
    GateResult,
    Phase,
    Reason,
    Skill,
    Skipped,
    SkipReason,
    TaskContract,
    TaskSpec,
    Verdict,
    VerdictStatus,
)

type CreateOutcome = Candidate | Skipped | CreateRejected

SOLVE = "solution/solve.sh"

CONTRACT_FAULTS = frozenset(
    {
        Reason.BUILD_FAILED,
        Reason.PIN_MISMATCH,
        Reason.PRIVATE_LEAK,
        Reason.DOCKERFILE_RULE,
        Reason.CONTRACT_INVALID,
        Reason.METRIC_UNSOURCED,
        Reason.RUBRIC_INVALID,
        Reason.NOP_FAILED,
        Reason.NOP_REWARDED,
        Reason.FREEZE_BROKEN,
        Reason.DUPLICATE,
        Reason.AUTHOR_CREDENTIAL,
    }
)
"""Rejections after the seal that no change to the solution can mend. All others are taken for the solution's fault."""


NOT_MENDED = frozenset({Reason.UNSAFE_FILE, Reason.TOO_LARGE, Reason.FREEZE_BROKEN, Reason.AUTHOR_CREDENTIAL})
"""Rejections before the seal for which the author gets no second chance: they are no slips."""


def create(
    spec: TaskSpec,
    skill: Skill,
    skill_dir: Path,
    author: Author,
    host: Host,
    *,
    work_dir: Path,
    solution: SolutionMode = SolutionMode.INFORMED,
    max_repairs: int = 2,
    max_mends: int = 2,
    cache: PhaseCache = NO_CACHE,
    limits: CollectLimits = DEFAULT_LIMITS,
) -> CreateOutcome:
    """Make the candidate of one TaskSpec.

    Args:
        spec: what to make.
        skill: the source, as ingested.
        skill_dir: its folder.
        author: who writes.
        host: checks, renderers and the ledger.
        work_dir: a folder of this attempt's own. Emptied first; the candidate lies in ``work_dir/task`` afterwards.
        solution: whether the solution sessions see tests/, the rubric and the verifier's output.
        max_repairs: rounds after a failing reference solution.
        max_mends: rounds after a contract that the checks turn away, before the seal.
        cache: finished sessions of earlier calls.
        limits: how much one session may hand in.

    Returns:
        The candidate, the author's skip, or the rejection. All three are final.

    Raises:
        InfraError: sandbox, author or disk failed; run again.
        BudgetReached: from `host.before_session`.
    """
    with boundary(Boundary.STORAGE, f"preparing {work_dir}"):
        if work_dir.exists():
            shutil.rmtree(work_dir)
        work_dir.mkdir(parents=True)
    informed = solution is SolutionMode.INFORMED
    desk = Desk(spec, skill, skill_dir, author, host, cache, work_dir, informed, limits)
    job = _Job(desk, max_repairs, max_mends)
    try:
        return job.run()
    except Stop as stop:
        return job.complete(stop.outcome)


@dataclass(slots=True)
class _Job:
    """One run of the stage; keeps what a rejection should say."""

    desk: Desk
    max_repairs: int
    max_mends: int
    contract: TaskContract | None = None
    seal: Seal | None = None
    gates: tuple[GateResult, ...] = ()
    repairs: int = 0
    base: str = ""
    grounded: Grounded | None = None

    @property
    def task(self) -> Path:
        return self.desk.work_dir / "task"

    def run(self) -> Candidate:
        contract = self._contract()
        self.seal = seal(self.task, self.desk.work_dir / "sealed")
        self.desk.host.record_seal(self.desk.spec.task_name, self.seal.digest, self.seal.ledger_lines())
        self._solution(contract, self.seal)
        return Candidate(
            path=self.task,
            spec=self.desk.spec,
            contract=contract,
            author=identity_for(self.desk.author, self.desk.skill),
            prompt_digest=create_prompt_digest(),
            freeze_digest=self.seal.digest,
            base_image=self.base,
            repairs=self.repairs,
            assets=self.grounded.assets if self.grounded else (),
            grounding=next(iter(self.grounded.verdict.gates), None) if self.grounded else None,
            hosts=self.desk.reached(),
        )

    def complete(self, outcome: CreateRejected | Skipped) -> CreateRejected | Skipped:
        """Add to a rejection what is known at this point."""
        if isinstance(outcome, Skipped):
            return outcome
        return outcome.model_copy(
            update={
                "path": self.task if self.task.is_dir() else None,
                "contract": self.contract,
                "freeze_digest": self.seal.digest if self.seal else "",
                "gates": outcome.gates or self.gates,
                "repairs": self.repairs,
            }
        )

    # ------------------------------------------------------------------------------------------ contract

    def _contract(self) -> TaskContract:
        """The contract session, the checks, and mending sessions until they pass or the rounds are used up."""
        desk = self.desk
        prompt = contract_prompt(desk.spec, desk.host.bases, desk.limits)
        given = Given(Phase.CONTRACT, prompt, {}, desk.work_dir)
        failed: Stop | None = None
        while True:
            session = desk.run(given)
            if failed is not None and session.result.reply.skipped is not None:
                raise failed
            try:
                return self._checked_contract(session)
            except Stop as stop:
                failed = Stop(self.complete(stop.outcome))
                following = self._mending(session, failed, given.round + 1)
                if following is None:
                    raise failed from None
                given = following

    def _mending(self, session: Session, failed: Stop, number: int) -> Given | None:
        """What the next mending session is given; None when there is to be none."""
        outcome, desk = failed.outcome, self.desk
        if (
            isinstance(outcome, Skipped)
            or outcome.reason in NOT_MENDED
            or number > self.max_mends
            or not mends_contract(desk.author, desk.skill, desk.spec, number)
        ):
            return None
        prompt = mend_prompt(desk.spec, outcome, rounds=(number, self.max_mends))
        return Given(Phase.CONTRACT, prompt, session.result.files, session.files, number, outcome.message)

    def _checked_contract(self, session: Session) -> TaskContract:
        """Take the session's files and check them."""
        self.contract, self.gates = None, ()
        with boundary(Boundary.STORAGE, f"clearing {self.task}"):
            shutil.rmtree(self.task, ignore_errors=True)
        contract = self._taken_contract(session)
        self.contract = contract
        grounded = self.desk.host.ground(self.task, contract)
        self._check(grounded.verdict, "what it rests on")
        self.grounded = grounded
        self._check(self.desk.host.check_contract(self.task, contract), "the contract")
        return contract

    def _taken_contract(self, session: Session) -> TaskContract:
        """Build the task folder from a contract session."""
        desk = self.desk
        stop_if_skipped(session, SKIP_FILE)
        stop_if_refused(session.result)
        files, _ = choose(session.result.files)
        if not files:
            raise Stop(
                Skipped(
                    reason=SkipReason.AUTHOR_GAVE_UP, detail="the contract session wrote no file of a task"
                )
            )
        lay_out(files, session.files, self.task)
        contract = read_contract(session.files)
        self._pin(files)
        try:
            text = desk.host.render_task_toml(desk.spec, contract, desk.skill)
        except UserError as error:
            raise rejected(Reason.CONTRACT_INVALID, error.message) from None
        _write(self.task / TASK_TOML, text)
        return contract

    def _pin(self, files: dict[str, TakenFile]) -> None:
        if DOCKERFILE not in files:
            raise rejected(Reason.MALFORMED, f"{DOCKERFILE} is missing")
        try:
            text = (self.task / DOCKERFILE).read_bytes().decode()
        except UnicodeDecodeError:
            raise rejected(Reason.DOCKERFILE_RULE, f"{DOCKERFILE} is not UTF-8 text") from None
        pinned = pin_base(text, self.desk.host.base_image, tuple(self.desk.host.bases))
        self.base = pinned.name
        _write(self.task / DOCKERFILE, pinned.text)

    def _check(self, verdict: Verdict, what: str) -> None:
        """Go on only with an accepted verdict."""
        self.gates = verdict.gates
        raise_if_infra(verdict)
        if verdict.status is VerdictStatus.REJECTED:
            assert verdict.reason is not None
            raise rejected(verdict.reason, verdict.message or f"{what} is rejected")

    # ------------------------------------------------------------------------------------------ solution

    def _solution(self, contract: TaskContract, sealed: Seal) -> None:
        """Solution session, then Oracle and repairs until it passes or the rounds are used up."""
        desk = self.desk
        shown = self._shown(sealed)
        prompt = solution_prompt(contract, informed=desk.informed)
        session = desk.run(Given(Phase.SOLUTION, prompt, shown, sealed.store))
        stop_if_skipped(session, f"{SOLUTION_FOLDER}/{SKIP_FILE}")
        self._install(session, shown, sealed)
        while (verdict := self._oracle(contract, sealed)).status is VerdictStatus.REJECTED:
            if verdict.reason in CONTRACT_FAULTS:
                self._check(verdict, "the task")
            if self.repairs == self.max_repairs:
                raise rejected(
                    Reason.SOLUTION_EXHAUSTED,
                    f"after {self.repairs} repairs the reference solution still fails: {verdict.message}",
                )
            self._repair(contract, sealed, verdict)

    def _repair(self, contract: TaskContract, sealed: Seal, verdict: Verdict) -> None:
        """One repair session, given the failing solution and what the verifier said."""
        desk = self.desk
        self.repairs += 1
        feedback = bounded(desk.host.solution_feedback(verdict, desk.informed))
        shown = self._shown(sealed)
        present = self._failing_solution()
        rounds = (self.repairs, self.max_repairs)
        prompt = repair_prompt(contract, verdict, informed=desk.informed, rounds=rounds)
        # Sealed and solution files come from one folder: the task's own, which was restored before the Oracle.
        sealed.restore(self.task)
        given = Given(Phase.REPAIR, prompt, shown | present, self.task, self.repairs, feedback)
        session = desk.run(given)
        if session.result.reply.skipped is not None:
            raise rejected(
                Reason.SOLUTION_EXHAUSTED,
                f"no repair ({session.result.reply.skipped.detail}); the reference solution fails: {verdict.message}",
            )
        self._install(session, shown, sealed)

    def _shown(self, sealed: Seal) -> dict[str, TakenFile]:
        """What solution sessions see: never task.toml, which quotes what is graded; tests/ only when informed."""
        hidden = (TASK_TOML,) if self.desk.informed else (TASK_TOML, "tests/")
        return {path: taken for path, taken in sealed.files.items() if not path.startswith(hidden)}

    def _failing_solution(self) -> dict[str, TakenFile]:
        return {
            path: taken for path, taken in scan(self.task).items() if path.startswith(f"{SOLUTION_FOLDER}/")
        }

    def _install(self, session: Session, shown: dict[str, TakenFile], sealed: Seal) -> None:
        """Prove that the session kept to solution/, and take only that."""
        result = session.result
        outside = [item for item in result.refusals if _is_sealed_place(item.path)]
        # A session whose own transport refused its files hands in none, which says nothing about the sealed ones.
        changes = () if result.reply.refused else compare(shown, result.files).lines()
        lines = (*changes, *(f"refused {item.message}" for item in outside))
        sealed.restore(self.task)
        # With other refusals the list of files is incomplete, and what it lacks need not have been deleted.
        if outside or (lines and not result.refusals):
            raise rejected(
                Reason.FREEZE_BROKEN,
                f"a session tried to change the sealed contract: {lines[0]}"
                + (f" and {len(lines) - 1} more" if len(lines) > 1 else ""),
                details=lines,
            )
        stop_if_refused(result)
        with boundary(Boundary.STORAGE, "replacing the solution"):
            shutil.rmtree(self.task / SOLUTION_FOLDER, ignore_errors=True)
        own = {path: taken for path, taken in result.files.items() if path.startswith(f"{SOLUTION_FOLDER}/")}
        lay_out(own, session.files, self.task)

    def _oracle(self, contract: TaskContract, sealed: Seal) -> Verdict:
        """Judge the installed solution against the restored contract."""
        sealed.restore(self.task)
        if not (self.task / SOLVE).is_file():
            return Verdict(
                status=VerdictStatus.REJECTED, reason=Reason.ORACLE_ERROR, message=f"{SOLVE} is missing"
            )
        verdict = self.desk.host.check_solution(self.task, contract)
        self.gates = verdict.gates
        raise_if_infra(verdict)
        sealed.restore(self.task)
        return verdict


def _is_sealed_place(path: str) -> bool:
    """Whether a refused entry lies in the task, outside ``solution/``; a path that is none is only unsafe."""
    return path == "." or (not path.startswith(f"{SOLUTION_FOLDER}/") and not path_problem(path))


def _write(path: Path, text: str) -> None:
    with boundary(Boundary.STORAGE, f"writing {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        path.chmod(0o644)
