"""A `Host` whose checks are scripted: lets anybody try an author, or the stage, without a sandbox. Used by tests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from skill2env.authors.protocol import Allowance
from skill2env.create.freeze import scan
from skill2env.create.host import Host, SessionNote
from skill2env.records import (
    GateOutcome,
    GateResult,
    Phase,
    Reason,
    Skill,
    TaskContract,
    TaskSpec,
    Verdict,
    VerdictStatus,
)

FAKE_REFERENCE = "registry.example/skill2env/debian-bookworm@sha256:" + "ab" * 32
"""What the fake host writes after FROM."""


def rejecting(reason: Reason, message: str = "no", **values: float) -> Verdict:
    """A rejected verdict with one gate that reports `values`."""
    gate = GateResult(gate="oracle", outcome=GateOutcome.REJECTED, reason=reason, values=dict(values))
    return Verdict(status=VerdictStatus.REJECTED, reason=reason, message=message, gates=(gate,))


@dataclass
class FakeHost:
    """Answers checks from lists, accepting when they are empty, and writes down what it is asked."""

    contract_verdicts: list[Verdict] = field(default_factory=list[Verdict])
    solution_verdicts: list[Verdict] = field(default_factory=list[Verdict])
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list[tuple[str, dict[str, str]]])
    """(check, path -> digest of the task folder at that moment)."""
    seals: list[tuple[str, str, dict[str, str]]] = field(
        default_factory=list[tuple[str, str, dict[str, str]]]
    )
    notes: list[SessionNote] = field(default_factory=list[SessionNote])
    asked: list[Phase] = field(default_factory=list[Phase])
    feedback: str = "x is 0"
    released: list[str] = field(default_factory=list[str])
    """Keys of sessions that ended without a note."""
    allowances: list[Allowance | None] = field(default_factory=list[Allowance | None])
    """What the next sessions may cost."""
    before: Callable[[Phase], None] | None = None
    """Called before each session that is not cached; may raise."""

    def host(self) -> Host:
        """The callables for `create`."""
        return Host(
            check_contract=lambda path, _: self._check("contract", path, self.contract_verdicts),
            check_solution=lambda path, _: self._check("solution", path, self.solution_verdicts),
            solution_feedback=lambda _, informed: f"{self.feedback} ({'informed' if informed else 'blind'})",
            render_task_toml=self._toml,
            base_image={"debian-bookworm": FAKE_REFERENCE}.get,
            bases={"debian-bookworm": "shell tools"},
            record_seal=self._seal,
            note_session=self.notes.append,
            before_session=self._before,
            release=self.released.append,
        )

    def _check(self, name: str, path: Path, verdicts: list[Verdict]) -> Verdict:
        self.seen.append((name, {file: taken.digest for file, taken in scan(path).items()}))
        return verdicts.pop(0) if verdicts else Verdict(status=VerdictStatus.ACCEPTED)

    def _toml(self, spec: TaskSpec, contract: TaskContract, _: Skill) -> str:
        return f'title = "{contract.title}"\nname = "{spec.task_name}"\n'

    def _seal(self, task: str, digest: str, files: Mapping[str, str]) -> None:
        self.seals.append((task, digest, dict(files)))

    def _before(self, note: SessionNote) -> Allowance | None:
        self.asked.append(note.phase)
        if self.before:
            self.before(note.phase)
        return self.allowances.pop(0) if self.allowances else None
