"""The Harbor task in which an agent authors: a workspace with the skill and what there is, and a place to write.

The agent works in a sandbox of its own, from our base image. Below ``/workspace`` lie ``source/`` (the skill, a copy),
``task/`` (what it writes) and for repairs ``feedback/``. When it has finished it says so in ``/workspace/done``: files
of a session that was cut off may end anywhere and are not taken.
"""

from dataclasses import dataclass
from pathlib import Path
from shutil import copytree

from skill2env.errors import Boundary, boundary
from skill2env.harbor.toml_text import to_toml

WORKSPACE = "/workspace"
DONE = f"{WORKSPACE}/done"
PLAN_FILE = "plan.json"

_HANDOVER = """

## How this session works

You work in a sandbox of your own, below `/workspace`, as root. The skill is `/workspace/source`, and what you hand in
is what lies below `/workspace/task` at the end. {network} Files of other places are lost.
Nobody answers questions. {result}When everything is written and checked, and only then, run `echo done > {done}`:
without that file nothing of this session is taken.
"""
_PLAN_RESULT = f"Write your answer to `/workspace/task/{PLAN_FILE}`. "
_OFFLINE = "There is no network."
_ONLINE = (
    "The network can be reached through a proxy that logs every host; the tasks you make will have none."
)
_TEST_SH = """#!/bin/sh
# Nothing is graded here: what the session wrote is judged by the gates.
done=0
[ "$(head -c 4 {done} 2>/dev/null)" = done ] && done=1
echo "{{\\"done\\": $done}}" > /logs/verifier/reward.json
echo "$done" > /logs/verifier/reward.txt
"""


@dataclass(frozen=True, slots=True)
class Room:
    """Limits of an authoring sandbox."""

    timeout_sec: float = 3600
    cpus: int = 2
    memory_mb: int = 4096
    storage_mb: int = 4096
    network: str = "no-network"
    """``no-network``, ``public`` or ``allowlist``; always through the logged proxy, never the host's own network."""
    hosts: tuple[str, ...] = ()
    """For ``allowlist``."""


def authoring_instruction(prompt: str, room: Room, *, plan: bool) -> str:
    """The prompt of a phase and how the session works."""
    return prompt.rstrip() + _HANDOVER.format(
        network=_OFFLINE if room.network == "no-network" else _ONLINE,
        result=_PLAN_RESULT if plan else "",
        done=DONE,
    )


def stage_task(folder: Path, workspace: Path, *, prompt: str, base: str, room: Room, plan: bool) -> None:
    """Write the Harbor task of one session into the new folder `folder`.

    Args:
        folder: made here.
        workspace: laid out by the host (`authors.protocol`); copied into the image.
        prompt: of the phase.
        base: reference of the image to work in.
        room: limits.
        plan: a planning session.

    Raises:
        InfraError: boundary ``storage``.
    """
    with boundary(Boundary.STORAGE, f"staging an authoring session in {folder}"):
        environment = folder / "environment"
        environment.mkdir(parents=True)
        copytree(workspace, environment / "workspace", symlinks=True)
        (environment / "workspace" / "task").mkdir(exist_ok=True)
        # An empty folder is not copied by every builder.
        (environment / "Dockerfile").write_text(
            f"FROM {base}\nCOPY workspace/ {WORKSPACE}/\nRUN mkdir -p {WORKSPACE}/task\nWORKDIR {WORKSPACE}\n",
            encoding="utf-8",
        )
        (folder / "instruction.md").write_text(
            authoring_instruction(prompt, room, plan=plan), encoding="utf-8"
        )
        (folder / "tests").mkdir()
        test = folder / "tests" / "test.sh"
        test.write_text(_TEST_SH.format(done=DONE), encoding="utf-8")
        test.chmod(0o755)
        (folder / "task.toml").write_text(_task_toml(room), encoding="utf-8")


def _task_toml(room: Room) -> str:
    environment: dict[str, object] = {
        "network_mode": room.network,
        "build_timeout_sec": 600.0,
        "cpus": room.cpus,
        "memory_mb": room.memory_mb,
        "storage_mb": room.storage_mb,
    }
    if room.network == "allowlist":
        environment["allowed_hosts"] = list(room.hosts)
    return to_toml(
        {
            "schema_version": "1.4",
            "artifacts": [f"{WORKSPACE}/task", DONE],
            "task": {"name": "skill2env/authoring", "description": "An authoring session."},
            "agent": {"timeout_sec": room.timeout_sec},
            "verifier": {"timeout_sec": 60.0, "environment_mode": "shared"},
            "environment": environment,
        }
    )
