"""Where containers run: base images, Dockerfile builds, the namespace sandbox, and docker or podman.

``skill2env.sandbox:NamespaceEnvironment``, ``:DockerEnvironment`` and ``:PodmanEnvironment`` are import paths that
Harbor takes.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skill2env.sandbox.engine_environment import DockerEnvironment as DockerEnvironment
    from skill2env.sandbox.engine_environment import PodmanEnvironment as PodmanEnvironment
    from skill2env.sandbox.environment import NamespaceEnvironment as NamespaceEnvironment


def __getattr__(name: str) -> object:
    # Harbor is imported on first use: most of this package does not need it.
    if name == "NamespaceEnvironment":
        from skill2env.sandbox.environment import NamespaceEnvironment

        return NamespaceEnvironment
    if name in ("DockerEnvironment", "PodmanEnvironment"):
        from skill2env.sandbox import engine_environment

        return getattr(engine_environment, name)
    raise AttributeError(name)
