"""Unusual surroundings of a trial, and what is said where they cannot be made."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

from skill2env.errors import InfraError
from skill2env.sandbox.conditions import Conditions, NotApplicable
from skill2env.sandbox.engine_environment import DockerEnvironment
from skill2env.sandbox.environment import NamespaceEnvironment
from skill2env.sandbox.tools import host_file

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("rootfs")]
KINDS = [NamespaceEnvironment, pytest.param(DockerEnvironment, marks=pytest.mark.docker)]


@pytest.fixture(params=KINDS)
def ask(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., str]:
    """What a command prints under conditions, in each kind of sandbox."""
    kind: type[NamespaceEnvironment] | type[DockerEnvironment] = request.param

    def run(command: str, dockerfile: str = "", **conditions: Any) -> str:
        folder = tmp_path / "environment"
        folder.mkdir(exist_ok=True)
        (folder / "Dockerfile").write_text("FROM debian-bookworm\n" + dockerfile)
        paths = TrialPaths(tmp_path / "trial")
        paths.mkdir()
        env = kind(
            environment_dir=folder, environment_name="x", session_id="trial__env", trial_paths=paths,
            task_env_config=EnvironmentConfig(), logger=logging.getLogger("test"),
            network_policy=NetworkPolicy(network_mode=NetworkMode.NO_NETWORK), conditions=conditions,
        )  # fmt: skip

        async def main() -> str:
            try:
                await env.start(force_build=False)
                return (await env.exec(command)).stdout or ""
            finally:
                await env.stop(delete=True)

        return asyncio.run(main())

    return run


def test_none_change_nothing(ask: Callable[..., str]) -> None:
    assert ask("echo $X; date +%Z") == "\nUTC\n"
    assert Conditions() == Conditions.model_validate({})


def test_a_script_files_and_variables(ask: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "mark").write_text("here\n")
    told = ask(
        "cat /opt/mark /etc/timezone; echo $X $Y; nproc",
        "ENV Y=image\n",
        script='echo "Asia/$X" > /etc/timezone',
        files={"/opt/mark": str(tmp_path / "mark")},
        env={"X": "Tokyo", "Y": "probe"},
        visible_cpus=1,
    )
    assert told == "here\nAsia/Tokyo\nTokyo image\n1\n", "what the image sets wins"


def test_where_they_do_not_apply(ask: Callable[..., str]) -> None:
    with pytest.raises(NotApplicable, match="no zone files") as caught:
        ask("true", script="echo looking; echo no zone files; exit 77")
    assert caught.value.why == "no zone files"


def test_processors_that_cannot_be_hidden(ask: Callable[..., str]) -> None:
    with pytest.raises(NotApplicable, match="processors here"):
        ask("true", visible_cpus=4096)


def test_a_failing_script_is_no_verdict(ask: Callable[..., str]) -> None:
    with pytest.raises(InfraError, match=r"exit code 3\): oh") as caught:
        ask("true", script="echo oh; exit 3")
    assert not isinstance(caught.value, NotApplicable)


def test_another_machine(ask: Callable[..., str]) -> None:
    memory = host_file("meminfo", b"MemTotal:        4096000 kB\n")
    told = ask("uname -n; cat /proc/meminfo", hostname="elsewhere", proc={"meminfo": str(memory)})
    assert told == "elsewhere\nMemTotal:        4096000 kB\n"


def test_a_file_below_proc_that_is_shown_or_refused(ask: Callable[..., str]) -> None:
    version = host_file("version", b"Other 1.0\n")
    try:
        told = ask("cat /proc/version", proc={"version": str(version)})
    except NotApplicable as reason:
        told = reason.why
    assert told in ("Other 1.0\n", "/proc/version cannot be changed here")
