"""A script with which the scripted model server plays an author: the demo task by way of a real agent."""

import base64
import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import cast

from skill2env.authors import demo
from skill2env.authors.protocol import CreateRequest
from skill2env.llm.script import Scenario, Script, ScriptedCall, ScriptedFault, ScriptedReply
from skill2env.records import Phase, Skill

PLAN_WORDS = "# Plan: which tasks"
CONTRACT_WORDS = "# Contract: build"
SOLUTION_WORDS = "# Solution:"
TASK = "/workspace/task"
_LOOK = "find /workspace -type f | sort | head -n 50"
_DONE = "echo done > /workspace/done"

type Faults = Mapping[Phase, tuple[ScriptedFault, ...]]
type Files = Mapping[str, str | bytes | None]
type Style = Callable[[Files], Iterator[ScriptedReply]]
"""How an agent of some kind is told to write files and to end."""


def demo_script(
    skill: Skill, *, seed: int = 7, faults: Faults | None = None, style: Style | None = None
) -> Script:
    """Plan, contract and solution of the demo task for one skill.

    Args:
        skill: as ingested; the plan quotes a sentence of it.
        seed: varies the ledger of the task.
        faults: what goes wrong in which phase.
        style: of the agent; for the built-in one when left out.
    """
    say = style or builtin_style
    found = faults or {}
    planned = [item.model_dump_json() for item in demo.workflows(skill)]
    sessions: tuple[tuple[Phase, str, Files], ...] = (
        (Phase.PLAN, PLAN_WORDS, {"plan.json": f"[{','.join(planned)}]"}),
        (Phase.CONTRACT, CONTRACT_WORDS, demo.files(_request(Phase.CONTRACT, seed))),
        (Phase.SOLUTION, SOLUTION_WORDS, demo.files(_request(Phase.SOLUTION, seed))),
    )
    return Script(
        scenarios=tuple(
            Scenario(when=(words,), replies=tuple(say(files)), faults=found.get(phase, ()))
            for phase, words, files in sessions
        )
    )


def builtin_style(files: Files) -> Iterator[ScriptedReply]:
    """The built-in agent's tools."""
    yield _calling("bash", {"command": _LOOK}, text="First I look at what is there.")
    calls = tuple(
        ScriptedCall(name="write_file", arguments={"path": f"{TASK}/{path}", "content": str(content)})
        for path, content in files.items()
    )
    yield ScriptedReply(text="Now I write the files.", calls=calls)
    yield _calling("bash", {"command": _DONE})
    yield _calling("finish", {"summary": "Everything is written."})


def bash_style(files: Files) -> Iterator[ScriptedReply]:
    """Agents with a tool ``bash`` that end with a reply without a call."""
    yield _calling("bash", {"command": _LOOK})
    yield _calling("bash", {"command": " && ".join([*_writing(files), _DONE])})
    yield ScriptedReply(text="Everything is written.")


def terminal_style(files: Files) -> Iterator[ScriptedReply]:
    """terminus-2, which types into a terminal and is asked twice whether it is done."""
    for command in (_LOOK, *_writing(files), _DONE):
        keys = [{"keystrokes": f"{command}\n", "duration": 1.0}]
        yield ScriptedReply(
            text=json.dumps({"analysis": "", "plan": "", "commands": keys, "task_complete": False})
        )
    end = ScriptedReply(text=json.dumps({"analysis": "", "plan": "", "commands": [], "task_complete": True}))
    yield from (end, end)


def _writing(files: Files) -> Iterator[str]:
    for path, content in files.items():
        data = content if isinstance(content, bytes) else str(content).encode()
        place = shlex.quote(f"{TASK}/{path}")
        yield f'mkdir -p "$(dirname {place})" && echo {base64.b64encode(data).decode()} | base64 -d > {place}'


def _calling(tool: str, arguments: dict[str, str], text: str = "") -> ScriptedReply:
    return ScriptedReply(text=text, calls=(ScriptedCall(name=tool, arguments=dict(arguments)),))


def _request(phase: Phase, seed: int) -> CreateRequest:
    """As much of a request as the demo's sessions look at."""
    return cast("CreateRequest", SimpleNamespace(phase=phase, spec=SimpleNamespace(seed=seed)))
