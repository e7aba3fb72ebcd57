"""Limits that an engine cannot enforce: reported and refused, with engines that only say what is wanted."""

import json
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

from skill2env.errors import InfraError, UserError
from skill2env.sandbox.engine import Engine, engine
from skill2env.sandbox.engine_box import EngineBox
from skill2env.sandbox.engine_environment import PodmanEnvironment
from skill2env.sandbox.engine_limits import absent_of, enforceable, limits_of_info
from skill2env.sandbox.engine_spec import EngineSpec
from skill2env.sandbox.limits import Enforced, ResourceLimits

ALL = frozenset({"cpus", "memory_mb", "pids", "visible_cpus"})
ROOT_V1 = {
    "cgroupVersion": "v1",
    "cgroupControllers": ["cpuset", "cpu", "memory", "pids"],
    "security": {"rootless": False},
}
ROOTLESS_V1 = {**ROOT_V1, "security": {"rootless": True}}
DELEGATED = {"cgroupVersion": "v2", "cgroupControllers": ["memory", "pids"], "security": {"rootless": True}}
NOTHING = {"cgroupVersion": "v2", "cgroupControllers": [], "security": {"rootless": True}}


@pytest.mark.parametrize(
    ("told", "names"),
    [
        ({"MemoryLimit": True, "CpuCfsQuota": True, "PidsLimit": True, "CPUSet": True}, ALL),
        (
            {"MemoryLimit": False, "CpuCfsQuota": False, "PidsLimit": False, "CgroupDriver": "none"},
            frozenset(),
        ),
        ({"MemoryLimit": True, "PidsLimit": True}, ALL - {"cpus", "visible_cpus"}),
        ({}, frozenset()),
        ({"host": ROOT_V1}, ALL),
        ({"host": ROOTLESS_V1}, frozenset()),
        ({"host": DELEGATED}, ALL - {"cpus", "visible_cpus"}),
        ({"host": NOTHING}, frozenset()),
        ({"host": {}}, frozenset()),
    ],
)
def test_what_engines_say_of_themselves(told: dict[str, Any], names: frozenset[str]) -> None:
    assert limits_of_info(told) == names


Fake = Callable[..., Path]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    """An engine on PATH that describes itself as told and does nothing; gives the file with the calls it got."""
    folder, calls = tmp_path / "bin", tmp_path / "calls"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def make(name: str, told: object, code: int = 0) -> Path:
        (folder / "info").write_text(told if isinstance(told, str) else json.dumps(told))
        (folder / name).write_text(
            f'#!/bin/sh\necho "$*" >> {calls}\n'
            f'case " $* " in *" info "*) cat {folder}/info; exit {code} ;; esac\n'
        )
        (folder / name).chmod(0o755)
        (folder / "runc").write_text("#!/bin/sh\n")
        for cached in (engine, enforceable):
            cached.cache_clear()
        return calls

    yield make
    for cached in (engine, enforceable):
        cached.cache_clear()


def run_line(calls: Path) -> str:
    return next(line for line in calls.read_text().splitlines() if f" {line} ".find(" run -d ") >= 0)


LIMITS = ResourceLimits(cpus=0.5, memory_mb=256, pids=100, storage_mb=50, visible_cpus=1)


def test_what_cannot_be_enforced_is_left_away_and_reported(fake: Fake) -> None:
    calls = fake("podman", {"host": ROOTLESS_V1})
    with EngineBox(Engine("podman"), EngineSpec("image", limits=LIMITS)) as box:
        assert box.enforced == Enforced((), ("storage_mb",), ("cpus", "memory_mb", "pids"))
    line = run_line(calls)
    assert not any(word in line for word in ("--memory", "--cpus", "--pids-limit"))
    assert "fsize=52428800" in line
    assert "--cpuset-cpus" not in line


def test_what_can_be_enforced_is_asked_for(fake: Fake) -> None:
    calls = fake("docker", {"MemoryLimit": True, "PidsLimit": True, "CpuCfsQuota": False, "CPUSet": True})
    with EngineBox(Engine("docker"), EngineSpec("image", limits=LIMITS)) as box:
        assert box.enforced == Enforced(("memory_mb", "pids"), ("storage_mb",), ("cpus",))
    line = run_line(calls)
    assert "--memory 256m" in line
    assert "--pids-limit 100" in line
    assert "--cpus " not in line
    assert ("--cpuset-cpus 0-0" in line) == (os.cpu_count() != 1)
    assert calls.read_text().count("info --format") == 1, "asked once for each process"


@pytest.mark.parametrize(
    ("told", "code", "why"), [("no json", 0, "unreadably"), ("broken", 1, "asking about limits")]
)
def test_an_engine_that_says_nothing_useful(fake: Fake, told: str, code: int, why: str) -> None:
    fake("docker", told, code)
    with pytest.raises(InfraError, match=why):
        absent_of(Engine("docker"), LIMITS)
    assert absent_of(Engine("docker"), ResourceLimits(pids=None)) == (), "nothing asked for, nobody asked"


@pytest.fixture
def environment(tmp_path: Path) -> Callable[..., PodmanEnvironment]:
    folder = tmp_path / "environment"
    folder.mkdir()
    (folder / "Dockerfile").write_text("FROM debian-bookworm\n")
    paths = TrialPaths(tmp_path / "trial")
    paths.mkdir()

    def make(config: EnvironmentConfig, **options: object) -> PodmanEnvironment:
        return PodmanEnvironment(
            environment_dir=folder, environment_name="x", session_id="trial__env", trial_paths=paths,
            task_env_config=config, logger=logging.getLogger("test"),
            network_policy=NetworkPolicy(network_mode=NetworkMode.NO_NETWORK), **options,
        )  # fmt: skip

    return make


def test_a_task_that_asks_for_what_cannot_be_enforced(
    fake: Fake, environment: Callable[..., PodmanEnvironment]
) -> None:
    fake("podman", {"host": NOTHING})
    asks = EnvironmentConfig(memory_mb=512, cpus=1)
    with pytest.raises(
        UserError, match="podman cannot enforce the task's limit on cpus, memory_mb here"
    ) as caught:
        environment(asks)
    assert "--allow-unlimited" in caught.value.hint
    environment(EnvironmentConfig())  # bounds that only protect the machine are no reason to refuse a task
    allowed = environment(asks, allow_unlimited=True)
    with EngineBox(allowed.engine, EngineSpec("image", limits=allowed.limits)) as box:
        note = allowed._confinement(box)  # pyright: ignore[reportPrivateUsage]
    assert note["absent"] == ("cpus", "memory_mb", "pids")
    assert (note["hard"], note["watched"]) == ((), ("storage_mb",))
