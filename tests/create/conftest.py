from pathlib import Path

import pytest

from skill2env.authors.demo import first_sentence, workflows
from skill2env.create.fakes import FakeHost
from skill2env.diversify import SpecRequest, sample_batch
from skill2env.records import FileKind, Skill, SkillFile, TaskSpec, digest_bytes, digest_of


@pytest.fixture
def bench() -> FakeHost:
    return FakeHost()


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
