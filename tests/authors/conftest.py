from pathlib import Path

import pytest

from skill2env.authors.demo import workflows
from skill2env.create.fakes import FakeHost
from skill2env.diversify import SpecRequest, sample_batch
from skill2env.records import FileKind, Skill, SkillFile, TaskSpec, digest_bytes, digest_of


@pytest.fixture
def bench() -> FakeHost:
    return FakeHost()


@pytest.fixture
def skill_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "skill"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "# Closing a month\nResolve every cancellation before anything is added up.\n"
    )
    return folder


@pytest.fixture
def skill(skill_dir: Path) -> Skill:
    data = (skill_dir / "SKILL.md").read_bytes()
    listed = SkillFile(path="SKILL.md", kind=FileKind.TEXT, size=len(data), sha256=digest_bytes(data))
    return Skill(
        name="closing",
        slug="closing",
        description="Close a month.",
        body=data.decode(),
        files=(listed,),
        digest=digest_of(data.decode()),
    )


@pytest.fixture
def spec(skill: Skill) -> TaskSpec:
    return sample_batch([SpecRequest(skill, workflows(skill)[0])], run_seed=1)[0]
