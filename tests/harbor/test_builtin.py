"""The built-in agent in real sandboxes, with a scripted model behind a socket."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skill2env.harbor.builtin import BUILTIN_AGENT
from skill2env.harbor.limits import Timeouts
from skill2env.harbor.outcome import TrialOutcome
from skill2env.harbor.session import read_report
from skill2env.llm.script import Fault, Scenario, Script, ScriptedCall, ScriptedFault, ScriptedReply
from skill2env.llm.scripted_server import ScriptedServer, scripted_server
from skill2env.sandbox.identity import current_identity

pytestmark = pytest.mark.sandbox

Make = Callable[..., Path]
Run = Callable[..., TrialOutcome]
FULL = {"sum": 1.0, "largest": 1.0, "reward": 1.0}
KEY = "sk-rubric"


def calls(*items: tuple[str, dict[str, Any]], text: str = "") -> ScriptedReply:
    return ScriptedReply(
        text=text, calls=tuple(ScriptedCall(name=name, arguments=given) for name, given in items)
    )


def bash(command: str, **others: Any) -> ScriptedReply:
    return calls(("bash", {"command": command, **others}))


FINISH = calls(("finish", {"summary": "Both files are written."}))
SOLUTION = (
    calls(("read_file", {"path": "/app/numbers.txt"}), text="First the input."),
    bash("awk '{ t += $1 } END { print t }' numbers.txt > out/sum.txt; sort -n numbers.txt | tail -1; false"),
    calls(("write_file", {"path": "/app/out/max.txt", "content": "97\n"})),
    calls(("edit_file", {"path": "/app/out/max.txt", "old": "97", "new": "98"})),
    FINISH,
)


def script(*replies: ScriptedReply, faults: tuple[ScriptedFault, ...] = ()) -> Script:
    return Script(scenarios=(Scenario(when=("warehouse",), replies=replies, faults=faults),))


@pytest.fixture
def solve(task: Make, trial: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[TrialOutcome, Any]]:
    """Runs the agent on the small sound task; gives the outcome and Harbor's record of the agent."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def run(server: ScriptedServer, **options: Any) -> tuple[TrialOutcome, Any]:
        given = {"api_base": server.base_url, "stall_sec": 20.0, "attempts": 2, **options}
        timeouts = given.pop("timeouts", None)
        outcome = trial(
            given.pop("task", None) or task(),
            BUILTIN_AGENT,
            model="scripted",
            agent_kwargs=given,
            timeouts=timeouts or Timeouts(),
        )
        result = json.loads((outcome.folder / "result.json").read_text())
        return outcome, result["agent_result"]

    return run


def trajectory(outcome: TrialOutcome) -> Any:
    return json.loads((outcome.folder / "agent" / "trajectory.json").read_text())


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses"])
def test_a_task_is_solved(api: str, solve: Callable[..., tuple[TrialOutcome, Any]]) -> None:
    with scripted_server(script(*SOLUTION)) as server:
        outcome, told = solve(server, api=api)
    assert outcome.failure is None
    assert outcome.reward().metrics == FULL
    assert told["metadata"]["stop"] == "finished"
    counted = told["metadata"]["requests"]
    assert (counted["sent"], counted["answered"], counted["failed"], counted["open_sec"]) == (5, 5, 0, 0)
    assert told["n_input_tokens"] > 1000
    assert told["cost_usd"] is None
    steps = trajectory(outcome)["steps"]
    assert [step["source"] for step in steps] == ["system", "user", *["agent"] * 5]
    said = [step["observation"]["results"][0]["content"] for step in steps[2:]]
    assert said[0] == "17\n4\n98\n23\n51\n"
    assert said[1] == "98\n[exit code 1]"
    assert said[3] == "/app/out/max.txt is changed"
    assert steps[2]["metrics"]["prompt_tokens"] > 100
    assert "numbers.txt" in json.dumps(server.requests[1].body)


def test_the_key_is_nowhere_but_in_the_request(solve: Callable[..., tuple[TrialOutcome, Any]]) -> None:
    look = bash(
        "env; cat /proc/*/environ | tr '\\0' '\\n'; grep -rs 'sk-rub' /app /logs /tmp /root /home | head"
    )
    with scripted_server(script(look, *SOLUTION[1:])) as server:
        outcome, _ = solve(server)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    holding = [
        path for path in outcome.folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()
    ]
    assert holding == []
    assert outcome.reward().metrics == FULL


def test_prices_of_ones_own(tmp_path: Path, solve: Callable[..., tuple[TrialOutcome, Any]]) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text("[scripted]\ninput = 2\noutput = 10\n")
    counted = tuple(item.model_copy(update={"input_tokens": 1000, "output_tokens": 100}) for item in SOLUTION)
    with scripted_server(script(*counted)) as server:
        outcome, told = solve(server, prices=str(prices))
    assert told["cost_usd"] == pytest.approx(5 * (0.002 + 0.001))
    assert trajectory(outcome)["final_metrics"]["total_cost_usd"] == pytest.approx(0.015)


@pytest.mark.parametrize(
    ("fault", "failure"),
    [
        (Fault.RATE_LIMIT, "ApiRateLimitError"),
        (Fault.QUOTA, "ApiUsageLimitError"),
        (Fault.SERVER, "ApiInternalServerError"),
        (Fault.OVERLOADED, "ApiOverloadedError"),
        (Fault.CUT, "ApiConnectionClosedError"),
        (Fault.EMPTY, "ApiError"),
        (Fault.WEB_PAGE, "ApiError"),
        (Fault.UNAUTHORISED, "AgentAuthenticationError"),
        (Fault.NO_MODEL, "ModelNotFoundError"),
        (Fault.BLOCKED, "AgentSafetyRefusalError"),
        (Fault.CONTEXT, "ContextWindowExceededError"),
        (Fault.REFUSAL, "AgentSafetyRefusalError"),
        (Fault.LENGTH, "OutputTokenExceededError"),
    ],
)
def test_what_fails_for_good_has_harbors_name(
    fault: Fault,
    failure: str,
    solve: Callable[..., tuple[TrialOutcome, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("skill2env.llm.retrying.FIRST_WAIT_SEC", 0.01)
    faults = tuple(ScriptedFault(kind=fault, reply=number, times=9) for number in range(2, 9))
    with scripted_server(script(*SOLUTION, faults=faults)) as server:
        outcome, told = solve(server)
    assert outcome.failure is not None
    assert outcome.failure.type == failure
    assert told["metadata"]["turns"] >= 2, "what was done before is on record"
    assert told["n_output_tokens"] > 0
    assert len(trajectory(outcome)["steps"]) >= 4


@pytest.mark.parametrize(
    "fault", [Fault.RATE_LIMIT, Fault.SERVER, Fault.CUT, Fault.BROKEN_JSON, Fault.GARBAGE_CALL]
)
def test_what_passes_is_survived(
    fault: Fault, solve: Callable[..., tuple[TrialOutcome, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skill2env.llm.retrying.FIRST_WAIT_SEC", 0.01)
    replies = (*SOLUTION[:3], *SOLUTION[2:]) if fault is Fault.GARBAGE_CALL else SOLUTION
    with scripted_server(script(*replies, faults=(ScriptedFault(kind=fault, reply=2),))) as server:
        outcome, told = solve(server)
    assert outcome.reward().metrics == FULL
    assert told["metadata"]["stop"] == "finished"


def test_a_time_limit_tells_an_open_request(solve: Callable[..., tuple[TrialOutcome, Any]]) -> None:
    with scripted_server(script(*SOLUTION, faults=(ScriptedFault(kind=Fault.HANG, reply=1),))) as server:
        outcome, told = solve(server, timeouts=Timeouts(agent_sec=2))
    assert outcome.failure is not None
    assert outcome.failure.timed_out
    assert told["metadata"]["requests"]["open_sec"] > 0.5
    failed = read_report(outcome).failed
    assert failed is not None
    assert (failed.whose, failed.transient) == ("provider", True)
    assert told["metadata"]["turns"] == 1


def test_a_time_limit_amid_work_is_the_authors(solve: Callable[..., tuple[TrialOutcome, Any]]) -> None:
    with scripted_server(script(bash("sleep 0.3"))) as server:
        outcome, _ = solve(server, timeouts=Timeouts(agent_sec=3))
    failed = read_report(outcome).failed
    assert failed is not None
    assert (failed.whose, failed.transient) == ("time", False)


def test_limits_end_without_an_error(solve: Callable[..., tuple[TrialOutcome, Any]]) -> None:
    with scripted_server(script(bash("ls"))) as server:
        outcome, told = solve(server, max_turns=3)
    assert outcome.failure is None
    assert told["metadata"]["stop"] == "turns"
    assert len(server.requests) == 3


def test_no_key(solve: Callable[..., tuple[TrialOutcome, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with scripted_server(script(*SOLUTION)) as server:
        outcome, _ = solve(server, api_base="", api="openai-chat")
    assert outcome.failure is not None
    assert "OPENAI_API_KEY is not set" in outcome.failure.message
    assert not server.requests


HOSTILE = "tab\there\n'quotes' \"double\" $HOME `id` \\back\nünïcödé \U0001f600\r\nlast line without end"


def test_tools_on_odd_input(solve: Callable[..., tuple[TrialOutcome, Any]]) -> None:
    big = "0123456789abcdef" * 8000
    turns = (
        calls(("write_file", {"path": "/app/out/a dir/-odd 'name'", "content": HOSTILE})),
        calls(("read_file", {"path": "/app/out/a dir/-odd 'name'"})),
        calls(
            ("write_file", {"path": "-dash", "content": "x"}),
            ("write_file", {"path": "out/big", "content": big}),
        ),
        bash("cat out/big | wc -c; cp out/big out/sum.txt; sha256sum < out/big | cut -c1-12"),
        calls(("edit_file", {"path": "out/big", "old": "zz", "new": "y"})),
        calls(("edit_file", {"path": "out/big", "old": "0123", "new": "y"})),
        calls(("read_file", {"path": "/app/absent"})),
        calls(("read_file", {"path": "/app/numbers.txt", "from_line": 2, "lines": 2})),
        calls(("write_file", {"path": "/usr/bin/x", "content": "no"})),
        bash("yes | head -c 100000", timeout_sec=10),
        bash("sleep 30", timeout_sec=1),
        calls(("bash", {"command": "a\0b"}), ("bash", {}), ("bash", {"command": "ls", "shell": "zsh"})),
        calls(("bash", {"command": 7}), ("fetch", {"url": "file:///etc/passwd"})),
        calls(("fetch", {"url": "http://127.0.0.1:1/x"})),
        bash("sleep 300 >/dev/null 2>&1 & echo started"),
        FINISH,
    )
    with scripted_server(script(*turns)) as server:
        begun = time.monotonic()
        outcome, told = solve(server)
    assert told["metadata"]["stop"] == "finished"
    assert time.monotonic() - begun < 60
    said = [
        [result["content"] for result in step["observation"]["results"]]
        for step in trajectory(outcome)["steps"]
        if "observation" in step
    ]
    assert said[1] == [HOSTILE]
    assert said[2][1] == "128,000 bytes written to out/big"
    assert said[3][0].startswith("128000\n")
    assert "occurs 0 times" in said[4][0]
    assert "occurs 8000 times" in said[5][0]
    assert "No such file" in said[6][0]
    assert said[7] == ["4\n98\n"]
    if current_identity().several_users:  # with one user id the agent is root in its own sandbox
        assert "Not written" in said[8][0]
    assert "characters left out" in said[9][0]
    assert "killed after 1 s" in said[10][0]
    assert "NUL" in said[11][0]
    assert "needs command" in said[11][1]
    assert "does not know shell" in said[11][2]
    assert "must be of type string" in said[12][0]
    assert "Only http" in said[12][1]
    assert "Not fetched" in said[13][0]
    assert said[14] == ["started\n[exit code 0]"]


def test_replies_that_broke_off_are_paid_and_end_a_session_that_has_no_more(
    tmp_path: Path, solve: Callable[..., tuple[TrialOutcome, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skill2env.llm.retrying.FIRST_WAIT_SEC", 0.01)
    prices = tmp_path / "prices.toml"
    prices.write_text("[scripted]\ninput = 2\noutput = 10\n")
    counted = tuple(item.model_copy(update={"input_tokens": 1000, "output_tokens": 100}) for item in SOLUTION)
    once = ScriptedFault(kind=Fault.CUT, reply=1)
    with scripted_server(script(*counted, faults=(once,))) as server:
        outcome, told = solve(server, prices=str(prices))
    assert outcome.reward().metrics == FULL
    assert told["cost_usd"] > 0.0151, "five replies, and what broke off"
    assert told["metadata"]["tokens_estimated"]
    report = read_report(outcome)
    assert report.estimated
    assert report.input_tokens > 5000
    always = tuple(ScriptedFault(kind=Fault.CUT, reply=number, times=99) for number in range(1, 5))
    with scripted_server(script(*counted, faults=always)) as server:
        outcome, told = solve(
            server, task=outcome.folder.parent.parent / "task", prices=str(prices), max_usd=0.012, attempts=50,
            max_output_tokens=500,
        )  # fmt: skip
    assert outcome.failure is None
    assert told["metadata"]["stop"] == "money"
    assert 0.006 < told["cost_usd"] <= 0.012
    assert 3 < len(server.requests) < 20
