"""What a skill is worth: planted differences are found, and scripted agents of known behaviour are seen through."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from skill2env.cli import main as cli
from skill2env.errors import UserError
from skill2env.evaluate.lift import Worth, lift
from skill2env.evaluate.opened import opened
from skill2env.evaluate.tasks import skill_name, stage_skill, tasks_of
from skill2env.harbor.agents import SCRIPT_AGENT
from skill2env.llm.script import ScriptedCall, ScriptedReply, in_turn
from skill2env.llm.scripted_server import scripted_server
from skill2env.rollout.records import Rollout, RolloutStatus
from skill2env.sandbox.images import BaseImage

SOLVE = "echo 193 > /app/out/sum.txt; echo 98 > /app/out/max.txt"


def rollouts(values: list[float | None], attempts: int = 2, tokens: int = 100) -> list[Rollout]:
    return [
        Rollout(
            group=f"g{at}", attempt=attempt, task=f"org/task-{at}", task_digest=f"d{at}", agent="a",
            status=RolloutStatus.ERROR if value is None else RolloutStatus.VALID,
            metrics=None if value is None else {"m": value}, outcome=value, passed=value == 1,
            input_tokens=tokens, micro_dollars=tokens * 2, place=f"{at}/{attempt}",
        )
        for at, value in enumerate(values)
        for attempt in range(attempts)
    ]  # fmt: skip


def seen(share: float | None) -> Callable[[Rollout], bool | None]:
    return lambda item: None if share is None else int(item.group[1:]) < share * 8


@pytest.mark.parametrize(
    ("without", "with_skill", "share", "worth", "words"),
    [
        ([0.2] * 8, [0.9, 1, 1, 0.8, 1, 1, 0.1, 1], 1.0, Worth.HELPS, "It lowers 1 of them: org/task-6"),
        (
            [1.0] * 8,
            [0.5, 0.2, 0.4, 0.6, 0.5, 0.1, 0.9, 0.3],
            1.0,
            Worth.HURTS,
            "lowers the mean reward by -0.56",
        ),
        (
            [0.5] * 8,
            [0.5, 0.6, 0.4, 0.5, 0.7, 0.3, 0.5, 0.5],
            1.0,
            Worth.NO_DIFFERENCE,
            "No difference can be shown",
        ),
        ([1.0] * 8, [1.0] * 8, None, Worth.NO_DIFFERENCE, "8 of the tasks are solved without it"),
        (
            [0.5] * 8,
            [0.5, 0.6, 0.4, 0.5, 0.7, 0.3, 0.5, 0.5],
            0.25,
            Worth.NOT_OPENED,
            "in 25% of its rollouts",
        ),
        ([0.0] * 4, [1.0] * 4, 1.0, Worth.TOO_FEW, "4 tasks could be compared"),
    ],
)
def test_verdicts(
    without: list[float | None], with_skill: list[float | None], share: float | None, worth: Worth, words: str
) -> None:
    found = lift("s", rollouts(without), rollouts(with_skill, tokens=150), seen(share))
    assert found.worth is worth
    assert words in found.words
    assert found.outcome is not None
    assert found.outcome.low <= found.outcome.value <= found.outcome.high
    assert (found.tokens, found.micro_dollars) == ((100, 150), (200, 300))
    assert lift("s", rollouts(without), rollouts(with_skill, tokens=150), seen(share)) == found


def test_tasks_without_a_grade_on_both_sides_are_named() -> None:
    found = lift("s", rollouts([0.0] * 6), rollouts([1.0, 1.0, 1.0, 1.0, 1.0, None]), seen(None))
    assert (len(found.tasks), found.left_out) == (5, ("org/task-5",))
    with pytest.raises(UserError, match="no rollout with the skill"):
        lift("s", rollouts([0.0]), rollouts([None]), seen(None))


@pytest.mark.parametrize(
    ("calls", "found"),
    [
        ([("bash", {"command": "cat /runtime/skills/adding/SKILL.md"})], True),
        ([("Skill", {"skill": "adding"})], True),
        ([("bash", {"command": "cat /runtime/skills/other/SKILL.md"})], False),
        ([("bash", {"command": "ls /runtime/skills"})], False),
        ([], False),
    ],
)
def test_whether_it_was_opened(calls: list[tuple[str, Any]], found: bool, tmp_path: Path) -> None:
    listed = [{"function_name": name, "arguments": arguments} for name, arguments in calls]
    steps = [
        {
            "source": "system",
            "message": "- adding (/runtime/skills/adding/SKILL.md)",
        },  # being told is not opening
        {"source": "agent", "message": "Let me see.", "tool_calls": listed},
    ]
    (tmp_path / "trajectory.json").write_text(json.dumps({"steps": steps}))
    assert opened(tmp_path, "adding") is found
    assert opened(tmp_path / "none", "adding") is None


def write_skill(folder: Path, name: str = "adding") -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: Add up\n  columns.\n---\n# Adding\n\nUse awk.\n"
    )
    (folder / "link").symlink_to("/etc/passwd")
    return folder


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("---\nname: adding\n---\n", "adding"),
        ("---\nname: '../../etc'\n---\n", "folder"),
        ("---\ndescription: x\n---\nname: other\n", "folder"),
        ("", "folder"),
    ],
)
def test_the_name_is_one_that_a_folder_can_have(text: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "SKILL.md").write_text(text)
    assert skill_name(tmp_path / "folder") == name


def test_a_skill_is_copied_without_links(tmp_path: Path) -> None:
    staged = stage_skill(write_skill(tmp_path / "mine"), tmp_path / "out")
    assert sorted(path.name for path in staged.iterdir()) == ["SKILL.md"]
    assert stage_skill(tmp_path / "mine", tmp_path / "out") == staged  # again, over the old one


def test_only_tasks_of_the_skill_count(tmp_path: Path) -> None:
    skill = write_skill(tmp_path / "mine")
    ours, other = tmp_path / "ours", tmp_path / "other"
    for task, name in ((ours, "adding"), (other, "sorting")):
        task.mkdir()
        (task / "task.toml").write_text(f'[metadata.skill2env.skill]\nname = "{name}"\n')
    assert tasks_of(skill, [ours, other], every=False) == [ours]
    assert tasks_of(skill, [ours, other], every=True) == [ours, other]
    with pytest.raises(UserError, match="none of the 1 tasks"):
        tasks_of(skill, [other], every=False)


# ---------------------------------------------------------------------------------------------- in real sandboxes


@pytest.fixture
def task(builder: ModuleType, base: BaseImage, tmp_path: Path) -> Path:
    return builder.build_task(tmp_path / "crates", reference=base.reference)


@pytest.mark.sandbox
def test_an_agent_that_needs_the_skill(
    task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It solves the task when the skill lies there, and half of it otherwise."""
    script = tmp_path / "solve.sh"
    script.write_text(
        "#!/bin/bash\necho 193 > /app/out/sum.txt\n"
        'grep -q "Use awk" /runtime/skills/adding/SKILL.md && echo 98 > /app/out/max.txt\nexit 0\n'
    )
    skill = write_skill(tmp_path / "mine")
    call = ["lift", str(skill), "--tasks", str(task), "--out", str(tmp_path / "out"), "-k", "2", "--all-tasks",
            "--agent", SCRIPT_AGENT, "--option", f"source={script}"]  # fmt: skip
    assert cli.run([*call, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (row,) = found["tasks"]
    assert (row["without"], row["with_skill"], row["passed_without"], row["passed_with"]) == (
        0.5,
        1.0,
        0.0,
        1.0,
    )
    assert (row["opened"], found["worth"]) == (None, "too_few")
    assert cli.run(call) == 0  # from disk, as a table
    assert "0.50" in capsys.readouterr().out


@pytest.mark.sandbox
def test_the_builtin_agent_is_told_and_seen_opening_it(
    task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    look = ScriptedReply(
        calls=(ScriptedCall(name="bash", arguments={"command": "cat /runtime/skills/adding/SKILL.md"}),)
    )
    act = ScriptedReply(calls=(ScriptedCall(name="bash", arguments={"command": SOLVE}),))
    end = ScriptedReply(calls=(ScriptedCall(name="finish", arguments={"summary": "Done."}),))
    skill = write_skill(tmp_path / "mine")
    with scripted_server(in_turn(look, act, end)) as server:
        call = ["lift", str(skill), "--tasks", str(task), "--out", str(tmp_path / "out"), "-k", "1", "--all-tasks",
                "--model", "scripted", "--api-base", server.base_url, "--json"]  # fmt: skip
        assert cli.run(call) == 0
        told = [item.body["messages"][0]["content"] for item in server.requests]
    assert sum("- adding: Add up columns. (/runtime/skills/adding/SKILL.md)" in text for text in told) == 3
    assert sum("Skills that may help" in text for text in told) == 3  # and nothing without the skill
    found = json.loads(capsys.readouterr().out)
    assert (found["opened"], found["tasks"][0]["with_skill"]) == (1.0, 1.0)
    assert found["tokens"][1] > found["tokens"][0] > 0
    seen = json.loads(next((tmp_path / "out" / "with").rglob("trajectory.json")).read_text())
    assert "Use awk." in json.dumps(seen)
