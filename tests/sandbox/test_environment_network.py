"""Network modes of trials: what commands inside can reach in each phase, and what the log says of it."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

from skill2env.errors import InfraError, UserError
from skill2env.harbor.sandboxes import SandboxChoice
from skill2env.harbor.trial import run_trial
from skill2env.sandbox.environment import NamespaceEnvironment, NamespaceOptions
from skill2env.sandbox.identity import current_identity

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("rootfs", "no_machine_proxy")]

OFFLINE = NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)
PUBLIC = NetworkPolicy(network_mode=NetworkMode.PUBLIC)
FETCH = r"""python3 - "$URL" <<'END'
import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
except urllib.error.HTTPError as error:
    print("HTTP", error.code)
except OSError as error:
    print("FAILED", type(error).__name__)
END
"""


def allowed(*hosts: str) -> NetworkPolicy:
    return NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=list(hosts))


@pytest.fixture
def port(serve: Callable[[bytes], int]) -> int:
    return serve(b"from the host")


Body = Callable[[NamespaceEnvironment], Awaitable[None]]


@pytest.fixture
def within(tmp_path: Path) -> Callable[..., Path]:
    """Runs a coroutine function with a started environment; returns the trial's folder."""

    def run(
        body: Body,
        policy: NetworkPolicy,
        *phases: NetworkPolicy,
        private: tuple[str, ...] = (),
        **config: Any,
    ) -> Path:
        folder = tmp_path / "environment"
        folder.mkdir(exist_ok=True)
        (folder / "Dockerfile").write_text("FROM debian-bookworm\n")
        paths = TrialPaths(tmp_path / "trial")
        paths.mkdir()
        env = NamespaceEnvironment(
            environment_dir=folder, environment_name="x", session_id="trial__env", trial_paths=paths,
            task_env_config=EnvironmentConfig(**config), logger=logging.getLogger("test"), network_policy=policy,
            phase_network_policies=list(phases), private_hosts=list(private),
        )  # fmt: skip

        async def main() -> None:
            try:
                await env.start(force_build=False)
                await body(env)
            finally:
                await env.stop(delete=True)

        asyncio.run(main())
        return tmp_path / "trial"

    return run


async def fetch(env: NamespaceEnvironment, url: str) -> str:
    done = await env.exec(FETCH, env={"URL": url})
    return (done.stdout or "").strip() + (done.stderr or "")


def log_of(folder: Path) -> list[tuple[str, str]]:
    lines = (folder / "network-env.jsonl").read_text().splitlines()
    return [(entry["host"], entry["verdict"]) for entry in map(json.loads, lines)]


def test_an_offline_trial_has_no_way_out_at_all(within: Callable[..., Path], port: int) -> None:
    async def body(env: NamespaceEnvironment) -> None:
        assert await fetch(env, f"http://127.0.0.1:{port}/") == "FAILED URLError"
        assert (await env.exec("ls /run/skill2env; env | grep -i proxy")).stdout == "guest\n"

    folder = within(body, OFFLINE, private=(f"127.0.0.1:{port}",))
    assert not (folder / "network-env.jsonl").exists()


def test_a_port_of_this_machine_where_the_policy_names_it(within: Callable[..., Path], port: int) -> None:
    async def body(env: NamespaceEnvironment) -> None:
        assert await fetch(env, f"http://127.0.0.1:{port}/") == "from the host"
        assert (await env.exec("tail -n +3 /proc/net/dev | cut -d: -f1")).stdout.split() == ["lo"], (
            "no interface of the host"
        )

    folder = within(body, allowed("127.0.0.1"), private=(f"127.0.0.1:{port}",))
    assert log_of(folder) == [("127.0.0.1", "allowed")]


def test_the_policy_follows_the_phases(within: Callable[..., Path], port: int) -> None:
    async def body(env: NamespaceEnvironment) -> None:
        url = f"http://127.0.0.1:{port}/"
        assert await fetch(env, url) == "FAILED RemoteDisconnected"
        await env.set_network_policy(allowed("127.0.0.1"))
        assert await fetch(env, url) == "from the host"
        await env.set_network_policy(OFFLINE)
        assert await fetch(env, url) == "FAILED RemoteDisconnected"
        assert await fetch(env, "http://example.org/") == "HTTP 403"

    folder = within(body, OFFLINE, allowed("127.0.0.1"), private=(f"127.0.0.1:{port}",))
    assert [verdict for _, verdict in log_of(folder)] == ["refused", "allowed", "refused", "refused"]


def test_a_connection_ends_with_the_phase_that_allowed_it(within: Callable[..., Path], port: int) -> None:
    async def body(env: NamespaceEnvironment) -> None:
        script = (
            f"import socket, time\ns = socket.create_connection(('127.0.0.1', {port}))\nprint(s.recv(10))"
        )
        running = asyncio.ensure_future(env.exec(f'python3 -c "{script}"'))
        await asyncio.sleep(0.5)
        assert not running.done()
        await env.set_network_policy(OFFLINE)
        assert (await asyncio.wait_for(running, 10)).stdout == "b''\n"

    within(body, allowed("127.0.0.1"), OFFLINE, private=(f"127.0.0.1:{port}",))


def test_neither_public_nor_a_list_reaches_the_private_network(
    within: Callable[..., Path], port: int
) -> None:
    async def body(env: NamespaceEnvironment) -> None:
        for host in ("169.254.169.254", "10.0.0.1", "[::1]", "localhost", "0.0.0.0"):
            told = (await env.exec(f"exec 3<>/dev/tcp/127.0.0.1/3128; printf 'GET http://{host}:{port}/ HTTP/1.1\\r\\n"
                                   "\\r\\n' >&3; head -n 1 <&3")).stdout  # fmt: skip
            assert told == "HTTP/1.1 403 Forbidden\r\n", host

    for policy in (PUBLIC, allowed("169.254.169.254", "10.0.0.0/8", "::1", "localhost", "0.0.0.0")):
        folder = within(body, policy)
        assert {verdict for _, verdict in log_of(folder)} == {"refused"}


def test_programs_are_told_of_the_proxy_and_a_task_can_say_otherwise(within: Callable[..., Path]) -> None:
    async def body(env: NamespaceEnvironment) -> None:
        told = (await env.exec("echo $http_proxy $HTTPS_PROXY $no_proxy; echo $APT_CONFIG")).stdout
        assert told == "mine http://127.0.0.1:3128 localhost,127.0.0.1,::1\n/run/skill2env/apt.conf\n"
        assert (
            await env.exec("apt-config dump Dir::Etc::sourcelist; cat /run/skill2env/sources.list")
        ).stdout
        await env.set_network_policy(allowed("example.org"))
        assert (await env.exec("echo ${APT_CONFIG-none}")).stdout == "none\n", (
            "package sources come with public only"
        )

    within(body, PUBLIC, env={"http_proxy": "mine"})


def test_a_trial_that_was_started_offline_stays_so(within: Callable[..., Path]) -> None:
    async def body(env: NamespaceEnvironment) -> None:
        await env.set_network_policy(OFFLINE)
        with pytest.raises(InfraError, match="started offline"):
            await env.set_network_policy(PUBLIC)

    within(body, OFFLINE)


@pytest.mark.parametrize("number", [80, 3128])
def test_ports_that_cannot_be_offered(within: Callable[..., Path], number: int) -> None:
    async def body(_: NamespaceEnvironment) -> None:
        raise AssertionError

    with pytest.raises(UserError, match=f"port {number} of this machine cannot be offered") as caught:
        within(body, PUBLIC, private=(f"localhost:{number}",))
    assert "1024" in caught.value.hint


TASK = """
schema_version = "1.4"
[task]
name = "test/network"
[agent]
timeout_sec = 60
user = "{user}"
network_mode = "allowlist"
allowed_hosts = ["127.0.0.1"]
[verifier]
timeout_sec = 60
environment_mode = "shared"
[environment]
network_mode = "no-network"
"""


def test_a_whole_trial_with_a_network_for_its_agent_only(tmp_path: Path, port: int) -> None:
    task = tmp_path / "task"
    for name in ("environment", "tests", "solution"):
        (task / name).mkdir(parents=True)
    user = "agent" if current_identity().several_users else "root"
    (task / "task.toml").write_text(TASK.format(user=user))
    (task / "instruction.md").write_text("Fetch it.\n")
    (task / "environment/Dockerfile").write_text(
        "FROM debian-bookworm\nRUN useradd -m agent && mkdir /app && chown agent /app\nWORKDIR /app\n"
    )
    read = f"python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}/').read().decode())\""
    (task / "solution/solve.sh").write_text(f"#!/bin/bash\n{read} > /app/got.txt\n")
    (task / "tests/test.sh").write_text(
        f"#!/bin/bash\nr=0; grep -q 'from the host' /app/got.txt && ! {read} && r=1\n"
        'echo "{\\"reward\\": $r}" > /logs/verifier/reward.json\n'
    )
    choice = SandboxChoice(
        "namespace", "skill2env.sandbox:NamespaceEnvironment", {"private_hosts": [f"127.0.0.1:{port}"]}
    )
    outcome = run_trial(task, "oracle", environment=choice, trials_dir=tmp_path / "trials")
    assert outcome.failure is None, outcome.failure
    assert outcome.rewards == {"reward": 1}, outcome.verifier_output
    assert log_of(outcome.folder)[0] == ("127.0.0.1", "allowed")


def test_options_are_described() -> None:
    assert all(field.description for field in NamespaceOptions.model_fields.values())
