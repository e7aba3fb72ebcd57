"""The verb as a user calls it."""

import json
from pathlib import Path
from typing import Any

import pytest

from skill2env.cli.main import run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for at, skill in enumerate(("ledger", "garden", "ledger")):
        folder = tmp_path / "data" / f"t{at}"
        for path, text in {
            "task.toml": f'[task]\nname = "org/t{at}"\n[metadata.skill2env.skill]\nname = "{skill}"\n',
            "instruction.md": f"Please look after the {skill} of house {at}, and tell me what you did about it.",
            "tests/rubric.md": f"## Must-do\n- Mind the {skill}.\n",
            "tests/test.sh": "#!/bin/bash\necho 1\n",
            "solution/solve.sh": "#!/bin/bash\nsort x\n",
        }.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    for skill in ("ledger", "garden"):
        (tmp_path / "skills" / skill).mkdir(parents=True)
        (tmp_path / "skills" / skill / "SKILL.md").write_text(
            f"---\nname: {skill}\n---\nAbout the {skill}.\n"
        )
    (tmp_path / "jobs/one").mkdir(parents=True)
    (tmp_path / "jobs/one/result.json").write_text(
        json.dumps({"task_name": "org/t0", "verifier_result": {"rewards": {"reward": 1}}})
    )
    (tmp_path / "bench.txt").write_text((tmp_path / "data/t0/instruction.md").read_text() + "\n")
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> Any:
    assert run(["analyze", *map(str, arguments), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_every_verb_speaks_json_and_prose(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = data / "data"
    skills = ("--skills", data / "skills", "--embedder", "none")
    calls: dict[str, tuple[tuple[object, ...], int]] = {
        "coverage": ((dataset, "--against", dataset), 0),
        "fidelity": ((dataset, *skills), 0),
        "decontamination": ((dataset, "--against", data / "bench.txt", "--embedder", "none"), 1),
        "duplicates": ((dataset,), 0),
        "difficulty": ((dataset, data / "jobs"), 0),
        "comparison": ((dataset, dataset, "--skills", data / "skills"), 0),
    }
    verbs = {"decontamination": "decontaminate", "comparison": "compare"}
    for name, (arguments, code) in calls.items():
        assert set(call(capsys, verbs.get(name, name), *arguments, code=code)) == {name}
        assert run(["analyze", verbs.get(name, name), *map(str, arguments)]) == code
        assert capsys.readouterr().out.strip()


def test_report_writes_both_forms(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, card = data / "page.html", data / "card.md"
    found = call(
        capsys, "report", data / "data", "--out", page, "--markdown", card, "--skills", data / "skills",
        "--benchmark", data / "bench.txt", "--jobs", data / "jobs", "--embedder", "none",
    )  # fmt: skip
    assert set(found) == {"coverage", "page", "fidelity", "decontamination", "duplicates", "difficulty"}
    assert "<svg" in page.read_text()
    assert "## Analysis" in card.read_text()


def test_filters_and_a_clean_copy(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = call(capsys, "coverage", data / "data", "--where", "skill=ledger")
    assert found["coverage"][0]["tasks"] == 2
    out, card = data / "clean", data / "statement.md"
    call(
        capsys, "decontaminate", data / "data", "--against", data / "bench.txt", "--embedder", "none",
        "--out", out, "--statement", card, code=1,
    )  # fmt: skip
    assert sorted(path.name for path in out.iterdir()) == ["t1", "t2"]
    assert "1 tasks are left out" in card.read_text()
    assert run(["analyze", "coverage", str(data / "data"), "--where", "colour=red"]) == 2
    assert "hint: one of" in capsys.readouterr().err
