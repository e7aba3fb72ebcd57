"""The same cases for every kind of environment: the namespace sandbox always, docker and podman where they run."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

from skill2env import sandbox
from skill2env.sandbox.box_environment import BoxEnvironment
from skill2env.sandbox.doctor import namespace_works
from skill2env.sandbox.engine import answers, engine
from skill2env.sandbox.engine_box import EngineBox
from skill2env.sandbox.engine_images import engine_images
from skill2env.sandbox.engine_spec import EngineSpec

KINDS = ("namespace", "docker", "podman")
OFFLINE = NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)
Use = Callable[[BoxEnvironment], Awaitable[None]]


def _podman_runs() -> bool:
    """Whether podman starts containers at all: on some machines it is installed and cannot."""
    if os.geteuid() != 0 or not answers("podman"):
        return False  # without root it has no control groups here, and so no limits to test
    try:
        podman = engine("podman")
        base = engine_images(podman).resolve("debian-bookworm")
        with EngineBox(podman, EngineSpec(base.tag)):
            return True
    except Exception:
        return False


@pytest.fixture(scope="session")
def runs() -> Callable[[str], str]:
    """Why a kind cannot run here; empty when it can."""
    known: dict[str, str] = {}

    def look(kind: str) -> str:
        if kind not in known:
            look_at = {
                "namespace": namespace_works,
                "docker": lambda: answers("docker"),
                "podman": _podman_runs,
            }
            works = look_at[kind]()
            known[kind] = "" if works else f"{kind} does not run here"
        return known[kind]

    return look


@pytest.fixture(
    params=[pytest.param(kind, marks=pytest.mark.sandbox if kind == "namespace" else ()) for kind in KINDS]
)
def kind(request: pytest.FixtureRequest, runs: Callable[[str], str]) -> str:
    """Each kind of environment in turn."""
    why = runs(request.param)
    if why:
        pytest.skip(why)
    return request.param


@pytest.fixture
def make(kind: str, tmp_path: Path) -> Callable[..., BoxEnvironment]:
    """Makes an environment of the kind, not started."""

    def environment(
        dockerfile: str = "FROM debian-bookworm\n",
        *,
        policy: NetworkPolicy = OFFLINE,
        phases: tuple[NetworkPolicy, ...] = (),
        options: dict[str, Any] | None = None,
        **config: Any,
    ) -> BoxEnvironment:
        folder = tmp_path / "environment"
        folder.mkdir(exist_ok=True)
        if dockerfile:
            (folder / "Dockerfile").write_text(dockerfile)
        paths = TrialPaths(tmp_path / "trial")
        paths.mkdir()
        made = getattr(sandbox, f"{kind.title()}Environment")
        return made(
            environment_dir=folder,
            environment_name="conformance",
            session_id="trial__env",
            trial_paths=paths,
            task_env_config=EnvironmentConfig(**config),
            logger=logging.getLogger("test"),
            network_policy=policy,
            phase_network_policies=list(phases),
            **(options or {}),
        )

    return environment


@pytest.fixture
def use(make: Callable[..., BoxEnvironment]) -> Callable[..., None]:
    """Starts an environment, hands it to a coroutine function, and stops it."""

    def run(work: Use, **settings: Any) -> None:
        async def main() -> None:
            environment = make(**settings)
            try:
                await environment.start(force_build=False)
                await work(environment)
            finally:
                await environment.stop(delete=True)

        asyncio.run(main())

    return run
