"""Rollouts in real sandboxes, and what the surroundings can do to them."""

import json
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from skill2env.cli import main as cli
from skill2env.errors import Boundary, InfraError, UserError
from skill2env.harbor.agents import SCRIPT_AGENT
from skill2env.harbor.outcome import TrialFailure, TrialOutcome, TrialPhase
from skill2env.harbor.sandboxes import SandboxChoice, namespace_sandbox
from skill2env.llm.byte_tokens import log_prob, render_prompt
from skill2env.llm.script import Scenario, Script, ScriptedCall, ScriptedReply, in_turn
from skill2env.llm.scripted_server import scripted_server
from skill2env.rollout.folder import read_rollouts
from skill2env.rollout.records import RolloutStatus
from skill2env.rollout.run import Plan, run_rollouts, subjects
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.images import BaseImage

GOOD = b'{"sum": 1.0, "largest": 0.0, "reward": 0.5}'


@pytest.fixture
def task(builder: ModuleType, tmp_path: Path) -> Path:
    """The small sound task; not run here, so the base image need not exist."""
    return builder.build_task(tmp_path / "crates", reference="debian-bookworm")


class Trials:
    """Stands in for `run_trial`: plays a list of endings, one a call."""

    def __init__(self, *endings: object) -> None:
        self.endings = list(endings)
        self.seen: list[dict[str, Any]] = []

    def __call__(self, task: Path, agent: str, *, trials_dir: Path, **settings: Any) -> TrialOutcome:
        self.seen.append(settings)
        ending = self.endings.pop(0) if len(self.endings) > 1 else self.endings[0]
        if isinstance(ending, Exception):
            raise ending
        folder = trials_dir / "one"
        (folder / "agent").mkdir(parents=True)
        given: dict[str, Any] = {"reward_json": GOOD, "valid": True, **ending}  # type: ignore[dict-item]
        result = given.pop("result", {})
        (folder / "result.json").write_text(json.dumps(result))
        if "steps" in given:
            (folder / "agent" / "trajectory.json").write_text(json.dumps({"steps": given.pop("steps")}))
        return TrialOutcome(agent, folder, **given)


def failure(kind: str, phase: TrialPhase, message: str = "it broke") -> TrialFailure:
    return TrialFailure(kind, message, phase)


def plan(**settings: Any) -> Plan:
    return Plan(
        **{"agent": "nop", "sandbox": SandboxChoice("docker"), "attempts": 1, "workers": 1, **settings}
    )


@pytest.mark.parametrize(
    ("ending", "status", "outcome", "reason"),
    [
        ({}, "valid", 0.5, ""),
        (
            {"failure": failure("AgentTimeoutError", TrialPhase.AGENT), "valid": False},
            "timeout",
            0.5,
            "AgentTimeout",
        ),
        (
            {"failure": failure("AgentTimeoutError", TrialPhase.AGENT), "reward_json": None},
            "invalid",
            None,
            "verifier: the verifier wrote neither",
        ),
        (
            {"failure": failure("NonZeroAgentExitCodeError", TrialPhase.AGENT)},
            "valid",
            0.5,
            "NonZeroAgentExit",
        ),
        (
            {"failure": failure("ZeroDivisionError", TrialPhase.AGENT), "reward_json": None},
            "error",
            None,
            "agent: ZeroDivisionError",
        ),
        (
            {"failure": failure("FileNotFoundError", TrialPhase.AGENT)},
            "error",
            None,
            "agent: FileNotFoundError",
        ),
        (
            {"failure": failure("ApiRateLimitError", TrialPhase.AGENT)},
            "error",
            None,
            "provider: ApiRateLimit",
        ),
        (
            {"failure": failure("VerifierTimeoutError", TrialPhase.VERIFIER), "reward_json": None},
            "invalid",
            None,
            "ver",
        ),
        ({"reward_json": b'{"sum": NaN}'}, "invalid", None, "verifier: metric 'sum' is not finite"),
        ({"reward_json": b'{"sum": 2}'}, "invalid", None, "verifier: metric 'sum' is 2, outside [0,1]"),
        (
            {"reward_json": None, "suspect": True, "failure": failure("OSError", TrialPhase.VERIFIER)},
            "error",
            None,
            "mac",
        ),
        (
            {"failure": failure("ValueError", TrialPhase.CREATE), "reward_json": None},
            "invalid",
            None,
            "task: ValueError",
        ),
    ],
)
def test_whose_doing_an_ending_is(
    ending: dict[str, Any], status: str, outcome: float | None, reason: str, task: Path, tmp_path: Path
) -> None:
    (made,) = run_rollouts(subjects([task]), plan(tries=1), tmp_path / "out", trial=Trials(ending))
    assert (made.status.value, made.outcome, made.passed) == (status, outcome, False)
    assert made.reason.startswith(reason)
    assert (made.metrics is None) == (outcome is None), "what has no reward has no zeros either"


def test_what_the_surroundings_prevent_is_tried_again_now_and_by_the_next_run(
    task: Path, tmp_path: Path
) -> None:
    lost = InfraError(Boundary.SANDBOX, "no room")
    trials = Trials(lost, {"failure": failure("ApiOverloadedError", TrialPhase.AGENT)}, {})
    (made,) = run_rollouts(subjects([task]), plan(tries=3), tmp_path / "out", trial=trials)
    assert (made.status, made.tries, len(trials.seen)) == (RolloutStatus.VALID, 3, 3)

    (made,) = run_rollouts(subjects([task]), plan(tries=2), tmp_path / "other", trial=Trials(lost))
    assert (made.status, made.tries, made.reason) == (RolloutStatus.ERROR, 2, "sandbox: no room")
    (again,) = run_rollouts(subjects([task]), plan(tries=2), tmp_path / "other", trial=Trials({}))
    assert again.status is RolloutStatus.VALID

    unable = InfraError(Boundary.SANDBOX, "no compose here", transient=False)
    made = run_rollouts(subjects([task]), plan(attempts=2), tmp_path / "third", trial=Trials(unable, {}))
    assert [(item.status.value, item.tries) for item in made] == [("error", 1), ("valid", 1)], "others go on"
    full = InfraError(Boundary.STORAGE, "no space left", transient=False)
    with pytest.raises(InfraError, match="no space"):
        run_rollouts(subjects([task]), plan(), tmp_path / "fourth", trial=Trials(full))


def test_finished_rollouts_are_never_run_again_and_changed_ones_are(task: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    trials = Trials({})
    first = run_rollouts(subjects([task]), plan(attempts=3), out, trial=trials)
    assert len(trials.seen) == 3
    assert {item.group for item in first} == {first[0].group}
    more = run_rollouts(subjects([task]), plan(attempts=5, workers=2), out, trial=trials)
    assert len(trials.seen) == 5
    assert [item.attempt for item in more] == [0, 1, 2, 3, 4]
    other = run_rollouts(subjects([task]), plan(attempts=5, model="another"), out, trial=trials)
    assert len(trials.seen) == 10
    assert other[0].group != first[0].group
    (task / "instruction.md").write_text("Count again.\n")
    changed = run_rollouts(subjects([task]), plan(attempts=1, model="another"), out, trial=trials)
    assert changed[0].group != other[0].group
    assert len(read_rollouts(out)) == 11, "what another model or task earned is kept"


def test_a_kill_between_two_rollouts_loses_nothing(task: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    class Killed(BaseException):
        pass

    class Half(Trials):
        def __call__(self, *arguments: Any, **settings: Any) -> TrialOutcome:
            if len(self.seen) == 2:
                raise Killed
            return super().__call__(*arguments, **settings)

    with pytest.raises(Killed):
        run_rollouts(subjects([task]), plan(attempts=4), out, trial=Half({}))
    left = next((out / "trials").glob("*/*/000"))
    (left.parent / ".tmp-dead").mkdir()
    (left.parent / ".tmp-dead" / "rollout.json").write_text("{}")
    assert len(read_rollouts(out)) == 2
    trials = Trials({})
    assert len(run_rollouts(subjects([task]), plan(attempts=4), out, trial=trials)) == 4
    assert len(trials.seen) == 2
    assert not (left.parent / ".tmp-dead").exists()


def test_tokens_are_kept_where_a_server_gave_them(task: Path, tmp_path: Path) -> None:
    detail = {"prompt_token_ids": [[1, 2]], "completion_token_ids": [[3]], "logprobs": [[-0.5]]}
    with_tokens = {"result": {"agent_result": {"rollout_details": [detail], "n_output_tokens": 7}}}
    without = {"result": {"agent_result": {"rollout_details": []}}}
    made = run_rollouts(
        subjects([task]), plan(attempts=2), tmp_path / "out", trial=Trials(with_tokens, without)
    )
    files = [tmp_path / "out" / item.place / "tokens.json" for item in made]
    assert json.loads(files[0].read_text()) == [
        {"prompts": [[1, 2]], "completions": [[3]], "log_probs": [[-0.5]]}
    ]
    assert not files[1].exists()
    assert made[0].output_tokens == 7


def test_mistakes(task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(task, tmp_path / "twin")
    with pytest.raises(UserError, match="the same task"):
        subjects([task, tmp_path / "twin"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="holds no rollouts"):
        read_rollouts(tmp_path / "empty")
    for arguments, said in (
        (["--agent", "nobody"], "there is no agent 'nobody'"),
        ([], "needs a model"),
        (["--agent", "oracle", "--api", "anthropic"], "for the built-in agent"),
        (["--agent", "oracle", "--option", "x"], "not NAME=VALUE"),
    ):
        assert cli.run(["rollout", "run", str(task), "--out", str(tmp_path / "out"), *arguments]) == 2
        assert said in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------- in real sandboxes


@pytest.fixture
def real_task(builder: ModuleType, base: BaseImage, tmp_path: Path) -> Path:
    return builder.build_task(tmp_path / "crates", reference=base.reference)


@pytest.mark.sandbox
def test_a_scripted_agent_with_evidence(real_task: Path, tmp_path: Path) -> None:
    script = tmp_path / "solve.sh"
    script.write_text(
        "#!/bin/bash\necho 193 > /app/out/sum.txt\necho 7 > /app/out/max.txt\n"
        "rm -f /app/numbers.txt 2>/dev/null\nln -s /etc/shadow /app/out/link\necho note >> ~/.bashrc\n"
    )
    settings = {
        "agent": SCRIPT_AGENT,
        "sandbox": namespace_sandbox(),
        "agent_kwargs": {"source": str(script)},
    }
    (made,) = run_rollouts(subjects([real_task]), plan(**settings), tmp_path / "out")
    assert (made.status, made.metrics) == (
        RolloutStatus.VALID,
        {"sum": 1.0, "largest": 0.0, "reward": 0.5},
    )
    document = json.loads((tmp_path / "out" / made.place / "difference.json").read_text())
    found = {entry["path"]: entry for entry in document["entries"]}
    assert found["/app/out/sum.txt"]["change"] == "added"
    assert found["/app/out/sum.txt"]["text"].splitlines()[-1] == "+193"
    assert found["/app/out/link"]["target"] == "/etc/shadow"
    home = (
        "/home/agent" if current_identity().several_users else "/root"
    )  # with one user id the agent is root
    assert found[f"{home}/.bashrc"]["change"] in {"changed", "added"}
    assert found[f"{home}/.bashrc"]["text"].splitlines()[-1] == "+note"
    assert not [path for path in found if path.startswith(("/tests", "/logs", "/solution"))]
    assert "root:" not in json.dumps(document)


@pytest.mark.sandbox
def test_from_rollouts_of_a_model_to_judged_and_exported_rewards(
    real_task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two scripted models on one port: the agent's, and a judge that is told apart by its question."""
    bash = ScriptedCall(
        name="bash", arguments={"command": "echo 193 > /app/out/sum.txt; echo 98 > /app/out/max.txt"}
    )
    act = ScriptedReply(text="I add up.", calls=(bash,))
    end = ScriptedReply(calls=(ScriptedCall(name="finish", arguments={"summary": "Done."}),))
    answer = ScriptedReply(text=json.dumps({"reason": "It did not look at the file.", "score": -2.5}))
    script = Script(
        scenarios=(
            Scenario(when=("Judge it now",), replies=(answer,)),
            Scenario(when=("warehouse",), replies=(act, end)),
        )
    )
    out, scores, lines = tmp_path / "out", tmp_path / "scores.jsonl", tmp_path / "train.jsonl"
    prices = tmp_path / "prices.toml"
    prices.write_text("[scripted]\ninput = 2\noutput = 10\n")
    with scripted_server(script) as server:
        endpoint = ["--model", "scripted", "--api-base", server.base_url, "--prices", str(prices)]
        assert (
            cli.run(["rollout", "run", str(real_task), "--out", str(out), "-k", "2", *endpoint, "--json"])
            == 0
        )
        found = json.loads(capsys.readouterr().out)
        assert (found["rollouts"], found["by_status"]["valid"], found["pass_at_1"]) == (2, 2, 1.0)
        assert (found["mean_model_calls"], found["mean_tool_calls"], found["silent_groups"]) == (2.0, 2.0, 1)
        assert found["micro_dollars"] > 0
        judge = [
            "judge",
            "run",
            str(out),
            *endpoint,
            "--out",
            str(scores),
            "--evidence",
            "trace+fs",
            "--no-cache",
        ]
        assert cli.run([*judge, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["histogram"]["-3"] == 2
        asked = server.requests[-1].body["messages"][-1]["content"]
    assert "## Must-do" in asked
    assert "echo 193 > /app/out/sum.txt" in asked
    assert "+ /app/out/sum.txt (4 bytes)" in asked
    assert len((tmp_path / "judge-ledger.jsonl").read_text().splitlines()) == 2
    assert cli.run(["judge", "agree", str(scores), str(scores), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["distance"] == 0
    export = [
        "rollout",
        "export",
        str(out),
        "--to",
        str(lines),
        "--judgements",
        str(scores),
        "--policy",
        "gated",
    ]
    assert cli.run([*export, "--size", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["usable"] == 1
    first, second = (json.loads(line) for line in lines.read_text().splitlines())
    assert first["r"] == pytest.approx(1 - 0.2 * 2.5 / 5)
    assert (first["advantage"], first["r_v"], first["score"], first["segments"]) == (0.0, 1.0, -2.5, [])
    assert (first["group"], second["attempt"]) == (second["group"], 1)
    assert first["metrics"] == {"sum": 1.0, "largest": 1.0, "reward": 1.0}
    assert cli.run(["rollout", "stats", str(out)]) == 0
    assert "pass@1 100.0%" in capsys.readouterr().out


def keys(*lines: str, over: bool = False) -> ScriptedReply:
    """What terminus-2 expects: lines to type."""
    commands = [{"keystrokes": f"{line}\n", "duration": 1.0} for line in lines]
    return ScriptedReply(
        text=json.dumps({"analysis": "", "plan": "", "commands": commands, "task_complete": over})
    )


@pytest.mark.sandbox
def test_token_ids_of_harbors_own_agent_become_one_sequence(
    real_task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """terminus-2 against a server with token ids: what was sampled, and only that, is learned from."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-scripted")
    turns = (keys("echo 193 > out/sum.txt", "cat numbers.txt"), keys(over=True), keys(over=True))
    out, lines = tmp_path / "out", tmp_path / "train.jsonl"
    with scripted_server(in_turn(*turns)) as server:
        settings = ["--option", "collect_rollout_details=true", "--option", "record_terminal_session=false"]
        agent = [
            "--agent",
            "terminus-2",
            "--model",
            "openai/scripted",
            "--option",
            f"api_base={server.base_url}",
        ]
        assert (
            cli.run(["rollout", "run", str(real_task), "--out", str(out), "-k", "1", *agent, *settings]) == 0
        )
        asked = [request.body for request in server.requests]
    assert cli.run(["rollout", "export", str(out), "--to", str(lines)]) == 0
    assert "1 rollouts in 1 groups" in capsys.readouterr().out
    (line,) = (json.loads(text) for text in lines.read_text().splitlines())
    assert line["r_v"] == 0.5
    assert line["diagnostics"] == []
    (segment,) = line["segments"]
    sampled = bytes(
        token for token, learned in zip(segment["tokens"], segment["mask"], strict=True) if learned
    )
    assert sampled.decode() == "".join(turn.text for turn in turns)
    first = len(render_prompt(asked[0]["messages"]).encode())
    assert not any(segment["mask"][:first])
    assert segment["mask"][first]
    assert [segment["log_probs"][at] for at in (0, first)] == [0.0, log_prob(segment["tokens"][first])]
    between = bytes(
        token for token, learned in zip(segment["tokens"], segment["mask"], strict=True) if not learned
    )
    assert b"98\n23\n51" in between, "what a command printed is context"
