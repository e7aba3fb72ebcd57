"""`NamespaceEnvironment` under Harbor: tiny tasks, both verifier modes, every way a trial can end."""

import asyncio
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

from skill2env.errors import UserError
from skill2env.harbor.outcome import TrialOutcome
from skill2env.harbor.sandboxes import SandboxChoice
from skill2env.harbor.trial import run_trial
from skill2env.sandbox.environment import NamespaceEnvironment
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.off_loop import off_loop
from skill2env.sandbox.scratch import runtime_folder

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("rootfs")]

OURS = "skill2env.sandbox:NamespaceEnvironment"
USERADD = "RUN useradd --create-home agent && mkdir /app && chown agent /app\n"
TASK = """
schema_version = "1.4"
artifacts = ["/app/out.txt", "/app/tree"]
[task]
name = "test/tiny"
[agent]
timeout_sec = 60
user = "{user}"
[verifier]
timeout_sec = 60
environment_mode = "{mode}"
network_mode = "no-network"
[environment]
network_mode = "no-network"
cpus = 1
memory_mb = 1024
{extra}
"""
TEST = r"""#!/bin/bash
grep -E '^(Seccomp|NoNewPrivs|CapBnd):' /proc/self/status
echo "who=$(id -un)"
ok=0; [ "$(cat /app/out.txt 2>/dev/null)" = "agent was here" ] && ok=1
echo "{\"reward\": $ok}" > /logs/verifier/reward.json
"""
SOLVE = "#!/bin/bash\necho 'agent was here' > /app/out.txt\ngrep -E '^(Seccomp|NoNewPrivs|CapBnd):' /proc/self/status\n"


def several() -> bool:
    return current_identity().several_users


def build(
    folder: Path,
    *,
    mode: str = "separate",
    user: str = "agent",
    dockerfile: str = "FROM debian-bookworm\n" + USERADD + "WORKDIR /app\n",
    extra: str = "",
    solve: str = SOLVE,
    test: str = TEST,
) -> Path:
    for name in ("environment", "tests", "solution"):
        (folder / name).mkdir(parents=True)
    (folder / "task.toml").write_text(TASK.format(mode=mode, user=user, extra=extra))
    (folder / "instruction.md").write_text("Do it.\n")
    (folder / "environment/Dockerfile").write_text(dockerfile)
    (folder / "solution/solve.sh").write_text(solve)
    (folder / "tests/test.sh").write_text(test)
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., TrialOutcome]:
    def trial(task: Path, agent: str, **kwargs: Any) -> TrialOutcome:
        choice = SandboxChoice("namespace", OURS, kwargs)
        return run_trial(task, agent, environment=choice, trials_dir=tmp_path / "trials")

    return trial


def leftovers() -> list[str]:
    own = f"{os.getpid()}-"
    return [path.name for path in runtime_folder(current_identity()).iterdir() if path.name.startswith(own)]


# ---------------------------------------------------------------------------------------- whole trials


@pytest.mark.parametrize("mode", ["shared", "separate"])
def test_oracle_and_nop(tmp_path: Path, run: Callable[..., TrialOutcome], mode: str) -> None:
    task = build(tmp_path / "task", mode=mode, user="agent" if several() else "root")
    before = leftovers()
    oracle, nop = run(task, "oracle"), run(task, "nop")
    assert (oracle.failure, oracle.solve_exit_code) == (None, None)
    assert oracle.rewards == {"reward": 1}
    assert nop.rewards == {"reward": 0}
    for output in (oracle.agent_output, oracle.verifier_output, nop.verifier_output):
        assert "Seccomp:\t2" in output
        assert "NoNewPrivs:\t1" in output
        assert "CapBnd:\t00000000000000fb" in output
    assert "who=root" in oracle.verifier_output
    assert leftovers() == before
    notes = sorted(oracle.folder.glob("sandbox-*.json"))
    assert len(notes) == (2 if mode == "separate" else 1)
    note = json.loads(notes[0].read_text())
    assert note["tier"] == current_identity().tier
    assert "pids" in note["hard"] + note["watched"]
    assert note["breach"] == ""


def test_a_single_uid_is_honest_about_it(
    tmp_path: Path, run: Callable[..., TrialOutcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() == 0:
        pytest.skip("root has a better tier")
    monkeypatch.setenv("SKILL2ENV_SANDBOX_TIER", "single-uid")
    separate = run(build(tmp_path / "separate"), "oracle")
    assert separate.rewards == {"reward": 1}
    note = json.loads((separate.folder / "sandbox-env.json").read_text())
    assert (note["tier"], note["degraded"]) == ("single-uid", "single-uid")
    with pytest.raises(Exception, match="shared verifier need several user ids") as caught:
        run(build(tmp_path / "shared", mode="shared"), "oracle")
    assert "--add-subuids" in getattr(caught.value, "hint", "")
    assert run(build(tmp_path / "root", mode="shared", user="root"), "oracle").rewards == {"reward": 1}


def test_a_verifier_with_an_image_of_its_own(tmp_path: Path, run: Callable[..., TrialOutcome]) -> None:
    task = build(tmp_path / "task")
    (task / "tests/Dockerfile").write_text(
        "FROM debian-bookworm\nCOPY . /tests/\nENV GREETING=hello\nRUN test ! -e /app && chmod +x /tests/test.sh\n"
    )
    (task / "tests/test.sh").write_text(TEST.replace("ok=1", 'test "$GREETING" = hello && ok=1'))
    assert run(task, "oracle").rewards == {"reward": 1}
    assert run(task, "nop").rewards == {"reward": 0}


def test_a_prebuilt_image_of_the_catalog(tmp_path: Path, run: Callable[..., TrialOutcome]) -> None:
    task = build(
        tmp_path / "task", user="root", extra='docker_image = "debian:bookworm-slim"\nworkdir = "/app"'
    )
    (task / "environment/Dockerfile").unlink()
    (task / "environment/fixture.txt").write_text("given")
    (task / "solution/solve.sh").write_text(
        SOLVE + 'test "$(cat fixture.txt)" = given && test "$PWD" = /app\n'
    )
    oracle = run(task, "oracle")
    assert (oracle.rewards, oracle.solve_exit_code) == ({"reward": 1}, None)


def test_a_foreign_image_needs_a_map(tmp_path: Path, run: Callable[..., TrialOutcome]) -> None:
    dockerfile = "FROM example.org/team/image:1\n" + USERADD
    task = build(tmp_path / "task", dockerfile=dockerfile)
    with pytest.raises(Exception, match="not in the catalog"):
        run(task, "oracle")
    mapped = {"example.org/team/image:1": "debian-bookworm"}
    assert run(task, "oracle", image_map=mapped).rewards == {"reward": 1}


def test_artifacts_cross_over_with_modes_and_links(tmp_path: Path, run: Callable[..., TrialOutcome]) -> None:
    solve = SOLVE + (
        "mkdir -p /app/tree/sub && cd /app/tree && echo x > sub/f && chmod 600 sub/f && ln -s sub/f inside\n"
        "ln -s /etc/passwd outside; mkfifo pipe; printf '#!/bin/sh\\necho ran' > run; chmod 755 run\n"
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('s')\"\n"
    )
    test = (
        TEST.replace(
            "ok=1",
            '[ "$(cat /app/tree/inside)$(stat -c %a /app/tree/sub/f)$(/app/tree/run)" = x600ran ] && ok=1',
        )
        + "ls -A /app/tree\n"
    )
    outcome = run(build(tmp_path / "task", solve=solve, test=test), "oracle")
    assert outcome.rewards == {"reward": 1}
    assert outcome.verifier_output.split()[-3:] == ["inside", "run", "sub"]


def test_settings_of_the_image_and_the_task(tmp_path: Path, run: Callable[..., TrialOutcome]) -> None:
    dockerfile = (
        "FROM debian-bookworm\n"
        + USERADD
        + "ENV IMAGE=image BOTH=image\nWORKDIR /app/deep\nUSER root\nRUN chown agent .\n"
    )
    solve = (
        SOLVE + 'test "$IMAGE $BOTH $TASK $PWD $HOME" = "image task task /app/deep /home/agent" || exit 9\n'
    )
    if not several():
        solve = solve.replace("/home/agent", "/root")
    task = build(tmp_path / "task", dockerfile=dockerfile, solve=solve)
    with (task / "task.toml").open("a") as file:
        file.write('env = { TASK = "task", BOTH = "task" }\n')
        file.write(
            "[environment.healthcheck]\ncommand = \"test -d /app/deep && grep -q '^Seccomp:.2' /proc/self/status\"\n"
        )
        file.write("interval_sec = 0.1\nretries = 1\n")
    outcome = run(task, "oracle")
    assert (outcome.failure, outcome.solve_exit_code) == (None, None)
    (task / "task.toml").write_text(
        (task / "task.toml").read_text().replace("test -d /app/deep", "test -d /nowhere")
    )
    failed = run(task, "oracle")
    assert failed.failure is not None
    assert failed.failure.type == "HealthcheckError"


def test_a_solution_that_hangs_ends_with_its_time(tmp_path: Path, run: Callable[..., TrialOutcome]) -> None:
    task = build(tmp_path / "task", solve=SOLVE + "sleep 86777 & sleep 86777\n")
    (task / "task.toml").write_text(
        (task / "task.toml").read_text().replace("timeout_sec = 60", "timeout_sec = 2", 1)
    )
    began = time.monotonic()
    outcome = run(task, "oracle")
    assert time.monotonic() - began < 20
    assert outcome.failure is not None
    assert outcome.failure.type == "AgentTimeoutError"
    assert outcome.rewards == {"reward": 1}
    left = subprocess.run(["pgrep", "-f", "sleep 86777"], capture_output=True, text=True, check=False)
    assert left.stdout == ""


def test_a_verifier_that_kills_everything(tmp_path: Path, run: Callable[..., TrialOutcome]) -> None:
    outcome = run(build(tmp_path / "task", test="#!/bin/bash\nkill -9 -1\nkill -9 $PPID 1\n"), "oracle")
    assert outcome.rewards is None
    assert outcome.failure is not None
    assert outcome.failure.type == "RewardFileNotFoundError"


def test_a_flooding_verifier(tmp_path: Path, run: Callable[..., TrialOutcome]) -> None:
    outcome = run(build(tmp_path / "task", test=TEST + "yes | head -c 100M\n"), "nop")
    assert outcome.rewards == {"reward": 0}


def test_compose_services_are_refused_at_once(tmp_path: Path, run: Callable[..., TrialOutcome]) -> None:
    task = build(tmp_path / "task")
    (task / "environment/docker-compose.yaml").write_text("services: {main: {}}\n")
    with pytest.raises(Exception, match="compose services") as caught:
        run(task, "oracle")
    assert "--sandbox docker" in getattr(caught.value, "hint", "")


def test_many_trials_at_once(tmp_path: Path) -> None:
    """In a process of its own, as `harbor run` would: sixteen trials on one event loop."""
    task = build(tmp_path / "task")
    script = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig\n"
        "from harbor.trial.trial import Trial\n"
        "async def one(n):\n"
        "    trial = await Trial.create(TrialConfig(task=TaskConfig(path=Path(sys.argv[1])), trial_name=f't{n}',\n"
        "        trials_dir=Path(sys.argv[2]), agent=AgentConfig(name='oracle' if n % 2 else 'nop'),\n"
        f"        environment=EnvironmentConfig(import_path='{OURS}')))\n"
        "    result = await trial.run()\n"
        "    return result.verifier_result and result.verifier_result.rewards['reward']\n"
        "async def main():\n    print(sorted(await asyncio.gather(*map(one, range(16)))))\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(task), str(tmp_path / "many")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.strip().endswith(str([0] * 8 + [1] * 8)), done.stderr[-2000:]


# ---------------------------------------------------------------------------------------- the interface alone


@pytest.fixture
def environment(tmp_path: Path) -> Callable[..., NamespaceEnvironment]:
    def make(*, dockerfile: str = "FROM debian-bookworm\n", **settings: Any) -> NamespaceEnvironment:
        folder = tmp_path / "environment"
        folder.mkdir(exist_ok=True)
        (folder / "Dockerfile").write_text(dockerfile)
        paths = TrialPaths(tmp_path / "trial")
        paths.mkdir()
        config = EnvironmentConfig(**settings.pop("config", {}))
        return NamespaceEnvironment(
            environment_dir=folder, environment_name="x", session_id="trial__env", trial_paths=paths,
            task_env_config=config, logger=logging.getLogger("test"),
            network_policy=NetworkPolicy(network_mode=NetworkMode.NO_NETWORK), **settings,
        )  # fmt: skip

    return make


def test_one_by_one(environment: Callable[..., NamespaceEnvironment], tmp_path: Path) -> None:
    async def main() -> None:
        env = environment(config={"workdir": "/made/for/it", "env": {"A": "1"}})
        await env.start(force_build=False)
        try:
            done = await env.exec("pwd; echo $A$B; exit 3", env={"B": "2"})
            assert (done.return_code, done.stdout, done.stderr) == (3, "/made/for/it\n12\n", "")
            assert (await env.exec("printf '\\xff'; echo ok")).stdout == "\ufffdok\n"
            with pytest.raises(RuntimeError, match="timed out after 1 seconds"):
                await env.exec("sleep 60", timeout_sec=1)
            (tmp_path / "up/sub").mkdir(parents=True)
            (tmp_path / "up/sub/f").write_text("data")
            await env.upload_dir(tmp_path / "up", "/data")
            await env.upload_file(tmp_path / "up/sub/f", "/other/name")
            assert await env.is_dir("/data/sub")
            assert await env.is_file("/other/name")
            await env.download_dir("/data", tmp_path / "down")
            await env.download_file("/other/name", tmp_path / "one")
            assert (tmp_path / "down/sub/f").read_text() == (tmp_path / "one").read_text() == "data"
            await env.exec("echo skip > /data/skip.log")
            await env.download_dir_with_exclusions(
                source_dir="/data", target_dir=tmp_path / "less", exclude=["*.log"]
            )
            assert [path.name for path in (tmp_path / "less").iterdir()] == ["sub"]
            with pytest.raises(FileNotFoundError):
                await env.download_file("/no/such", tmp_path / "none")
        finally:
            await env.stop(delete=True)
            await env.stop(delete=True)

    asyncio.run(main())
    assert json.loads((tmp_path / "trial/sandbox-env.json").read_text())["breach"] == ""


def test_cancelling_a_command_kills_it(environment: Callable[..., NamespaceEnvironment]) -> None:
    async def main() -> None:
        env = environment()
        await env.start(force_build=False)
        try:
            task = asyncio.create_task(env.exec("sleep 86888 & sleep 86888"))
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            for _ in range(50):
                left = await env.exec("pgrep -f 'sleep [8]6888'")
                if not left.stdout:
                    break
                await asyncio.sleep(0.1)
            assert left.stdout == ""
        finally:
            await env.stop(delete=True)

    asyncio.run(main())


def test_cancelling_a_start_leaves_nothing(environment: Callable[..., NamespaceEnvironment]) -> None:
    before = leftovers()

    async def main() -> None:
        for wait in (0.0, 0.005, 0.01, 0.02, 0.03, 0.05):
            env = environment()
            task = asyncio.create_task(env.start(force_build=False))
            await asyncio.sleep(wait)
            task.cancel()
            await asyncio.wait([task])
            await env.stop(delete=True)
            assert leftovers() == before

    asyncio.run(main())


def test_cancelling_a_build_ends_it(environment: Callable[..., NamespaceEnvironment]) -> None:
    async def main() -> None:
        env = environment(dockerfile=f"FROM debian-bookworm\nRUN echo {time.time()} && sleep 86999\n")
        task = asyncio.create_task(env.start(force_build=False))
        for _ in range(100):
            await asyncio.sleep(0.1)
            if running("sleep 86999"):
                break
        else:
            raise AssertionError("the build never started")
        task.cancel()
        await asyncio.wait([task])
        await env.stop(delete=True)
        for _ in range(50):
            if not running("sleep 86999"):
                return
            await asyncio.sleep(0.1)
        raise AssertionError("the build still runs")

    asyncio.run(main())


def running(what: str) -> bool:
    done = subprocess.run(["pgrep", "-f", f"^{what}"], capture_output=True, check=False)
    return done.returncode == 0


def test_the_loop_is_never_blocked(environment: Callable[..., NamespaceEnvironment]) -> None:
    async def main() -> float:
        worst, last = 0.0, time.monotonic()

        async def tick() -> None:
            nonlocal worst, last
            while True:
                await asyncio.sleep(0.005)
                worst, last = max(worst, time.monotonic() - last), time.monotonic()

        ticking = asyncio.create_task(tick())
        env = environment()
        await env.start(force_build=False)
        await env.exec("sleep 0.5")
        await env.stop(delete=True)
        ticking.cancel()
        return worst

    assert asyncio.run(main()) < 0.4  # a few milliseconds where nothing else runs


def test_limits_that_cannot_be_enforced(
    environment: Callable[..., NamespaceEnvironment], monkeypatch: pytest.MonkeyPatch
) -> None:
    from skill2env.sandbox import limits
    from skill2env.sandbox.cgroups import Group

    monkeypatch.setattr(limits, "make_group", lambda _: Group())
    with pytest.raises(UserError, match="limit on cpus") as caught:
        environment(config={"cpus": 0.5})
    assert "--allow-unlimited" in caught.value.hint
    assert environment(config={"cpus": 0.5}, allow_unlimited=True).limits.cpus == 0.5


def test_kept_files(
    environment: Callable[..., NamespaceEnvironment], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        env = environment(keep=True)
        await env.start(force_build=False)
        await env.exec("echo evidence > /evidence")
        await env.stop(delete=True)

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
    [message] = [record.message for record in caplog.records if "kept what" in record.message]
    kept = Path(message.rpartition(": ")[2])
    assert (kept / "evidence").read_text() == "evidence\n"
    from skill2env.sandbox.scratch import remove_tree

    remove_tree(kept, current_identity())


def test_off_loop_hands_on_results_and_errors() -> None:
    async def main() -> None:
        assert await off_loop(lambda: 7) == 7
        with pytest.raises(KeyError):
            await off_loop(lambda: {}["x"])

    asyncio.run(main())
