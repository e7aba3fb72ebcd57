"""Which of Harbor's environments runs a trial: ours by default, an engine by flag."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harbor.models.environment_type import EnvironmentType
from harbor.models.trial.config import EnvironmentConfig

from skill2env.errors import InfraError, UserError
from skill2env.sandbox.images import ensure_base
from skill2env.sandbox.session import Sandbox, SandboxSpec

NAMESPACE_ENVIRONMENT = "skill2env.harbor.namespace:TrialNamespaceEnvironment"
"""Our own environment; on the command line of Harbor it is ``skill2env.sandbox:NamespaceEnvironment``."""

DOCKER_ENVIRONMENT = "skill2env.harbor.docker:OfflineDockerEnvironment"
"""Harbor's docker environment, with a no-network mode that needs no further image."""


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


def namespace_sandbox(
    image_map: Mapping[str, str] | None = None, *, allow_unlimited: bool = False
) -> SandboxChoice:
    """Our own sandbox.

    Args:
        image_map: image references of other people's Dockerfiles to names of our catalog.
        allow_unlimited: run even where the machine cannot enforce a requested limit.
    """
    kwargs: dict[str, Any] = {}
    if image_map:
        kwargs["image_map"] = dict(sorted(image_map.items()))
    if allow_unlimited:
        kwargs["allow_unlimited"] = True
    return SandboxChoice("namespace", NAMESPACE_ENVIRONMENT, kwargs)


def namespace_works() -> bool:
    """Start one sandbox on the default base (built on first use) and run a command in it.

    Raises:
        InfraError: the base image cannot be had (network, disk); that says nothing about the sandbox.
    """
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
    image_map: Mapping[str, str] | None = None,
    allow_unlimited: bool = False,
) -> SandboxChoice:
    """The environment for a flag value.

    Args:
        kind: ``auto`` (ours where the machine allows it, else docker), ``namespace``, ``docker`` or ``podman``.
        works: asked for ``auto`` only; starts a sandbox once to see.
        image_map: see `namespace_sandbox`; engines resolve image references themselves.
        allow_unlimited: see `namespace_sandbox`.
    """
    if kind == "namespace" or (kind == "auto" and works()):
        return namespace_sandbox(image_map, allow_unlimited=allow_unlimited)
    if kind == "podman":
        return SandboxChoice("podman")
    return SandboxChoice("docker", DOCKER_ENVIRONMENT)
