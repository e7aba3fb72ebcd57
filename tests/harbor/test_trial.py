"""What Harbor lets through, and what a hostile verifier or solution can do: one trial each."""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from skill2env.errors import Boundary, InfraError
from skill2env.harbor.agents import SCRIPT_AGENT
from skill2env.harbor.limits import Timeouts
from skill2env.harbor.outcome import OUTPUT_LIMIT, TrialOutcome, TrialPhase, read_head, read_tail
from skill2env.harbor.rewards import RewardProblem
from skill2env.harbor.running import cancel_running, halted
from skill2env.harbor.sandboxes import SandboxChoice, namespace_sandbox
from skill2env.harbor.trial import run_trial

pytestmark = pytest.mark.sandbox

Make = Callable[..., Path]
Run = Callable[..., TrialOutcome]
FULL = {"sum": 1.0, "largest": 1.0, "reward": 1.0}
NONE = {"sum": 0.0, "largest": 0.0, "reward": 0.0}


@pytest.mark.parametrize("mode", ["separate", "shared"])
def test_oracle_and_nop_of_a_sound_task(mode: str, task: Make, trial: Run) -> None:
    folder = task()
    oracle, nop = (trial(folder, agent, mode=mode) for agent in ("oracle", "nop"))
    assert (oracle.mode, nop.mode) == (mode, mode)
    assert (oracle.reward().metrics, nop.reward().metrics) == (FULL, NONE)
    assert oracle.valid
    assert nop.valid
    assert oracle.failure is None
    assert oracle.solve_exit_code is None
    assert oracle.reward_txt == b"1.0"
    assert (oracle.artifacts / "app" / "out" / "sum.txt").read_text() == "193\n"
    assert set(oracle.seconds) == {"environment", "agent_setup", "agent", "verifier", "total"}


def test_failing_solution_is_noticed_although_harbor_grades_it(
    builder: ModuleType, task: Make, trial: Run
) -> None:
    outcome = trial(
        task(changes={"solution/solve.sh": builder.SOLVE_SH + "echo nearly >&2; exit 7\n"}), "oracle"
    )
    assert outcome.valid
    assert outcome.failure is None
    assert outcome.solve_exit_code == 7
    assert outcome.agent_output == "nearly\n"


def test_missing_solution_folder(task: Make, trial: Run) -> None:
    outcome = trial(task(changes={"solution/solve.sh": None}), "oracle")
    assert outcome.valid  # Harbor's opinion
    assert outcome.failure is not None
    assert (outcome.failure.type, outcome.failure.phase) == ("FileNotFoundError", TrialPhase.AGENT)


def test_solution_that_does_its_work_and_then_hangs(builder: ModuleType, task: Make, trial: Run) -> None:
    folder = task(changes={"solution/solve.sh": builder.SOLVE_SH + "sleep 60\n"})
    outcome = trial(folder, "oracle", timeouts=Timeouts(agent_sec=2))
    assert outcome.reward().metrics == FULL
    assert outcome.failure is not None
    assert outcome.failure.phase is TrialPhase.AGENT
    assert outcome.failure.timed_out
    assert not outcome.suspect


def test_exit_code_of_the_verifier_does_not_count(builder: ModuleType, task: Make, trial: Run) -> None:
    script = builder.rewarding('{"sum": 1, "reward": 1}', "1", then="exit 9")
    outcome = trial(task(changes={"tests/test.sh": script}), "nop")
    assert outcome.failure is None
    assert outcome.reward().metrics == {"sum": 1.0, "reward": 1.0}


P = RewardProblem


@pytest.mark.parametrize(
    ("reward_json", "reward_txt", "problem", "harbor_takes_it"),
    [
        ('{"a": true}', None, P.BOOLEAN, True),
        ("{}", None, P.NO_METRICS, False),
        ("1", None, P.NOT_OBJECT, False),
        ("[1]", None, P.NOT_OBJECT, False),
        ('{"a": NaN}', None, P.NOT_FINITE, False),
        ('{"a": 1.5}', None, P.OUT_OF_RANGE, True),
        ('{"a": "1"}', None, P.NOT_NUMBER, False),
        ('{"a": 1, "b": null}', None, P.NOT_NUMBER, False),
        ("", None, P.EMPTY, False),
        (None, None, P.MISSING, False),
        ('{"a": 1, "reward": 1}', "0", P.TEXT_DISAGREES, True),
    ],
)
def test_malformed_rewards(
    reward_json: str | None,
    reward_txt: str | None,
    problem: RewardProblem,
    harbor_takes_it: bool,
    builder: ModuleType,
    task: Make,
    trial: Run,
) -> None:
    outcome = trial(task(changes={"tests/test.sh": builder.rewarding(reward_json, reward_txt)}), "nop")
    assert set(outcome.reward().problems) == {problem}
    assert outcome.valid is harbor_takes_it


def test_hanging_verifier(task: Make, trial: Run) -> None:
    begun = time.monotonic()
    outcome = trial(
        task(changes={"tests/test.sh": "#!/bin/bash\ntrap '' TERM INT\nsleep 300\n"}),
        "nop",
        timeouts=Timeouts(verifier_sec=2),
    )
    assert outcome.failure is not None
    assert (outcome.failure.type, outcome.failure.phase) == ("VerifierTimeoutError", TrialPhase.VERIFIER)
    assert time.monotonic() - begun < 30


def test_verifier_that_floods_its_output(builder: ModuleType, task: Make, trial: Run) -> None:
    flood = builder.rewarding('{"sum": 0, "reward": 0}', "0", then="head -c 50000000 /dev/zero | tr '\\0' x")
    outcome = trial(task(changes={"tests/test.sh": flood}), "nop")
    assert outcome.reward().metrics == {"sum": 0.0, "reward": 0.0}
    assert len(outcome.verifier_output) <= OUTPUT_LIMIT


@pytest.mark.parametrize("mode", ["separate", "shared"])
@pytest.mark.parametrize(
    "command", ["kill -9 -1", "kill -9 $PPID", "kill -9 1", "kill -STOP -1 & kill -9 $$"]
)
def test_verifier_that_kills_what_runs_it(command: str, mode: str, task: Make, trial: Run) -> None:
    outcome = trial(
        task(changes={"tests/test.sh": f"#!/bin/bash\n{command}\n"}),
        "nop",
        mode=mode,
        timeouts=Timeouts(verifier_sec=10),
    )
    assert outcome.rewards is None
    assert outcome.failure is not None
    assert outcome.failure.phase is TrialPhase.VERIFIER


def test_reward_that_is_a_link_to_a_host_file_is_not_read(tmp_path: Path, task: Make, trial: Run) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"stolen": 1}')
    script = f"#!/bin/bash\nln -s {secret} /logs/verifier/reward.json\n"
    outcome = trial(task(changes={"tests/test.sh": script}), "nop")
    assert outcome.reward_json is None
    assert "stolen" not in (outcome.rewards or {})


def test_failing_build_is_the_tasks_fault(builder: ModuleType, base: object, task: Make, trial: Run) -> None:
    text = builder.DOCKERFILE.format(reference=base.reference) + "RUN echo broken on purpose >&2; exit 5\n"  # type: ignore[attr-defined]
    outcome = trial(task(changes={"environment/Dockerfile": text}), "nop")
    assert outcome.failure is not None
    assert (outcome.failure.type, outcome.failure.phase) == ("BuildFailed", TrialPhase.ENVIRONMENT)
    assert "exit code 5" in outcome.failure.message


def test_failing_health_check(task: Make, trial: Run) -> None:
    check = '\n[environment.healthcheck]\ncommand = "false"\ninterval_sec = 0.1\nretries = 1\n'
    outcome = trial(task(config=lambda text: text + check), "nop")
    assert outcome.failure is not None
    assert (outcome.failure.type, outcome.failure.phase) == ("HealthcheckError", TrialPhase.AGENT_SETUP)


@pytest.mark.parametrize(
    "changes",
    [
        {"task.toml": "nonsense ="},
        {"task.toml": b"\xff\xfe"},
        {"tests/test.sh": None},
        {"instruction.md": None},
    ],
    ids=["toml", "encoding", "test", "instruction"],
)
@pytest.mark.parametrize("mode", [None, "shared"])
def test_task_that_cannot_be_loaded(
    changes: dict[str, str | bytes | None], mode: str | None, task: Make, trial: Run
) -> None:
    outcome = trial(task(changes=changes), "nop", mode=mode)
    assert outcome.failure is not None
    assert outcome.failure.phase is TrialPhase.CREATE


def test_an_open_network_is_logged_and_can_be_withheld(task: Make, trial: Run) -> None:
    folder = task(config=lambda text: text.replace("no-network", "public"))
    with_network, without = trial(folder, "nop"), trial(folder, "nop", offline=True)
    assert with_network.reward().metrics == without.reward().metrics == NONE
    assert list(with_network.folder.glob("network-*.jsonl")), "what it asked for is on record"
    assert not list(without.folder.glob("network-*.jsonl"))


def test_unknown_base_image_keeps_its_boundary(task: Make, trial: Run) -> None:
    folder = task()
    dockerfile = folder / "environment" / "Dockerfile"
    dockerfile.write_text("FROM some.registry/else:1\n")
    with pytest.raises(InfraError) as caught:
        trial(folder, "nop")
    assert caught.value.boundary is Boundary.BUILD
    assert not caught.value.transient


def test_engine_that_does_not_exist(task: Make, tmp_path: Path) -> None:
    choice = SandboxChoice("nowhere", "skill2env.nowhere:Environment")
    with pytest.raises(InfraError):
        run_trial(task(), "nop", environment=choice, trials_dir=tmp_path / "trials")


def test_read_only_trials_folder(task: Make, tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(InfraError) as caught:
        run_trial(task(), "nop", environment=namespace_sandbox(), trials_dir=blocker / "trials")
    assert caught.value.boundary is Boundary.STORAGE


def test_many_trials_at_once(task: Make, trial: Run) -> None:
    folder = task()
    outcomes: list[TrialOutcome] = []
    threads = [
        threading.Thread(target=lambda agent=agent: outcomes.append(trial(folder, agent)))
        for agent in ("oracle", "nop") * 4
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(outcome.agent for outcome in outcomes) == ["nop"] * 4 + ["oracle"] * 4
    assert all(
        outcome.reward().metrics == (FULL if outcome.agent == "oracle" else NONE) for outcome in outcomes
    )


def test_cancelling_stops_a_running_trial(task: Make, trial: Run) -> None:
    folder = task(changes={"solution/solve.sh": "#!/bin/bash\nsleep 100\n"})
    raised: list[BaseException] = []

    def run() -> None:
        try:
            trial(folder, "oracle")
        except InfraError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    begun = time.monotonic()
    thread.start()
    while thread.is_alive() and time.monotonic() - begun < 60:
        time.sleep(1.0)
        cancel_running()
    thread.join(1)
    assert not thread.is_alive()
    assert len(raised) == 1
    assert isinstance(raised[0], InfraError)
    assert not raised[0].transient


def test_script_agent_runs_as_the_agent_and_leaves_nothing(tmp_path: Path, task: Make, trial: Run) -> None:
    script = tmp_path / "cheat.sh"
    script.write_text("#!/bin/bash\nid --user --name > /app/out/sum.txt\necho cheating\nexit 3\n")
    outcome = trial(task(), SCRIPT_AGENT, agent_kwargs={"source": str(script)}, mode="shared")
    assert outcome.failure is None
    assert outcome.solve_exit_code == 3
    assert outcome.agent_output == "cheating\n"
    assert (outcome.artifacts / "app" / "out" / "sum.txt").read_text() == "agent\n"
    looking = tmp_path / "folder"
    looking.mkdir()
    (looking / "run.sh").write_text('#!/bin/bash\ncat "$(dirname "$0")/helper.txt" > /app/out/sum.txt\n')
    (looking / "helper.txt").write_text("193\n")
    test = "#!/bin/bash\n[ -e /solution ] || printf '{\"sum\": %s}' 1 > /logs/verifier/reward.json\n"
    outcome = trial(
        task(changes={"tests/test.sh": test}),
        SCRIPT_AGENT,
        agent_kwargs={"source": str(looking), "entry": "run.sh"},
        mode="shared",
    )
    assert outcome.reward().metrics == {"sum": 1.0}
    assert (outcome.artifacts / "app" / "out" / "sum.txt").read_text() == "193\n"


def test_script_agent_without_a_script(tmp_path: Path, task: Make, trial: Run) -> None:
    outcome = trial(task(), SCRIPT_AGENT, agent_kwargs={"source": str(tmp_path / "nothing.sh")})
    assert outcome.failure is not None
    assert outcome.failure.type == "FileNotFoundError"


def test_untrusted_files_are_read_with_care(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("0123456789")
    link = tmp_path / "link"
    link.symlink_to(target)
    assert read_head(link) is None
    assert read_head(tmp_path) is None
    assert read_head(tmp_path / "absent") is None
    assert read_head(target, limit=3) == b"0123"
    assert read_tail(target, limit=3) == "789"


def test_trial_folder_holds_harbors_records(task: Make, trial: Run) -> None:
    outcome = trial(task(), "nop")
    assert json.loads((outcome.folder / "result.json").read_text())["task_name"] == "skill2env/count-crates"


def test_nothing_begins_while_trials_are_halted(task: Make, trial: Run) -> None:
    folder = task(changes={"solution/solve.sh": "#!/bin/bash\nsleep 100\n"})
    ended: list[BaseException] = []

    def insist() -> None:
        for _ in range(2):  # as those do who try again what the machine spoiled
            try:
                trial(folder, "oracle")
            except InfraError as error:
                ended.append(error)

    thread = threading.Thread(target=insist)
    thread.start()
    time.sleep(0.05)
    with halted():
        thread.join(60)
        assert not thread.is_alive()
    assert [error.transient for error in ended if isinstance(error, InfraError)] == [False, False]
    assert trial(task(), "nop").failure is None, "and afterwards they begin again"
