"""From a skill to an accepted task by way of a real agent, with a scripted model behind a socket."""

import json
import signal
import time
from itertools import batched
from pathlib import Path
from typing import Any

import pytest

from skill2env.authors.demo_script import bash_style, demo_script, terminal_style
from skill2env.ingest import load_skill
from skill2env.llm.script import Fault, ScriptedFault
from skill2env.llm.scripted_server import ScriptedServer, scripted_server
from skill2env.records import Phase

pytestmark = pytest.mark.sandbox


def arguments(shell: Any, server: ScriptedServer, *extra: object) -> list[object]:
    return [
        "compile", shell.folder / "skills" / "cafe", "--model", "scripted", "--api-base", server.base_url,
        "--out", "out/made", "--workflows", 1, "--allow-degraded", "--json", *extra,
    ]  # fmt: skip


def prices(folder: Path) -> Path:
    file = folder / "prices.toml"
    file.write_text("[scripted]\ninput = 1\noutput = 4\n")
    return file


def test_plan_contract_seal_solution_accepted(shell: Any) -> None:
    skill = load_skill(shell.folder / "skills" / "cafe")
    with scripted_server(demo_script(skill)) as server:
        told = json.loads(shell(*arguments(shell, server, "--prices", prices(shell.folder))).stdout)
        asked = len(server.requests)
        assert told["counts"]["published"] == 1
        assert told["spend"]["sessions"] == 3
        assert told["spend"]["input_tokens"] > 1000
        assert told["spend"]["micro_dollars"] > 0
        again = json.loads(shell(*arguments(shell, server, "--prices", prices(shell.folder))).stdout)
        assert again["counts"]["published"] == 1
        assert len(server.requests) == asked == 12, "nothing finished is asked for again"
    (task,) = (shell.folder / "out/made").glob("*/task.toml")
    assert 'name = "builtin"' in task.read_text()
    seen = [json.dumps(item.body) for item in server.requests]
    assert all("cafe" in text or "ledger" in text for text in seen)
    assert "tests/grade.py" in seen[9], "an informed solution session sees the tests"
    shell("run", "audit", "out/runs/made")


@pytest.mark.slow
@pytest.mark.vast
def test_a_blind_solution_never_sees_the_tests(shell: Any) -> None:
    skill = load_skill(shell.folder / "skills" / "cafe")
    with scripted_server(demo_script(skill)) as server:
        told = json.loads(shell(*arguments(shell, server, "--solution", "blind")).stdout)
    assert told["counts"]["published"] == 1
    solving = [json.dumps(item.body) for item in server.requests if "# Solution:" in json.dumps(item.body)]
    assert len(solving) == 4
    assert not any("/workspace/task/tests" in text for text in solving)


TRANSIENT = (Fault.RATE_LIMIT, Fault.SERVER, Fault.OVERLOADED, Fault.CUT, Fault.BROKEN_JSON, Fault.WEB_PAGE)


@pytest.mark.slow
@pytest.mark.vast
def test_passing_faults_change_nothing(shell: Any) -> None:
    """Every kind that may pass, in every phase: one run meets them all, one before each request."""
    skill = load_skill(shell.folder / "skills" / "cafe")
    kinds = dict(zip((Phase.PLAN, Phase.CONTRACT, Phase.SOLUTION), batched(TRANSIENT, 2), strict=True))
    faults = {
        phase: tuple(
            ScriptedFault(kind=kind, reply=number) for number, kind in enumerate((*own, *TRANSIENT[:2]))
        )
        for phase, own in kinds.items()
    }
    with scripted_server(demo_script(skill, faults=faults)) as server:
        told = json.loads(shell(*arguments(shell, server)).stdout)
    assert told["counts"]["published"] == 1
    assert told["spend"]["sessions"] == 3
    assert len(server.requests) == 12 + 12


@pytest.mark.parametrize(
    "phase",
    [
        pytest.param(Phase.PLAN, marks=[pytest.mark.slow, pytest.mark.vast]),
        pytest.param(Phase.CONTRACT, marks=[pytest.mark.slow, pytest.mark.vast]),
        Phase.SOLUTION,
    ],
)
def test_a_lasting_fault_is_pending_and_nothing_is_paid_twice(shell: Any, phase: Phase) -> None:
    skill = load_skill(shell.folder / "skills" / "cafe")
    faults = {phase: (ScriptedFault(kind=Fault.UNAUTHORISED, reply=1),)}
    with scripted_server(demo_script(skill, faults=faults)) as server:
        failed = shell(*arguments(shell, server), code=3)
        assert "provider" in failed.stdout + failed.stderr
        before = len(server.requests)
        told = json.loads(shell(*arguments(shell, server)).stdout)
    assert told["counts"]["published"] == 1
    done_before = {Phase.PLAN: 0, Phase.CONTRACT: 4, Phase.SOLUTION: 8}[phase]
    assert before == done_before + 2
    assert len(server.requests) - before == 12 - done_before, "finished sessions are kept"


def test_an_author_that_refuses_gives_up(shell: Any) -> None:
    skill = load_skill(shell.folder / "skills" / "cafe")
    faults = {Phase.CONTRACT: (ScriptedFault(kind=Fault.REFUSAL, reply=1),)}
    with scripted_server(demo_script(skill, faults=faults)) as server:
        told = json.loads(shell(*arguments(shell, server)).stdout)
    assert told["counts"]["skipped"] == 1
    assert told["reasons"][0]["reason"] == "author_gave_up"


def test_a_model_that_writes_on_until_it_is_cut_off_gives_up(shell: Any) -> None:
    skill = load_skill(shell.folder / "skills" / "cafe")
    faults = {Phase.CONTRACT: tuple(ScriptedFault(kind=Fault.LENGTH, reply=number) for number in range(3))}
    with scripted_server(demo_script(skill, faults=faults)) as server:
        told = json.loads(shell(*arguments(shell, server)).stdout)
    assert told["counts"]["skipped"] == 1
    assert told["reasons"][0]["reason"] == "author_gave_up"
    shown = shell("run", "show", "out/runs/made", "--json").stdout
    assert "more than the model can write or read" in shown


@pytest.mark.parametrize(("reply", "code"), [(0, 3), (1, 0)])
def test_a_dialogue_that_does_not_fit(shell: Any, reply: int, code: int) -> None:
    """Whose task cannot even be read is the wrong model; who talks itself out of its window has given up."""
    skill = load_skill(shell.folder / "skills" / "cafe")
    faults = {Phase.CONTRACT: (ScriptedFault(kind=Fault.CONTEXT, reply=reply, times=99),)}
    with scripted_server(demo_script(skill, faults=faults)) as server:
        ended = shell(*arguments(shell, server), code=code)
    told = json.loads(ended.stdout)
    (row,) = told["reasons"]
    assert (row["status"], row["reason"]) == [("skipped", "author_gave_up"), ("infra", "provider")][code == 3]


@pytest.mark.parametrize("phase", [Phase.PLAN, Phase.CONTRACT])
def test_an_interrupt_does_not_wait_for_a_session(shell: Any, phase: Phase) -> None:
    """Also for the first one, before any check has run."""
    skill = load_skill(shell.folder / "skills" / "cafe")
    faults = {phase: (ScriptedFault(kind=Fault.HANG, times=99),)}
    with scripted_server(demo_script(skill, faults=faults)) as server:
        process = shell.start(*arguments(shell, server))
        end = time.monotonic() + 120
        while not any(seen.fault is Fault.HANG for seen in server.requests):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)  # a request may be open for three minutes
    assert process.returncode == 130, out + err


def test_terminus_2_unchanged(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-scripted")
    skill = load_skill(shell.folder / "skills" / "cafe")
    with scripted_server(demo_script(skill, style=terminal_style)) as server:
        run = arguments(shell, server, "--author", "harbor:terminus-2", "--model", "openai/scripted")
        told = json.loads(shell(*run).stdout)
    assert told["counts"]["published"] == 1
    assert told["spend"]["input_tokens"] > 1000


def test_an_agent_inside_reaches_its_model_through_the_proxy(
    shell: Any, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fake of codex and its kind: installed in the image, called by Harbor as the real one is."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-scripted")
    skill = load_skill(shell.folder / "skills" / "cafe")
    with scripted_server(demo_script(skill, style=bash_style)) as server:
        run = arguments(
            shell, server, "--author", "harbor:mini-swe-agent", "--model", "openai/scripted",
            "--agent-dockerfile", repository / "tests/data/fake-agent/Dockerfile",
        )  # fmt: skip
        told = json.loads(shell(*run).stdout)
        assert len(server.requests) == 9
    assert told["counts"]["published"] == 1


def test_money_is_set_aside_and_settled(shell: Any) -> None:
    """Sessions of 1000 + 100 tokens a turn at 1 and 4 dollars a million: 1400 micro-dollars a turn, 5600 a session."""
    skill = load_skill(shell.folder / "skills" / "cafe")
    script = demo_script(skill)
    scenarios = tuple(
        item.model_copy(
            update={
                "replies": tuple(
                    reply.model_copy(update={"input_tokens": 1000, "output_tokens": 100})
                    for reply in item.replies
                )
            }
        )
        for item in script.scenarios
    )
    config = shell.folder / "config.toml"
    config.write_text("[author.options]\nmax_output_tokens = 2000\n")
    with scripted_server(script.model_copy(update={"scenarios": scenarios})) as server:
        base = arguments(shell, server, "--prices", prices(shell.folder), "--config", config)
        unpriced = shell(*arguments(shell, server, "--max-usd", 1), code=2)
        assert "has no price" in unpriced.stderr
        stopped = shell(*base, "--max-usd", 0.02, code=4)
        spent = json.loads(stopped.stdout)["spend"]["micro_dollars"]
        assert 5600 <= spent <= 20_000, "planned, and stopped before a request that might not fit"
        done = json.loads(shell(*base, "--max-usd", 0.2).stdout)
        assert done["counts"]["published"] == 1
        assert spent < done["spend"]["micro_dollars"] <= spent + 3 * 5600
    with scripted_server(script.model_copy(update={"scenarios": scenarios})) as server:
        base = arguments(shell, server, "--prices", prices(shell.folder), "--config", config, "--seed", 5)
        skipped = json.loads(shell(*base, "--out", "out/dear", "--max-usd-per-task", 0.012).stdout)
        assert skipped["reasons"][0]["reason"] == "too_expensive"


def test_no_model_and_no_key(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    base = ["compile", shell.folder / "skills" / "cafe", "--out", "out/made"]
    assert "OPENAI_API_KEY is not set" in shell(*base, "--model", "gpt-x", code=2).stderr
    assert "needs a model" in shell(*base, "--author", "builtin", code=2).stderr
    unknown = shell(*base, "--author", "harbor:nobody", "--model", "m", code=2).stderr
    assert "Harbor knows no agent 'nobody'" in unknown
    assert "terminus-2" in unknown


@pytest.mark.slow
@pytest.mark.vast
def test_what_the_agent_did_replays_byte_for_byte(shell: Any) -> None:
    """Recorded from the built-in agent; replayed without model, key or network, twice and in any order of workers."""
    skill = load_skill(shell.folder / "skills" / "cafe")
    with scripted_server(demo_script(skill)) as server:
        shell(
            "record", shell.folder / "skills" / "cafe", "--model", "scripted", "--api-base", server.base_url,
            "--prices", prices(shell.folder), "--to", "rec", "--workflows", 1, "--allow-degraded", "--json",
        )  # fmt: skip
        asked = len(server.requests)
    replay = [
        "compile",
        shell.folder / "skills" / "cafe",
        "--recordings",
        "rec",
        "--workflows",
        1,
        "--allow-degraded",
    ]
    for name in ("one", "two"):
        told = json.loads(shell(*replay, "--out", f"out/{name}", "--json").stdout)
        assert told["counts"]["published"] == 1
    assert asked == 12
    trees = {
        name: {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        for name, folder in {
            "original": shell.folder / "rec-dataset",
            "one": shell.folder / "out/one",
            "two": shell.folder / "out/two",
        }.items()
    }
    assert trees["one"] == trees["two"]
    about = ("task.toml", "README.md", "dataset.toml", "manifest.jsonl")
    kept = [path for path in trees["original"] if not path.endswith(about)]
    assert len(kept) > 8
    assert [path for path in kept if trees["one"].get(path) != trees["original"][path]] == []
    (path,) = (path for path in trees["original"] if path.endswith("task.toml"))
    lines = set(trees["original"][path].splitlines()) ^ set(trees["one"][path].splitlines())
    # Who wrote it is told apart: the agent then, the recording now.
    assert {line.split(b" = ")[0] for line in lines} <= {b"name", b"model", b"version", b"digest"}
