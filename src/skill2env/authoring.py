"""Create and verify, wired: what create is handed (checks, renderers, the ledger), and where candidates end up.

A check of a candidate is remembered by the candidate's bytes. So a run that goes on after a kill sees the same words of
the same verifier, asks for the same repair session, and finds it finished.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skill2env import __version__
from skill2env.authors.protocol import identity_for, keys_of
from skill2env.create import CreateRejected, FolderCache, Host, create
from skill2env.create.freeze import scan
from skill2env.credentials import credential_found
from skill2env.records import (
    Candidate,
    Skipped,
    TaskContract,
    Verdict,
    VerdictStatus,
    canonical_json,
    digest_of,
)
from skill2env.sandbox.catalog import lookup
from skill2env.store.files import move_into_place
from skill2env.verify.gate import GateContext, Level
from skill2env.verify.rules import Profile
from skill2env.verify.verify import check_contract, check_solution, solution_feedback, verify
from skill2env.wiring import Batch
from skill2env.work import Cancelled, ItemWork

type Check = Callable[[Path, TaskContract, GateContext], Verdict]


def create_candidate(batch: Batch, item: ItemWork) -> Candidate | Skipped | CreateRejected:
    """Make the candidate of an item and put it into the run folder, also when create rejects it.

    Raises:
        InfraError: the surroundings failed, also after trying again.
        Cancelled: the batch is being stopped.
    """
    work = batch.folder.work / item.place
    skill = item.of.known
    outcome = batch.tried(
        lambda: create(
            item.spec,
            skill,
            item.of.path,
            batch.author,
            _host(batch, item),
            work_dir=work,
            solution=batch.config.create.solution,
            max_repairs=batch.config.create.max_repairs,
            max_mends=batch.config.create.max_mends,
            cache=FolderCache(batch.folder.sessions),
        )
    )
    if isinstance(outcome, Skipped) or outcome.path is None:
        return outcome
    place = batch.folder.candidates / item.place
    move_into_place(outcome.path, place)
    return outcome.model_copy(update={"path": place})


def judge(batch: Batch, item: ItemWork) -> Verdict:
    """Run every gate on a candidate; final verdicts are remembered.

    Raises:
        InfraError: the candidate cannot be read.
        Cancelled: the batch is being stopped.
    """
    candidate = item.candidate
    assert candidate is not None
    leaked = _leaked(batch, item, candidate.path, candidate.contract)
    if leaked is not None:
        return leaked
    inputs = _check_inputs(batch, candidate.path, candidate.contract) | {"sandbox": batch.parts.degraded}
    kept = batch.recall("verify", item.subject, inputs)
    if kept is not None:
        return _with_origins(Verdict.model_validate(kept), candidate)
    context = _context(batch, item, "verify")
    level = Level(batch.config.verify.level.value)
    verdict = verify(
        candidate.path, profile=Profile.OURS, context=context, level=level, contract=candidate.contract
    )
    verdict = _located(verdict, batch, context)
    if verdict.status is VerdictStatus.INFRA:
        if batch.cancelled.is_set():
            raise Cancelled
        return verdict
    batch.ledger.store("verify", item.subject, inputs, verdict.model_dump(mode="json"))
    return _with_origins(verdict, candidate)


def _leaked(batch: Batch, item: ItemWork, task_dir: Path, contract: TaskContract) -> Verdict | None:
    """The rejection of a task that holds a key of its author; looked for each time, since keys are not remembered."""
    texts = {"contract.json": canonical_json(contract), "the workflow": canonical_json(item.spec)}
    return credential_found(task_dir, texts, keys_of(batch.author))


def _with_origins(verdict: Verdict, candidate: Candidate) -> Verdict:
    """The verdict with what was found about the origin of the task's files before its seal, if anything."""
    found = candidate.grounding
    if found is None or not (found.findings or found.values):
        return verdict
    return verdict.model_copy(update={"gates": (found, *verdict.gates)})


def _host(batch: Batch, item: ItemWork) -> Host:
    from skill2env.harbor.task_toml import render_task_toml

    solution = _Remembered(batch, item, "check-solution", check_solution)

    author = identity_for(batch.author, item.of.known)
    return Host(
        check_contract=_Remembered(batch, item, "check-contract", check_contract),
        check_solution=solution,
        solution_feedback=solution.feedback,
        render_task_toml=render_task_toml,
        base_image=batch.parts.base_image,
        bases={name: lookup(name).about for name in batch.parts.bases},
        record_seal=batch.ledger.add_freeze,
        note_session=lambda note: batch.note_session(note, author),
        before_session=lambda note: batch.before_session(note, author),
        ground=lambda task, contract: batch.parts.grounder.ground(task, contract, item.of.known),
        release=batch.release,
    )


@dataclass(slots=True)
class _Remembered:
    """A check that is not run twice on the same bytes."""

    batch: Batch
    item: ItemWork
    name: str
    check: Check
    told: tuple[str, str] = ("", "")
    """Feedback about the last verdict, without and with the verifier's own output."""

    def __call__(self, task_dir: Path, contract: TaskContract) -> Verdict:
        leaked = _leaked(self.batch, self.item, task_dir, contract)
        if leaked is not None:
            return leaked
        inputs = _check_inputs(self.batch, task_dir, contract)
        kept = self.batch.ledger.lookup(self.name, self.item.subject, inputs).result
        if kept is not None:
            self.told = (kept["blind"], kept["informed"])
            return Verdict.model_validate(kept["verdict"])
        context = _context(self.batch, self.item, self.name)
        verdict = self.check(task_dir, contract, context)
        if verdict.status is VerdictStatus.INFRA and self.batch.cancelled.is_set():
            raise Cancelled
        self.told = (_blind_feedback(verdict, context), solution_feedback(verdict, context))
        verdict = _located(verdict, self.batch, context)
        if verdict.status is not VerdictStatus.INFRA:
            result = {
                "verdict": verdict.model_dump(mode="json"),
                "blind": self.told[0],
                "informed": self.told[1],
            }
            self.batch.ledger.store(self.name, self.item.subject, inputs, result)
        return verdict

    def feedback(self, _: Verdict, with_verifier: bool) -> str:
        """What a repair session is told about the verdict that was given last."""
        return self.told[1 if with_verifier else 0]


def _check_inputs(batch: Batch, task_dir: Path, contract: TaskContract) -> dict[str, Any]:
    files = {path: taken.line() for path, taken in scan(task_dir).items()}
    return {
        "files": digest_of(files),
        "contract": digest_of(contract),
        "gates": batch.config.determining()["verify"],
        "bases": batch.parts.bases,
        "version": __version__,
    }


def _context(batch: Batch, item: ItemWork, name: str) -> GateContext:
    return replace(batch.parts.gates, evidence=batch.folder.evidence / item.place / name)


def _located(verdict: Verdict, batch: Batch, context: GateContext) -> Verdict:
    """Evidence folders relative to the run folder instead of to the gates' own folder."""
    root = context.evidence.relative_to(batch.folder.path)
    gates = tuple(
        gate.model_copy(update={"evidence": (root / gate.evidence).as_posix()}) if gate.evidence else gate
        for gate in verdict.gates
    )
    return verdict.model_copy(update={"gates": gates})


def _blind_feedback(verdict: Verdict, context: GateContext) -> str:
    """The finding and what the solution itself printed; nothing of the verifier."""
    from skill2env.harbor.outcome import read_tail

    printed = read_tail(context.evidence / "oracle" / "trial" / "agent" / "oracle.txt", 16 * 1024).strip()
    return f"{verdict.message}\n\nsolve.sh printed:\n{printed}" if printed else verdict.message
