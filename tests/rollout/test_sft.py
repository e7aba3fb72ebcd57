import json
from pathlib import Path
from typing import Any

import pytest

from skill2env.cli import main as cli
from skill2env.rollout.records import Rollout, RolloutStatus
from skill2env.rollout.sft import Selection, messages_of, repetition, write_sft
from skill2env.rollout.trajectory import Step


def agent(message: str, *commands: str, results: tuple[str, ...] = ()) -> dict[str, Any]:
    calls = [{"function_name": "bash", "arguments": {"command": command}} for command in commands]
    told = [{"content": text} for text in results]
    return {"source": "agent", "message": message, "tool_calls": calls, "observation": {"results": told}}


TASK = {"source": "user", "message": "Count the crates."}
GOOD = [
    TASK,
    agent("I look.", "ls", "cat a", results=("a", "5")),
    agent("Five.", "echo 5 > out", results=("",)),
]
LOOP = [TASK, *[agent("Again.", "ls", results=("a",))] * 4]
WORDS = [TASK, agent(" ".join(["the crate is in the box on the shelf and so"] * 20), "ls", results=("a",))]


@pytest.fixture
def rollouts(tmp_path: Path) -> list[Rollout]:
    """Four graded rollouts on disk, one of them not passed, one without a trajectory, and one that has no reward."""
    found: list[Rollout] = []
    plan = [(GOOD, 1.0), (LOOP, 1.0), (WORDS, 0.5), (None, 1.0), (GOOD, None)]
    for attempt, (steps, outcome) in enumerate(plan):
        place = f"trials/crates/group/{attempt:03d}"
        (tmp_path / place).mkdir(parents=True)
        if steps is not None:
            (tmp_path / place / "trajectory.json").write_text(json.dumps({"steps": steps}))
        status = RolloutStatus.ERROR if outcome is None else RolloutStatus.VALID
        item = Rollout(
            group="g", attempt=attempt, task="t/crates", task_digest="d", agent="a", status=status,
            outcome=outcome, passed=outcome == 1, place=place,
        )  # fmt: skip
        (tmp_path / place / "rollout.json").write_text(item.model_dump_json())
        found.append(item)
    return found


def test_a_conversation() -> None:
    steps = [
        Step("system", "rules"), Step("user", "task"), Step("agent", "(reasoning) hm"), Step("agent", "I look."),
        Step("agent", '{"command": "ls"}', "bash"), Step("agent", '{"command": "pwd"}', "bash"),
        Step("tool", "a"), Step("tool", "/"), Step("agent", "Done."),
    ]  # fmt: skip
    messages = messages_of(steps)
    assert [message["role"] for message in messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert messages[2]["content"] == "(reasoning) hm\nI look."
    assert [call["id"] for call in messages[2]["tool_calls"]] == [
        message["tool_call_id"] for message in messages[3:5]
    ]
    assert messages[2]["tool_calls"][1]["function"] == {"name": "bash", "arguments": '{"command": "pwd"}'}


def test_what_is_written_and_what_is_odd(rollouts: list[Rollout], tmp_path: Path) -> None:
    to = tmp_path / "sft.jsonl"
    passing = write_sft(tmp_path, rollouts, to)
    assert (passing.written, passing.failed, passing.unreadable) == (2, 1, ["g/3"])
    assert (passing.looping, passing.repetitive, passing.suspicious) == (["g/1"], [], 0.5)
    assert [json.loads(line)["id"] for line in to.read_text().splitlines()] == ["g/0", "g/1"]
    every = write_sft(tmp_path, rollouts, to, selection=Selection.ALL, leave_out=True)
    assert (every.written, every.looping, every.repetitive) == (1, ["g/1"], ["g/2"])


def test_the_verb(rollouts: list[Rollout], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["rollout", "sft", str(tmp_path), "--to", str(tmp_path / "x"), "--all"]) == 0
    said = capsys.readouterr().out
    assert "3 conversations" in said
    assert "1 loop and 1 repeat their own words" in said
    assert "g/1, g/2" in said


def test_repetition() -> None:
    assert repetition(" ".join(map(str, range(200)))) == 0.0
    assert repetition("yes " * 20) == 0.0, "too short to tell"
    assert repetition("yes " * 200) > 0.99
