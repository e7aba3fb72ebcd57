"""What holds a container back: limits, and the network by the task's policy."""

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harbor.models.task.config import NetworkMode, NetworkPolicy

from skill2env.errors import InfraError
from skill2env.sandbox.box_environment import BoxEnvironment

Use = Callable[..., None]
OFFLINE = NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)
CODE = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"
FETCH = f'python3 -c "{CODE}" '


def test_no_network_is_none(use: Use) -> None:
    async def work(env: BoxEnvironment) -> None:
        told = await env.exec(
            "ls /sys/class/net 2>/dev/null || cut -d: -f1 -s /proc/net/dev; wc -l < /proc/net/route"
        )
        assert "eth0" not in (told.stdout or "")
        code = "import socket; socket.create_connection(('198.51.100.1', 80), 3)"
        assert (await env.exec(f'python3 -c "{code}"')).return_code == 1
        assert (await env.exec("env | grep -i proxy")).stdout == ""

    use(work)


def test_memory(use: Use) -> None:
    async def work(env: BoxEnvironment) -> None:
        done = await env.exec("python3 -c \"x = b'x' * (600 * 2**20); import time; time.sleep(5)\"")
        assert done.return_code != 0
        assert (await env.exec("echo alive")).stdout == "alive\n"

    use(work, memory_mb=256)


def test_processes(use: Use) -> None:
    async def work(env: BoxEnvironment) -> None:
        count = "for n in $(seq 700); do sleep 3 & done 2>/dev/null; jobs -r | wc -l"
        try:
            told = (await env.exec(f"bash -c '{count}' 2>/dev/null", timeout_sec=60)).stdout or "0"
        except (RuntimeError, InfraError):
            return
        assert int(told.split()[-1] if told.split() else 0) <= 512

    use(work)


def test_storage_of_one_file(use: Use) -> None:
    async def work(env: BoxEnvironment) -> None:
        assert (await env.exec("head -c 100M /dev/zero > /big; stat -c %s /big")).stdout in ("52428800\n", "")

    use(work, storage_mb=50)


def test_how_it_was_confined_is_written_down(use: Use, tmp_path: Path, kind: str) -> None:
    async def work(env: BoxEnvironment) -> None:
        await env.exec("true")

    use(work, cpus=1, memory_mb=512, storage_mb=512)
    note = json.loads((tmp_path / "trial/sandbox-env.json").read_text())
    assert (note["breach"], note["degraded"] in ("", "single-uid"), note["absent"]) == ("", True, [])
    assert {*note["hard"], *note["watched"]} == {"cpus", "memory_mb", "pids", "storage_mb"}
    assert kind == "namespace" or note["tier"] == kind


# ---------------------------------------------------------------------------------------------------- networks


@pytest.fixture
def server() -> Iterator[int]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello from the host")

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running.server_address[1]
        running.shutdown()


def test_an_allowlist_is_what_can_be_reached(use: Use, server: int, tmp_path: Path) -> None:
    allowed = NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=["127.0.0.1"])

    async def work(env: BoxEnvironment) -> None:
        assert (await env.exec(f"{FETCH} http://127.0.0.1:{server}/")).stdout == "hello from the host\n"
        assert (await env.exec(f"{FETCH} http://example.org/")).return_code != 0
        await env.set_network_policy(OFFLINE)
        assert (await env.exec(f"{FETCH} http://127.0.0.1:{server}/")).return_code != 0
        await env.set_network_policy(allowed)
        assert (await env.exec(f"{FETCH} http://127.0.0.1:{server}/")).return_code == 0

    use(work, policy=allowed, phases=(OFFLINE,), options={"private_hosts": [f"127.0.0.1:{server}"]})
    log = (tmp_path / "trial/network-env.jsonl").read_text()
    assert '"example.org"' in log


def test_a_trial_that_started_offline_stays_offline(use: Use) -> None:
    async def work(env: BoxEnvironment) -> None:
        with pytest.raises(InfraError, match="started offline"):
            await env.set_network_policy(NetworkPolicy(network_mode=NetworkMode.PUBLIC))

    use(work)
