"""Small accepted candidates, made on disk, for the publisher."""

from pathlib import Path

import pytest

from skill2env.harbor.task_toml import Provenance, render_task_toml
from skill2env.publish.publish import Accepted, Published, publish
from skill2env.records import (
    AuthorIdentity,
    Axes,
    Candidate,
    FileKind,
    Finding,
    GateOutcome,
    GateResult,
    Licence,
    LicenceEvidence,
    Metric,
    Severity,
    Skill,
    SkillFile,
    TaskContract,
    TaskSpec,
    Verdict,
    VerdictStatus,
    Workflow,
    digest_bytes,
    digest_of,
)

AUTHOR = AuthorIdentity(name="recorded", digest="sha256:aa")
CONTRACT = TaskContract(
    title="Mend the table",
    metrics=(Metric(name="rows", sentence="Keep rows."), Metric(name="sum", sentence="Mend the sum.")),
    artifacts=("/app/out.csv",),
)


class Bench:
    """Makes accepted candidates below one folder and publishes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(
        self,
        slug: str,
        *,
        skill: str = "tables",
        licence: str = "MIT",
        source: str = "",
        domain: str = "data engineering",
        text: str = "",
        organisation: str = "org",
    ) -> Accepted:
        skill_dir = self.folder / "skills" / skill
        skill_dir.mkdir(parents=True, exist_ok=True)
        (skill_dir / "LICENSE.txt").write_text(f"{licence} terms\n")
        known = Skill(
            name=skill,
            slug=skill,
            description="d",
            body="b",
            digest=digest_of(skill),
            origin=source,
            licence=Licence(spdx=licence, evidence=LicenceEvidence.SKILL_FILE, where="LICENSE.txt"),
            files=(SkillFile(path="LICENSE.txt", kind=FileKind.TEXT, size=1, sha256=digest_bytes(b"x")),),
        )
        workflow = Workflow(
            name="mend", summary="s", scenario="s", initial_world="w", planted_problem="p", difficulty_source="d",
            solution_sketch="s", verifier_strategy="v", grounding=("g",), domain=domain,
        )  # fmt: skip
        axes = Axes(
            archetype="repair",
            verifier_pattern="recompute",
            complexity="few",
            persona="p",
            tone="t",
            expertise="e",
        )
        spec = TaskSpec(
            skill_digest=known.digest, skill_slug=skill, workflow=workflow, axes=axes, seed=7, variant=0,
            task_name=f"{organisation}/{slug}",
        )  # fmt: skip
        task = self.folder / "candidates" / organisation / slug
        for name, content in {
            "instruction.md": f"Keep rows. Mend the sum. {text or slug}\n",
            "environment/Dockerfile": "FROM scratch\n",
            "tests/test.sh": "#!/bin/bash\ntrue\n",
            "tests/rubric.md": "## Must-do\n- x\n",
            "solution/solve.sh": "#!/bin/bash\ntrue\n",
        }.items():
            (task / name).parent.mkdir(parents=True, exist_ok=True)
            (task / name).write_text(content)
        (task / "task.toml").write_text(render_task_toml(spec, CONTRACT, known))
        finding = Finding(code="odd", severity=Severity.WARN, message="m")
        gates = (
            GateResult(gate="static", outcome=GateOutcome.PASSED, findings=(finding,), seconds=0.1),
            GateResult(gate="nop", outcome=GateOutcome.PASSED, values={"rows": 0.0, "sum": 0.0}, seconds=0.2),
        )
        return Accepted(
            attempt_key=digest_of((organisation, slug)),
            candidate=Candidate(
                path=task, spec=spec, contract=CONTRACT, author=AUTHOR, freeze_digest="sha256:ff",
                base_image="debian-bookworm@sha256:bb",
            ),
            verdict=Verdict(status=VerdictStatus.ACCEPTED, gates=gates),
            skill=known,
            skill_dir=skill_dir,
        )  # fmt: skip

    @staticmethod
    def final_task_toml(item: Accepted) -> str:
        """As the pipeline does it."""
        provenance = Provenance(AUTHOR, item.candidate.freeze_digest, gates=item.verdict.gates)
        return render_task_toml(item.candidate.spec, item.candidate.contract, item.skill, provenance)

    def put(
        self,
        dataset: Path,
        *items: Accepted,
        identity: str = "sha256:run",
        ended: dict[str, int] | None = None,
    ) -> list[Published]:
        """Publish with the usual settings."""
        _, outcomes = publish(
            items,
            dataset,
            name="org/data",
            description="Some tasks.",
            task_toml=self.final_task_toml,
            identity=identity,
            ended=ended or {},
        )
        return outcomes

    @staticmethod
    def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
        """Relative path -> mode and bytes of everything below a folder."""
        return {
            p.relative_to(folder).as_posix(): (
                p.stat().st_mode & 0o7777,
                p.read_bytes() if p.is_file() else b"",
            )
            for p in sorted(folder.rglob("*"))
        }


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A fresh bench."""
    return Bench(tmp_path)
