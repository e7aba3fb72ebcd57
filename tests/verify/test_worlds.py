"""Unusual surroundings: what programs inside see of them, what stays, and what a trial sees, whatever runs it."""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

from skill2env.harbor.sandboxes import SandboxChoice, engine_sandbox, namespace_sandbox
from skill2env.sandbox.conditions import Conditions, NotApplicable
from skill2env.sandbox.environment import NamespaceEnvironment
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.tools import shared_folder
from skill2env.verify import worlds
from skill2env.verify.dates import DAY_SEC
from skill2env.verify.gate import GateContext, Subject
from skill2env.verify.rules import Profile
from skill2env.verify.trials import judged_trial

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("base")]
SEVERAL = pytest.mark.skipif(
    not current_identity().several_users, reason="an agent user needs several user ids (uidmap)"
)
AGENT = "RUN useradd --create-home agent && echo key > /home/agent/notes\n"

Seen = Callable[..., str]


@pytest.fixture
def seen(tmp_path: Path) -> Seen:
    """What commands print in a world."""

    def run(world: Conditions, *commands: str, dockerfile: str = "", user: str = "root") -> str:
        folder = tmp_path / "environment"
        folder.mkdir(exist_ok=True)
        (folder / "Dockerfile").write_text("FROM debian-bookworm\n" + dockerfile)
        (tmp_path / "tests").mkdir(exist_ok=True)
        (tmp_path / "tests/test.sh").write_text("#!/bin/bash\necho graded\n")
        paths = TrialPaths(tmp_path / "trial")
        paths.mkdir()
        env = NamespaceEnvironment(
            environment_dir=folder, environment_name="x", session_id="trial__env", trial_paths=paths,
            task_env_config=EnvironmentConfig(), logger=logging.getLogger("test"),
            network_policy=NetworkPolicy(network_mode=NetworkMode.NO_NETWORK),
            conditions=world.model_dump(exclude_defaults=True),
        )  # fmt: skip

        async def main() -> str:
            try:
                await env.start(force_build=False)
                await env.upload_dir(tmp_path / "tests", "/tests")
                done = [await env.exec(command, user=user) for command in commands]
                return "".join(one.stdout or "" for one in done)
            finally:
                await env.stop(delete=True)

        return asyncio.run(main())

    return run


@SEVERAL
def test_another_name_and_home_for_the_agent(seen: Seen) -> None:
    told = seen(
        worlds.another_user("agent"),
        'id -un; echo "$HOME"; echo ~agent; cat ~/notes; : > ~/mine && id -u; getent passwd agent | cut -d: -f7',
        dockerfile=AGENT,
        user="agent",
    )
    assert told == "somebody\n/home/somebody\n/home/somebody\nkey\n1000\n/bin/sh\n"


def test_another_name_and_home_for_root_and_a_home_that_the_image_pins(seen: Seen) -> None:
    world = worlds.another_user("root")
    assert seen(world, 'id -un; echo "$HOME"; id -u') == "somebody\n/home/somebody\n0\n"
    assert seen(world, 'echo "$HOME"', dockerfile="ENV HOME=/srv\n") == "/srv\n"


def test_a_container_without_that_user_stays_as_it_is(seen: Seen) -> None:
    assert seen(worlds.another_user("agent"), 'id -un; echo "$HOME"') == "root\n/root\n"


def test_a_home_too_large_to_copy_is_not_applicable(seen: Seen) -> None:
    large = AGENT + "RUN head -c 300000000 /dev/zero > /home/agent/large\n"
    with pytest.raises(NotApplicable, match="too large"):
        seen(worlds.another_user("agent"), "true", dockerfile=large)


def test_tests_can_be_run_and_not_written(seen: Seen, tmp_path: Path) -> None:
    given = tmp_path / "given"
    (given / "data").mkdir(parents=True)
    (given / "test.sh").write_text("#!/bin/bash\ncat /tests/data/truth\n")
    (given / "data/truth").write_text("41\n")
    with shared_folder(given) as folder:
        told = seen(
            worlds.tests_read_only(folder),
            "/tests/test.sh; : > /tests/x; : >> /tests/data/truth; rm -rf /tests/data; chmod 777 /tests; true",
            "find /tests -type f | sort; stat -c %a /tests",
        )
        assert folder.is_dir()
    assert told == "41\n/tests/data/truth\n/tests/test.sh\n755\n"
    assert not folder.exists()


def test_no_tests_at_all_are_not_applicable(seen: Seen, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    with shared_folder(tmp_path / "none") as folder, pytest.raises(NotApplicable, match="read-only"):
        seen(worlds.tests_read_only(folder), "true")


def test_several_at_once() -> None:
    both = worlds.together(
        worlds.another_user("agent"), worlds.tests_read_only(Path("/x")), worlds.hash_seed(1)
    )
    assert both.folders == {"/tests": "/x"}
    assert both.env == {"PYTHONHASHSEED": "1"}
    assert "somebody" in both.script


WORLDS: dict[str, tuple[Callable[[], Conditions], str, str]] = {
    "clock": (lambda: worlds.clock(40 * DAY_SEC), "echo $(( ($(date +%s) - BEGAN) / 86400 ))", "40"),
    "zone": (lambda: worlds.zone("Asia/Tokyo"), "date +%z", "+0900"),
    "locale": (lambda: worlds.locale("de_DE"), "printf %.1f 1,5", "1,5"),
    "machine": (
        lambda: worlds.machine(one_core=True),
        "echo $(uname -n) $(nproc) $(grep MemTotal /proc/meminfo | tr -dc 0-9) $(grep -c processor /proc/cpuinfo)",
        f"{worlds.HOST_NAME} 1 3276800 1",
    ),
    "user": (lambda: worlds.another_user("root"), "id -un 0", "somebody"),
    "tools": (worlds.broken_package_tools, "apt-get --version >/dev/null 2>&1; echo $?", "100"),
    "hashes": (lambda: worlds.hash_seed(7), "echo $PYTHONHASHSEED", "7"),
    "folders": (
        worlds.folder_order,
        'python3 -c \'import os; print(os.listdir("/etc")[::-1] == os.popen("ls -AU /etc").read().split())\'',
        "True",
    ),
}


@pytest.mark.sandbox
@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize(
    "choose",
    [
        namespace_sandbox,
        pytest.param(lambda: engine_sandbox("docker"), marks=pytest.mark.docker, id="docker"),
    ],
)
@pytest.mark.parametrize("world", WORLDS)
def test_a_trial_sees_the_world_or_says_why_not(
    runnable_task: Callable[..., Path], tmp_path: Path, world: str, choose: Callable[[], SandboxChoice]
) -> None:
    make, look, seen = WORLDS[world]
    script = f"#!/bin/bash\nBEGAN={int(time.time())}\n{look}\n"
    subject = Subject(runnable_task(changes={"solution/solve.sh": script}), Profile.OURS)
    context = GateContext(choose(), tmp_path / "evidence", infra_retries=0)

    def told(conditions: Conditions, label: str) -> str:
        outcome = judged_trial(subject, context, "oracle", folder="x", label=label, conditions=conditions)
        return outcome.agent_output.strip()

    assert told(Conditions(), "usual") != seen, "the usual surroundings are others"
    try:
        found = told(make(), "other")
    except NotApplicable as reason:
        pytest.skip(f"not applicable: {reason.why}")
    assert found == seen
