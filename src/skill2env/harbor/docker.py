"""Harbor's own docker environment for tasks with compose services, on machines that cannot reach a registry."""

from pathlib import Path
from typing import Any, override

from harbor.environments.capabilities import EnvironmentCapabilities
from harbor.environments.docker import COMPOSE_NO_NETWORK_PATH
from harbor.environments.docker.docker import DockerEnvironment


class OfflineDockerEnvironment(DockerEnvironment):
    """Docker whose no-network mode is compose's ``network_mode: none``.

    Harbor enforces no-network with a second container whose image has to be pulled first. A task that asks for no
    network at all needs neither that container nor a registry.
    """

    @staticmethod
    @override
    def _requires_egress_control(**_: Any) -> bool:
        return False

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        """What Harbor's own environment can do, and switching the network off."""
        return super().capabilities.model_copy(update={"disable_internet": True})

    @property
    @override
    def _docker_compose_paths(self) -> list[Path]:
        paths = super()._docker_compose_paths
        return [*paths, COMPOSE_NO_NETWORK_PATH] if self._network_disabled else paths
