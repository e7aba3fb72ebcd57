from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from skill2env.authors.demo import first_sentence, workflows
from skill2env.create import Host, SessionNote
from skill2env.create.freeze import scan
from skill2env.diversify import SpecRequest, sample_batch
from skill2env.records import (
    FileKind,
    GateOutcome,
    GateResult,
    Phase,
    Reason,
    Skill,
    SkillFile,
    TaskContract,
    TaskSpec,
    Verdict,
    VerdictStatus,
    digest_bytes,
    digest_of,
)

REFERENCE = "registry.example/skill2env/debian-bookworm@sha256:" + "ab" * 32
ACCEPTED = Verdict(status=VerdictStatus.ACCEPTED)


def rejected(reason: Reason, message: str = "no", **values: float) -> Verdict:
    gate = GateResult(gate="oracle", outcome=GateOutcome.REJECTED, reason=reason, values=dict(values))
    return Verdict(status=VerdictStatus.REJECTED, reason=reason, message=message, gates=(gate,))


@dataclass
class Bench:
    """A host whose checks are scripted and which writes down everything it is asked."""

    contract_verdicts: list[Verdict] = field(default_factory=list)
    solution_verdicts: list[Verdict] = field(default_factory=list)
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """(check, path -> digest of the task folder at that moment)."""
    seals: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    notes: list[SessionNote] = field(default_factory=list)
    asked: list[Phase] = field(default_factory=list)
    feedback: str = "x is 0"
    before: Callable[[Phase], None] | None = None

    def host(self) -> Host:
        return Host(
            check_contract=lambda path, contract: self._check("contract", path, self.contract_verdicts),
            check_solution=lambda path, contract: self._check("solution", path, self.solution_verdicts),
            solution_feedback=lambda verdict, informed: (
                f"{self.feedback} ({'informed' if informed else 'blind'})"
            ),
            render_task_toml=self._toml,
            base_image={"debian-bookworm": REFERENCE}.get,
            bases=("debian-bookworm",),
            record_seal=self._seal,
            note_session=self.notes.append,
            before_session=self._before,
        )

    def _check(self, name: str, path: Path, verdicts: list[Verdict]) -> Verdict:
        self.seen.append((name, {file: taken.digest for file, taken in scan(path).items()}))
        return verdicts.pop(0) if verdicts else ACCEPTED

    def _toml(self, spec: TaskSpec, contract: TaskContract, skill: Skill) -> str:
        return f'title = "{contract.title}"\nname = "{spec.task_name}"\n'

    def _seal(self, task: str, digest: str, files: Mapping[str, str]) -> None:
        self.seals.append((task, digest, dict(files)))

    def _before(self, phase: Phase) -> None:
        self.asked.append(phase)
        if self.before:
            self.before(phase)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def skill_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "skill"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "# Closing a month\nResolve every cancellation before anything is added up.\n"
    )
    (folder / "scripts/add.py").write_text("print(1)\n")
    return folder


@pytest.fixture
def skill(skill_dir: Path) -> Skill:
    files = tuple(
        SkillFile(path=path, kind=FileKind.TEXT, size=len(data), sha256=digest_bytes(data))
        for path in ("SKILL.md", "scripts/add.py")
        for data in [(skill_dir / path).read_bytes()]
    )
    body = (skill_dir / "SKILL.md").read_text()
    return Skill(
        name="closing",
        slug="closing",
        description="Close a month.",
        body=body,
        files=files,
        digest=digest_of(body),
    )


@pytest.fixture
def spec(skill: Skill) -> TaskSpec:
    assert first_sentence(skill)
    return sample_batch([SpecRequest(skill, workflows(skill)[0])], run_seed=1)[0]
