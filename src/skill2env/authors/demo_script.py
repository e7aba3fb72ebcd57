"""A script with which the scripted model server plays an author: the demo task by way of a real agent."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from skill2env.authors import demo
from skill2env.authors.protocol import CreateRequest
from skill2env.llm.script import Scenario, Script, ScriptedCall, ScriptedFault, ScriptedReply
from skill2env.records import Phase, Skill

PLAN_WORDS = "# Plan: which tasks"
CONTRACT_WORDS = "# Contract: build"
SOLUTION_WORDS = "# Solution:"
REPAIR_WORDS = "# Repair:"
TASK = "/workspace/task"
DONE = ScriptedReply(calls=(ScriptedCall(name="bash", arguments={"command": "echo done > /workspace/done"}),))
FINISH = ScriptedReply(calls=(ScriptedCall(name="finish", arguments={"summary": "Everything is written."}),))

type Faults = Mapping[Phase, tuple[ScriptedFault, ...]]


def demo_script(skill: Skill, *, seed: int = 7, faults: Faults | None = None) -> Script:
    """Plan, contract and solution of the demo task for one skill.

    Args:
        skill: as ingested; the plan quotes a sentence of it.
        seed: varies the ledger of the task.
        faults: what goes wrong in which phase.
    """
    found = faults or {}
    planned = [item.model_dump_json() for item in demo.workflows(skill)]
    plan = (_look(), _write({"plan.json": f"[{','.join(planned)}]"}), DONE, FINISH)
    files = {phase: demo.files(_request(phase, seed)) for phase in (Phase.CONTRACT, Phase.SOLUTION)}
    sessions = (
        (Phase.PLAN, PLAN_WORDS, plan),
        (Phase.CONTRACT, CONTRACT_WORDS, (_look(), _write(files[Phase.CONTRACT]), DONE, FINISH)),
        (Phase.SOLUTION, SOLUTION_WORDS, (_look(), _write(files[Phase.SOLUTION]), DONE, FINISH)),
    )
    return Script(
        scenarios=tuple(
            Scenario(when=(words,), replies=replies, faults=found.get(phase, ()))
            for phase, words, replies in sessions
        )
    )


def _look() -> ScriptedReply:
    listing = ScriptedCall(name="bash", arguments={"command": "find /workspace -type f | sort | head -50"})
    return ScriptedReply(text="First I look at what is there.", calls=(listing,))


def _write(files: Mapping[str, Any]) -> ScriptedReply:
    calls = tuple(
        ScriptedCall(name="write_file", arguments={"path": f"{TASK}/{path}", "content": str(content)})
        for path, content in files.items()
    )
    return ScriptedReply(text="Now I write the files.", calls=calls)


def _request(phase: Phase, seed: int) -> CreateRequest:
    """As much of a request as the demo's sessions look at."""
    return cast("CreateRequest", SimpleNamespace(phase=phase, spec=SimpleNamespace(seed=seed)))
