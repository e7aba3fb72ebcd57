"""Which environment runs a trial: ours by default, an engine by flag, or any other of Harbor's by its name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harbor.models.environment_type import EnvironmentType
from harbor.models.trial.config import EnvironmentConfig

from skill2env.errors import InfraError, UserError
from skill2env.sandbox import containers
from skill2env.sandbox.doctor import namespace_works as namespaces_work
from skill2env.sandbox.engine import ENGINES, answers
from skill2env.sandbox.images import ensure_base
from skill2env.sandbox.session import Sandbox, SandboxSpec

NAMESPACE_ENVIRONMENT = "skill2env.harbor.namespace:TrialNamespaceEnvironment"
"""Our own environment; on the command line of Harbor it is ``skill2env.sandbox:NamespaceEnvironment``."""

ENGINE_ENVIRONMENTS = {
    "docker": "skill2env.harbor.namespace:TrialDockerEnvironment",
    "podman": "skill2env.harbor.namespace:TrialPodmanEnvironment",
}
"""Ours on an engine; on Harbor's command line ``skill2env.sandbox:DockerEnvironment`` and ``:PodmanEnvironment``."""

COMPOSE_ENVIRONMENT = "skill2env.harbor.docker:OfflineDockerEnvironment"
"""Harbor's docker environment, with a no-network mode that needs no further image."""

_COMPOSE_FILES = ("environment/docker-compose.yaml", "tests/docker-compose.yaml")


@dataclass(frozen=True, slots=True)
class SandboxChoice:
    """One environment and its options. Equal choices run a task the same way."""

    name: str
    """``namespace``, ``docker``, ``podman``, or any name for an environment of somebody else."""
    import_path: str = ""
    """``module:Class``; empty for an environment that is built into Harbor under `name`."""
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options of the environment, as ``harbor run --ek`` takes them."""

    def to_config(self) -> EnvironmentConfig:
        """Harbor's form of the choice, fresh at each call because Harbor writes into it."""
        if self.import_path:
            return EnvironmentConfig(import_path=self.import_path, kwargs=dict(self.kwargs))
        return EnvironmentConfig(type=EnvironmentType(self.name), kwargs=dict(self.kwargs))

    def for_task(self, task_dir: Path) -> "SandboxChoice":
        """The choice for one task: engines leave compose services to Harbor's own environments."""
        if self.import_path != ENGINE_ENVIRONMENTS.get(self.name):
            return self
        if not any((task_dir / file).is_file() for file in _COMPOSE_FILES):
            return self
        return SandboxChoice(self.name, COMPOSE_ENVIRONMENT if self.name == "docker" else "")


def namespace_sandbox(
    image_map: Mapping[str, str] | None = None, *, allow_unlimited: bool = False
) -> SandboxChoice:
    """Our own sandbox.

    Args:
        image_map: image references of other people's Dockerfiles to names of our catalog.
        allow_unlimited: run even where the machine cannot enforce a requested limit.
    """
    return SandboxChoice("namespace", NAMESPACE_ENVIRONMENT, _options(image_map, allow_unlimited))


def engine_sandbox(
    name: str, image_map: Mapping[str, str] | None = None, *, allow_unlimited: bool = False
) -> SandboxChoice:
    """Ours on docker or podman; for the arguments see `namespace_sandbox`."""
    return SandboxChoice(name, ENGINE_ENVIRONMENTS[name], _options(image_map, allow_unlimited))


def _options(image_map: Mapping[str, str] | None, allow_unlimited: bool) -> dict[str, Any]:
    kwargs: dict[str, Any] = {}
    if image_map:
        kwargs["image_map"] = dict(sorted(image_map.items()))
    if allow_unlimited:
        kwargs["allow_unlimited"] = True
    return kwargs


def namespace_works() -> bool:
    """Start one sandbox on the default base (built on first use) and run a command in it.

    Raises:
        InfraError: the base image cannot be had (network, disk); that says nothing about the sandbox.
    """
    if not namespaces_work():
        return False
    base = ensure_base()
    try:
        with Sandbox(SandboxSpec(layers=(base.rootfs,))) as sandbox:
            return sandbox.exec(["/bin/true"], timeout_sec=30).return_code == 0
    except (InfraError, UserError):
        return False


def choose_sandbox(
    kind: str,
    *,
    works: Callable[[], bool] = namespace_works,
    engine_answers: Callable[[str], bool] = answers,
    image_map: Mapping[str, str] | None = None,
    allow_unlimited: bool = False,
) -> SandboxChoice:
    """The environment for a flag value; builds and scans of this process follow it from now on.

    Args:
        kind: ``auto`` (ours where the machine allows it, else the first engine that answers), ``namespace``,
            ``docker``, ``podman``, or the name of another environment that is built into Harbor.
        works: asked for ``auto`` only; starts a sandbox once to see.
        engine_answers: asked for ``auto`` where `works` says no.
        image_map: see `namespace_sandbox`.
        allow_unlimited: see `namespace_sandbox`.

    Raises:
        UserError: no environment has that name.
        InfraError: the engine is not installed.
    """
    choice = _choose(kind, works, engine_answers, image_map, allow_unlimited)
    containers.use(choice.name)
    return choice


def _choose(
    kind: str,
    works: Callable[[], bool],
    engine_answers: Callable[[str], bool],
    image_map: Mapping[str, str] | None,
    allow_unlimited: bool,
) -> SandboxChoice:
    if kind == "namespace" or (kind == "auto" and works()):
        return namespace_sandbox(image_map, allow_unlimited=allow_unlimited)
    if kind == "auto":
        kind = next((name for name in ENGINES if engine_answers(name)), ENGINES[0])
    if kind in ENGINES:
        return engine_sandbox(kind, image_map, allow_unlimited=allow_unlimited)
    known = [member.value for member in EnvironmentType]
    if kind not in known:
        raise UserError(
            f"no sandbox is called {kind!r}",
            hint=f"Use auto, namespace, docker, podman, or another environment of Harbor: {', '.join(sorted(known))}.",
        )
    return SandboxChoice(kind)
