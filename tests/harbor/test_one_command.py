"""The agent of one command, against the scripted server, in a real sandbox."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from skill2env.harbor.one_command import ONE_COMMAND_AGENT
from skill2env.harbor.sandboxes import namespace_sandbox
from skill2env.llm.script import Fault, Scenario, Script, ScriptedFault, ScriptedReply, in_turn
from skill2env.llm.scripted_server import ScriptedServer, scripted_server
from skill2env.rollout.records import Rollout
from skill2env.rollout.run import Plan, run_rollouts, subjects
from skill2env.sandbox.images import BaseImage

pytestmark = pytest.mark.sandbox
SOLVES = "echo 193 > /app/out/sum.txt; echo 98 > /app/out/max.txt"


@pytest.fixture
def task(builder: ModuleType, base: BaseImage, tmp_path: Path) -> Path:
    return builder.build_task(tmp_path / "crates", reference=base.reference)


def act(task: Path, out: Path, script: Script, **options: Any) -> tuple[Rollout, ScriptedServer]:
    with scripted_server(script) as server:
        kwargs = {"api_base": server.base_url, "max_output_tokens": 200, **options}
        plan = Plan(agent=ONE_COMMAND_AGENT, sandbox=namespace_sandbox(), model="tiny", attempts=1, tries=1,
                    agent_kwargs=kwargs, attempt_option="attempt")  # fmt: skip
        (made,) = run_rollouts(subjects([task]), plan, out)
    return made, server


def test_one_command_is_asked_for_and_run(task: Path, tmp_path: Path) -> None:
    made, server = act(task, tmp_path / "out", in_turn(ScriptedReply(text=SOLVES)), seed=5)
    assert (made.status, made.passed, made.model_calls, made.tool_calls) == ("valid", True, 1, 1)
    (asked,) = server.requests
    assert [item["role"] for item in asked.body["messages"]].count("assistant") == 3
    assert (asked.body["seed"], asked.body["stop"]) == (5_000_000, ["\n"])
    folder = tmp_path / "out" / made.place
    (history,) = json.loads((folder / "tokens.json").read_text())
    assert bytes(history["completions"][0]).decode() == SOLVES
    assert len(history["log_probs"][0]) == len(SOLVES)
    steps = json.loads((folder / "trajectory.json").read_text())["steps"]
    assert [step["source"] for step in steps] == [
        "system",
        "user",
        "agent",
    ]  # what it was shown is nothing it did
    assert steps[-1]["tool_calls"][0]["arguments"]["command"] == SOLVES


def test_more_turns_see_what_was_printed_and_make_one_sequence(task: Path, tmp_path: Path) -> None:
    script = in_turn(ScriptedReply(text="echo one two"), ScriptedReply(text=SOLVES), ScriptedReply(text=" "))
    made, server = act(task, tmp_path / "out", script, turns=5, shown=False)
    assert (made.passed, made.model_calls, made.tool_calls) == (True, 3, 2)
    assert "one two" in server.requests[1].body["messages"][-1]["content"]
    (history,) = json.loads((tmp_path / "out" / made.place / "tokens.json").read_text())
    first, second, _ = history["prompts"]
    assert second[: len(first)] == first


def failing(kind: Fault) -> Script:
    fault = ScriptedFault(kind=kind, times=99)
    return Script(scenarios=(Scenario(replies=(ScriptedReply(text=SOLVES),), faults=(fault,)),))


@pytest.mark.parametrize("kind", [Fault.SERVER, Fault.UNAUTHORISED])
def test_a_server_that_fails_is_no_reward(kind: Fault, task: Path, tmp_path: Path) -> None:
    made, _ = act(task, tmp_path / "out", failing(kind), shown=False)
    assert (made.status, made.outcome) == ("error", None)
    assert "answered" in made.reason


def test_a_dialogue_that_is_too_long_is_graded(task: Path, tmp_path: Path) -> None:
    made, _ = act(task, tmp_path / "out", failing(Fault.CONTEXT), shown=False)
    assert (made.status, made.outcome) == ("valid", 0)
    assert "ContextWindowExceeded" in made.reason


def test_an_address_where_nobody_listens_is_no_reward(task: Path, tmp_path: Path) -> None:
    made, _ = act(
        task, tmp_path / "out", in_turn(ScriptedReply(text=SOLVES)), api_base="http://127.0.0.1:9/v1"
    )
    assert (made.status, made.outcome) == ("error", None)
    assert "cannot be asked" in made.reason
