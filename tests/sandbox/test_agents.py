"""Agents that talk to a model, on tasks without network: Harbor's own, unchanged, through Harbor's command line."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from skill2env.llm.script import ScriptedCall, ScriptedReply, in_turn
from skill2env.llm.scripted_server import ScriptedServer, scripted_server
from skill2env.sandbox.agent_image import AgentImageFailed
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.images import add_agent, build_image

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("rootfs", "no_machine_proxy")]

DATA = Path(__file__).resolve().parent.parent / "data"
TASK = """\
schema_version = "1.4"
artifacts = ["/app/answer.txt"]
[task]
name = "test/agents"
[agent]
timeout_sec = 120
user = "{user}"
network_mode = "no-network"
[verifier]
timeout_sec = 60
network_mode = "no-network"
environment_mode = "{mode}"
[environment]
network_mode = "no-network"
"""
LOOK = """\
#!/bin/bash
r=0
grep -qx done /app/answer.txt && ! command -v mini-swe-agent codex && [ -z "$FAKE_AGENT" ] && r=1
echo "{\\"reward\\": $r}" > /logs/verifier/reward.json
"""
WRITE = "echo done > /app/answer.txt"

Run = Callable[..., tuple[dict[str, Any], Path]]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """Asks for a file; its verifier also looks whether an agent was left in the task's own image."""
    folder = tmp_path / "task"
    for name in ("environment", "tests", "solution"):
        (folder / name).mkdir(parents=True)
    user = "agent" if current_identity().several_users else "root"
    (folder / "task.toml").write_text(TASK.format(user=user, mode="separate"))
    (folder / "instruction.md").write_text("Write the word done into /app/answer.txt.\n")
    (folder / "environment/Dockerfile").write_text(
        "FROM debian-bookworm\nRUN useradd -m agent && mkdir /app && chown agent /app\nWORKDIR /app\nUSER agent\n"
        if user == "agent"
        else "FROM debian-bookworm\nWORKDIR /app\n"
    )
    (folder / "solution/solve.sh").write_text(f"#!/bin/bash\n{WRITE}\n")
    (folder / "tests/test.sh").write_text(LOOK)
    return folder


@pytest.fixture
def run(task: Path, tmp_path: Path, repository: Path) -> Run:
    """Runs one of Harbor's agents on the task with a model; gives the trial's result and folder."""

    def start(
        agent: str, model: ScriptedServer, *more: str, environment: str = "NamespaceEnvironment"
    ) -> tuple[dict[str, Any], Path]:
        jobs = tmp_path / "jobs"
        command: Sequence[str] = (
            str(Path(sys.executable).parent / "harbor"), "run", "-y", "-q", "-p", str(task), "-a", agent,
            "-m", "openai/scripted", "-e", f"skill2env.sandbox:{environment}", "--jobs-dir", str(jobs),
            "--job-name", "job", "--ek", f'private_hosts=["127.0.0.1:{model.port}"]', *more,
        )  # fmt: skip
        env = {**os.environ, "OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-scripted"}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=900, check=False, cwd=repository, env=env
        )
        results = list(jobs.glob("job/*/result.json"))
        assert len(results) == 1, done.stdout + done.stderr
        return json.loads(results[0].read_text()), results[0].parent

    return start


def rewards(result: dict[str, Any]) -> object:
    """The rewards, or what went wrong."""
    return (result.get("verifier_result") or {}).get("rewards") or result.get("exception_info")


def hosts(folder: Path) -> set[tuple[str, str]]:
    """(host, verdict) of everything that was asked of the network."""
    lines = (folder / "network-env.jsonl").read_text().splitlines()
    return {(entry["host"], entry["verdict"]) for entry in map(json.loads, lines)}


@pytest.mark.parametrize(
    "environment", ["NamespaceEnvironment", pytest.param("DockerEnvironment", marks=pytest.mark.docker)]
)
def test_a_command_line_agent_reaches_its_model_and_nothing_else(run: Run, environment: str) -> None:
    look = "python3 -c \"import urllib.request as u; u.urlopen('http://example.org/')\" 2>&1 | tail -n 1"
    turns = (calling("bash", command=f"{WRITE}; echo $FAKE_AGENT; {look}"), ScriptedReply(text="over"))
    with scripted_server(in_turn(*turns)) as model:
        file = DATA / "fake-agent/Dockerfile"
        options = ("--ak", "skip_install=true", "--ek", f"agent_dockerfile={file}")
        result, folder = run("mini-swe-agent", model, *options, environment=environment)
        assert rewards(result) == {"reward": 1.0}
        assert len(model.requests) == len(turns)
        told = model.requests[1].body["messages"]
    assert told[0]["content"].startswith("Write the word done")
    assert told[2]["content"].startswith("here\n")
    assert told[2]["content"].endswith("HTTP Error 403: Forbidden\n")
    assert hosts(folder) == {("127.0.0.1", "allowed"), ("example.org", "refused")}
    assert [path.name for path in folder.glob("network-*.jsonl")] == ["network-env.jsonl"], (
        "the verifier has none"
    )


def test_an_agent_that_installs_itself_finds_no_network(run: Run) -> None:
    with scripted_server(in_turn(ScriptedReply(text="over"))) as model:
        result, _ = run("mini-swe-agent", model)
        told = result["exception_info"]["exception_message"]
        assert "Command failed (exit 100): apt-get update && apt-get install" in told
        assert model.requests == []


def calling(tool: str, **arguments: str) -> ScriptedReply:
    """A turn that uses a tool."""
    return ScriptedReply(calls=(ScriptedCall(name=tool, arguments=dict(arguments)),))


def keys(*lines: str, over: bool = False) -> ScriptedReply:
    """What terminus-2 expects: lines to type."""
    commands = [{"keystrokes": f"{line}\n", "duration": 2.0} for line in lines]
    return ScriptedReply(
        text=json.dumps({"analysis": "", "plan": "", "commands": commands, "task_complete": over})
    )


def test_terminus_2_types_into_a_terminal(run: Run) -> None:
    turns = (keys(WRITE, "cat answer.txt | tr d D"), keys(over=True), keys(over=True))
    with scripted_server(in_turn(*turns)) as model:
        result, folder = run("terminus-2", model, "--ak", "record_terminal_session=false")
        assert rewards(result) == {"reward": 1.0}
        assert "\nDone\n" in model.requests[1].body["messages"][-1]["content"]
    assert not list(folder.glob("network-*.jsonl")), (
        "the model is asked from the host: the trial stayed offline"
    )


SKILL = "---\nname: {name}\ndescription: How to {name}.\n---\nBody of {name}.\n"


@pytest.mark.parametrize("mode", ["shared", "separate"])
def test_skills_of_the_task_and_of_the_agent(run: Run, task: Path, tmp_path: Path, mode: str) -> None:
    if mode == "shared" and not current_identity().several_users:
        pytest.skip("a shared verifier needs several user ids")
    for folder in (task / "environment/skills/bake", tmp_path / "skills/fry"):
        (folder / "scripts").mkdir(parents=True)
        (folder / "SKILL.md").write_text(SKILL.format(name=folder.name))
        (folder / "scripts/run.sh").write_text(f"#!/bin/sh\necho ran {folder.name}\n")
        (folder / "scripts/run.sh").chmod(0o755)
    with (task / "environment/Dockerfile").open("a") as file:
        file.write("COPY --chmod=755 skills /skills\n")
    user = "agent" if current_identity().several_users else "root"
    (task / "task.toml").write_text(TASK.format(user=user, mode=mode) + 'skills_dir = "/skills"\n')
    seen = "1 1" if mode == "shared" else "1 0"
    (task / "tests/test.sh").write_text(
        "#!/bin/bash\nr=0\nhere() { ls /skills/$1/SKILL.md 2>/dev/null | wc -l; }\n"
        f'grep -qx done /app/answer.txt && [ "$(here bake) $(here fry)" = "{seen}" ] && r=1\n'
        'echo "{\\"reward\\": $r}" > /logs/verifier/reward.json\n'
    )
    look = "$(tail -qn 1 /skills/*/SKILL.md; for one in /skills/*/scripts/run.sh; do $one; done)"
    says = "Body of bake.\nBody of fry.\nran bake\nran fry"
    turns = (keys(f'test "{look}" = ${says!r} && {WRITE}'), keys(over=True), keys(over=True))
    with scripted_server(in_turn(*turns)) as model:
        options = ("--ak", "record_terminal_session=false", "--skill", str(tmp_path / "skills/fry"))
        result, _ = run("terminus-2", model, *options)
        assert rewards(result) == {"reward": 1.0}
        prompt = str(model.requests[0].body["messages"][-1]["content"])
    for name in ("bake", "fry"):
        assert f"<location>/skills/{name}/SKILL.md</location>" in prompt
        assert f"<description>How to {name}.</description>" in prompt


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.vast
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("agent", "turns"),
    [
        (
            "mini-swe-agent",
            (
                calling("bash", command=WRITE),
                calling("bash", command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
            ),
        ),
        ("codex", (calling("exec_command", cmd=WRITE), ScriptedReply(text="Over."))),
    ],
)
def test_the_real_ones(run: Run, repository: Path, agent: str, turns: tuple[ScriptedReply, ...]) -> None:
    file = repository / "examples/agents" / agent / "Dockerfile"
    with scripted_server(in_turn(*turns)) as model:
        result, folder = run(agent, model, "--ak", "skip_install=true", "--ek", f"agent_dockerfile={file}")
        assert rewards(result) == {"reward": 1.0}
        assert len(model.requests) == len(turns)
        assert {seen.headers["authorization"] for seen in model.requests} == {"Bearer sk-scripted"}
    assert {host for host, verdict in hosts(folder) if verdict != "refused"} == {"127.0.0.1"}


# ---------------------------------------------------------------------------------------------------- the image


def test_what_an_agents_image_keeps_of_the_tasks(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(
        'FROM debian-bookworm\nENV NAME="a \\"b\\" $ c"\nWORKDIR /deep\nUSER nobody\nCMD ["true"]\n'
    )
    task = build_image(tmp_path)
    agent = tmp_path / "agent"
    agent.mkdir()
    (agent / "Dockerfile").write_text(
        'FROM task\nRUN test "$NAME" = \'a "b" $ c\' && pwd > /where\nENV MORE=1\n'
    )
    made = add_agent(task, agent / "Dockerfile")
    assert made.config.env == {**task.config.env, "MORE": "1"}
    assert (made.config.user, made.config.workdir, made.config.command) == ("nobody", "/deep", ("true",))
    assert made.layers[: len(task.layers)] == task.layers
    assert (made.layers[-1] / "where").read_text() == "/deep\n"
    assert add_agent(task, agent / "Dockerfile") == made
    assert made.key != task.key


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "No such file"),
        ("FROM debian-bookworm\n", "its last stage stands on 'debian-bookworm'"),
        ("RUN true\n", "has no FROM"),
        ("FROM task\nRUN echo oh; exit 3\n", r"exit code 3\): oh"),
        ("FROM task\nCOPY missing /\n", "missing"),
        ("FROM task\nRUN --mount=type=secret,id=x true\n", "needs docker"),
    ],
)
def test_an_agents_dockerfile_at_fault_is_no_verdict_on_the_task(
    tmp_path: Path, text: str | None, why: str
) -> None:
    (tmp_path / "Dockerfile").write_text("FROM debian-bookworm\n")
    task, file = build_image(tmp_path), tmp_path / "agent/Dockerfile"
    if text is not None:
        file.parent.mkdir()
        file.write_text(text)
    with pytest.raises(AgentImageFailed, match=why) as caught:
        add_agent(task, file)
    assert not caught.value.transient
