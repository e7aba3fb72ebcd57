"""Where containers run without an engine: base images, Dockerfile builds and the namespace sandbox.

``skill2env.sandbox:NamespaceEnvironment`` is the import path that Harbor takes.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skill2env.sandbox.environment import NamespaceEnvironment as NamespaceEnvironment


def __getattr__(name: str) -> object:
    # Harbor is imported on first use: most of this package does not need it.
    if name == "NamespaceEnvironment":
        from skill2env.sandbox.environment import NamespaceEnvironment

        return NamespaceEnvironment
    raise AttributeError(name)
