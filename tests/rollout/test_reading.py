import json
from pathlib import Path
from typing import Any

import pytest

from skill2env.errors import UserError
from skill2env.judge.cases import render_difference
from skill2env.rollout.records import Rollout, RolloutStatus
from skill2env.rollout.stats import longest_loop, stats
from skill2env.rollout.trajectory import Step, read_trajectory


def test_a_trajectory_of_any_agent(tmp_path: Path) -> None:
    steps = [
        {"source": "user", "message": [{"type": "text", "text": "Count."}, {"type": "image"}]},
        {
            "source": "agent",
            "reasoning_content": "First look.",
            "message": "I look.",
            "tool_calls": [{"function_name": "bash", "arguments": {"command": "ls"}}, "odd"],
            "observation": {"results": [{"content": "a.txt"}, None]},
        },
        "odd",
        {},
    ]
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps({"steps": steps}))
    assert read_trajectory(path) == (
        Step("user", "Count."),
        Step("agent", "(reasoning) First look."),
        Step("agent", "I look."),
        Step("agent", '{"command": "ls"}', "bash"),
        Step("agent", "null", "?"),
        Step("tool", "a.txt"),
        Step("tool", ""),
    )


@pytest.mark.parametrize("text", ["", "[]", "{", '{"steps": 3}', "[" * 9000])
def test_files_that_are_no_trajectory(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trajectory.json"
    path.write_text(text)
    with pytest.raises(UserError):
        read_trajectory(path)


def test_a_trajectory_is_never_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"steps": []}')
    (tmp_path / "trajectory.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(UserError, match="no trajectory"):
        read_trajectory(tmp_path / "trajectory.json")


def rollout(task: str, attempt: int, outcome: float | None, **others: Any) -> Rollout:
    given = {"status": RolloutStatus.VALID if outcome is not None else RolloutStatus.ERROR, **others}
    return Rollout(
        group=task, attempt=attempt, task=task, task_digest="d", agent="a", outcome=outcome,
        passed=outcome == 1, **given,
    )  # fmt: skip


def test_figures() -> None:
    found = stats(
        [
            rollout("a", 0, 1.0, model_calls=4, micro_dollars=100, seconds={"agent": 2.0}),
            rollout("a", 1, 0.5, model_calls=2, status=RolloutStatus.TIMEOUT),
            rollout("a", 2, None),
            rollout("b", 0, 0.0),
        ]
    )
    assert (found.rollouts, found.by_status["error"], found.by_status["timeout"]) == (4, 1, 1)
    assert found.mean_outcome == 0.5
    assert found.pass_at_1 == 0.25, "half of task a, none of task b"
    assert (found.mean_model_calls, found.mean_seconds) == (2.0, 2.0)
    assert (found.micro_dollars, found.unpriced, found.silent_groups) == (100, 3, 1)
    assert [(task.task, task.graded, task.passes, task.spread) for task in found.tasks] == [
        ("a", 2, 1, 0.5),
        ("b", 1, 0, 0.0),
    ]
    empty = stats([rollout("a", 0, None)])
    assert (empty.mean_outcome, empty.pass_at_1, empty.tasks) == (None, None, ())


def test_loops() -> None:
    ls, pwd = Step("agent", '{"command": "ls"}', "bash"), Step("agent", '{"command": "pwd"}', "bash")
    answer = Step("tool", "a.txt")
    assert longest_loop([]) == 0
    assert longest_loop([ls, answer, pwd]) == 1
    assert longest_loop([pwd, ls, answer, ls, answer, ls, pwd]) == 3


def test_a_difference_as_text(tmp_path: Path) -> None:
    entries = [
        {"path": "/a", "change": "added", "kind": "file", "size": 4, "text": "+193"},
        {"path": "/b", "change": "removed", "size_before": 9},
        {"path": "/c", "change": "added", "kind": "link", "target": "/etc/shadow"},
        {"path": "/d", "change": "changed", "kind": "folder"},
    ]
    path = tmp_path / "difference.json"
    path.write_text(json.dumps({"entries": entries, "left_out": 3, "unread": 1}))
    assert render_difference(path).splitlines() == [
        "+ /a (4 bytes)",
        "+193",
        "- /b (9 -> 0 bytes)",
        "+ /c -> /etc/shadow",
        "~ /d (folder)",
        "(3 more paths are not listed)",
        "(1 files or folders could not be read)",
    ]
    path.write_text("{}")
    assert render_difference(path) == "(nothing was changed)"
    path.write_text("[]")
    assert render_difference(path) == ""
    assert render_difference(tmp_path / "none") == ""
