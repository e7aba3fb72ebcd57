"""What agents and verifiers do over the length of a trial: terminals, services, hooks, and every way to end."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

from skill2env.sandbox import scratch
from skill2env.sandbox.environment import NamespaceEnvironment
from skill2env.sandbox.identity import current_identity

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("rootfs")]
DOCKERFILE = (
    "FROM debian-bookworm\nRUN useradd --create-home agent && mkdir /app && chown agent /app\nWORKDIR /app\n"
)
Body = Callable[[NamespaceEnvironment], Coroutine[Any, Any, None]]


@pytest.fixture
def within(tmp_path: Path) -> Callable[[Body], None]:
    """Runs a coroutine function with a started environment."""

    def run(body: Body) -> None:
        import logging

        folder = tmp_path / "environment"
        folder.mkdir(exist_ok=True)
        (folder / "Dockerfile").write_text(DOCKERFILE)
        paths = TrialPaths(tmp_path / "trial")
        paths.mkdir()
        env = NamespaceEnvironment(
            environment_dir=folder, environment_name="x", session_id="trial__env", trial_paths=paths,
            task_env_config=EnvironmentConfig(), logger=logging.getLogger("test"),
            network_policy=NetworkPolicy(network_mode=NetworkMode.NO_NETWORK),
        )  # fmt: skip

        async def main() -> None:
            try:
                await env.start(force_build=False)
                await body(env)
            finally:
                await env.stop(delete=True)

        asyncio.run(main())

    return run


@pytest.mark.parametrize("user", ["root", "agent"])
def test_a_tmux_session_as_terminal_agents_use_it(within: Callable[[Body], None], user: str) -> None:
    """Harbor's terminus-2 starts one with a command, sends keys with others, and captures the pane with more."""
    if user == "agent" and not current_identity().several_users:
        pytest.skip("one uid")

    async def body(env: NamespaceEnvironment) -> None:
        async def sh(command: str) -> str:
            done = await env.exec(command, user=user, timeout_sec=20)
            assert done.return_code == 0, (command, done)
            return done.stdout or ""

        await sh(
            "export TERM=xterm-256color SHELL=/bin/bash; tmux new-session -x 160 -y 40 -d -s main 'bash --login'"
        )
        await sh("tmux pipe-pane -t main 'cat > /tmp/$(id -un).pane'")
        await sh(
            "tmux send-keys -t main 'tty; stty size; echo $((6*7))-$(id -un)' Enter; tmux wait-for -S none"
        )
        for _ in range(50):
            pane = await sh("tmux capture-pane -p -t main")
            if f"42-{user}" in pane:
                break
            await asyncio.sleep(0.1)
        assert f"42-{user}" in pane
        assert "/dev/pts/" in pane
        assert "40 160" in pane or "39 160" in pane
        # A program in the foreground ends with the keys of the terminal.
        await sh("tmux send-keys -t main 'sleep 500' Enter; sleep 0.3; tmux send-keys -t main C-c; sleep 0.3")
        assert "sleep" not in await sh("pgrep -a -u $(id -u) -x sleep; true")
        await sh("tmux kill-session -t main")

    within(body)


@pytest.mark.parametrize("user", ["root", "agent"])
def test_terminals_and_shared_memory(within: Callable[[Body], None], user: str) -> None:
    if user == "agent" and not current_identity().several_users:
        pytest.skip("one uid")

    async def body(env: NamespaceEnvironment) -> None:
        script = (
            "import os, pty, multiprocessing.shared_memory as m, multiprocessing as p\n"
            "s = m.SharedMemory(create=True, size=1 << 20); s.buf[0] = 7; s.close(); s.unlink()\n"
            "p.Queue(); p.Lock()\n"
            "pty.spawn(['sh', '-c', 'tty'])\nprint(oct(os.stat('/dev/shm').st_mode), os.path.exists('/dev/ptmx'))"
        )
        done = await env.exec(f'python3 -c "{script}"', user=user, timeout_sec=20)
        assert done.return_code == 0, done
        assert "/dev/pts/" in (done.stdout or "")
        assert "0o41777 True" in (done.stdout or "")

    within(body)


def test_a_service_answers_later_commands_and_ends_with_the_trial(within: Callable[[Body], None]) -> None:
    user = "agent" if current_identity().several_users else "root"

    async def body(env: NamespaceEnvironment) -> None:
        serve = "nohup python3 -m http.server 8123 --bind 127.0.0.1 > /tmp/log 2>&1 & echo started"
        began = time.monotonic()
        assert (await env.exec(serve, user=user, timeout_sec=30)).stdout == "started\n"
        assert time.monotonic() - began < 5
        ask = (
            "import urllib.request, time\nfor _ in range(50):\n"
            "  try: print(urllib.request.urlopen('http://127.0.0.1:8123').status); break\n"
            "  except OSError: time.sleep(0.1)"
        )
        for _ in range(2):
            assert (await env.exec(f'python3 -c "{ask}"', timeout_sec=20)).stdout == "200\n"
        # The time limit of another command does not end it.
        with pytest.raises(RuntimeError, match="timed out"):
            await env.exec("sleep 60", timeout_sec=1)
        assert (await env.exec(f'python3 -c "{ask}"', timeout_sec=20)).stdout == "200\n"

    within(body)
    left = subprocess.run(["pgrep", "-f", "^python3 -m http.server 8123"], capture_output=True, check=False)
    assert left.stdout == b""


KILLED = """
import sys, time, os, signal
from pathlib import Path
from skill2env.sandbox.egress import Egress
from skill2env.sandbox.network import trial_network
from skill2env.sandbox.session import ResourceLimits, Sandbox, SandboxSpec
with trial_network(Egress.public(), "bookworm") as network:
    spec = SandboxSpec(layers=(Path(sys.argv[1]),), binds=network.binds, proxy_socket=network.proxy.socket_path,
        limits=ResourceLimits(memory_mb=300))
    with Sandbox(spec) as box:
        box.exec(["sh", "-c", "(setsid sleep 86455 &) ; exit 0"])
        print("up", flush=True)
        time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_however_the_host_process_ends_nothing_stays(rootfs: Path, number: signal.Signals) -> None:
    """Processes at once; folders, sockets and control groups at the latest with the next start."""
    runs = scratch.runtime_folder(current_identity())
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(rootfs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        own = [path for path in runs.iterdir() if path.name.startswith(f"{child.pid}-")]
        assert len(own) == 2, "the sandbox's folder, and the one of the proxy's socket"
        child.send_signal(number)
    end = time.monotonic() + 10
    while subprocess.run(["pgrep", "-f", "^sleep 86455"], capture_output=True, check=False).stdout:
        assert time.monotonic() < end, "a process of the sandbox outlived its host process"
        time.sleep(0.05)
    scratch.sweep(current_identity())
    assert not any(path.exists() for path in own)
    mounts = Path("/proc/self/mounts").read_text()
    assert not any(str(path) in mounts for path in own)
    assert os.path.lexists(runs)


def test_folders_of_sandboxes_are_closed_to_other_users() -> None:
    runs = scratch.runtime_folder(current_identity())
    assert runs.stat().st_mode & 0o007 == 0
