"""Fixtures and switches for every test: where shared data lies, and what this machine can run."""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from skill2env.errors import Boundary, InfraError

if TYPE_CHECKING:
    from skill2env.sandbox.images import BaseImage

REPOSITORY = Path(__file__).resolve().parent.parent

# Before anything imports harbor: neither it nor litellm may reach out while tests run.
os.environ.setdefault("HARBOR_TELEMETRY", "0")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "true")

# A shell starts what runs behind its back with SIGINT ignored, and children inherit that: Ctrl-C could not be tried.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No time limit for single examples: machines are shared, and slowness has tests of its own. In CI every run tries the
# same examples, so that a red build is red again; elsewhere new ones are searched.
settings.register_profile("skill2env", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("skill2env")


@pytest.fixture(scope="session")
def repository() -> Path:
    """Root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared() -> Path:
    """Data sets beside the checkout (``SKILL2ENV_SHARED`` overrides); the test is skipped where they are absent."""
    path = Path(os.environ.get("SKILL2ENV_SHARED", REPOSITORY.parent / "shared")).resolve()
    if not os.access(path, os.R_OK | os.X_OK):
        pytest.skip(f"shared data is absent or closed to this user: {path} (set SKILL2ENV_SHARED)")
    return path


@pytest.fixture(scope="session")
def base_image() -> "BaseImage":
    """The catalog's first base, built once into the user's cache; skipped where the machine forbids sandboxes."""
    from skill2env.sandbox.images import ensure_base

    try:
        return ensure_base()
    except InfraError as error:
        if error.boundary is not Boundary.SANDBOX:
            raise
        pytest.skip(f"no sandbox on this machine: {error.message}")


@pytest.fixture(scope="session")
def base(base_image: "BaseImage") -> "BaseImage":
    """The catalog's first base, where trials can run in the namespace sandbox."""
    from skill2env.harbor.sandboxes import namespace_works

    if not namespace_works():
        pytest.skip("this machine forbids the namespace sandbox")
    return base_image


@pytest.fixture(scope="session")
def builder() -> ModuleType:
    """The task builder of tests/verify; loaded by its path, because files of one name lie in many folders."""
    path = REPOSITORY / "tests/verify/task_builder.py"
    specification = importlib.util.spec_from_file_location("task_builder", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def _own_choice_of_containers() -> Iterator[None]:
    """A test that chooses an engine chooses it for itself only."""
    yield
    containers = sys.modules.get("skill2env.sandbox.containers")
    if containers is not None:
        containers.use("namespace")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a tmpfs with the given options and returns its folder; skips where mounting is not allowed."""
    mounted: list[Path] = []

    def mount(options: str) -> Path:
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip(f"uid {os.geteuid()} may not mount a tmpfs: {done.stderr.decode().strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


REGISTRY_LOGIN = ("ali", "open sesame")
_HTPASSWD = "ali:$2b$05$abcdefghijklmnopqrstuupx2xBUC4954936wVIjyyPHmUBFu0wCW\n"


@pytest.fixture
def registry_server(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Starts Debian's docker-registry on a free port of this machine and returns ``HOST:PORT``; skips without it.

    With ``login=True`` it wants `REGISTRY_LOGIN`.
    """
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("docker-registry is not installed (Debian package of that name)")
    started: list[subprocess.Popen[bytes]] = []

    def start(*, login: bool = False) -> str:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            host = f"127.0.0.1:{probe.getsockname()[1]}"
        folder = tmp_path / f"registry{len(started)}"
        folder.mkdir()
        lines = [
            "version: 0.1",
            f"storage: {{filesystem: {{rootdirectory: {folder / 'data'}}}}}",
            f"http: {{addr: '{host}'}}",
            *([f"auth: {{htpasswd: {{realm: test, path: {folder / 'htpasswd'}}}}}"] if login else []),
        ]
        (folder / "htpasswd").write_text(_HTPASSWD)
        (folder / "config.yml").write_text("\n".join(lines) + "\n")
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [program, "serve", str(folder / "config.yml")],
                stdout=log,
                stderr=log,
                env={"OTEL_TRACES_EXPORTER": "none"},
            )
        started.append(server)
        end = time.monotonic() + 60
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", int(host.rpartition(":")[2])), 1):
                return host
            assert server.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < end, "the registry does not start"
            time.sleep(0.05)

    yield start
    for server in started:
        server.kill()
        server.wait()


@cache
def _docker_runs() -> bool:
    docker = shutil.which("docker")
    if docker is None:
        return False
    probe = subprocess.run([docker, "version"], capture_output=True, timeout=30, check=False)
    return probe.returncode == 0


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Skip, with the reason, what needs an engine that is not there."""
    needs_docker = [item for item in items if item.get_closest_marker("docker")]
    if needs_docker and not _docker_runs():
        for item in needs_docker:
            item.add_marker(pytest.mark.skip(reason="no docker engine is running"))
