"""Images by name and by Dockerfile: the one entrance to base images and builds.

base = ensure_base()                              # a catalog base, built on first use
image = build_image(Path("task/environment"))     # a Dockerfile on top of it, layers cached by content
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skill2env.errors import Boundary, InfraError
from skill2env.records import digest_of
from skill2env.sandbox import catalog
from skill2env.sandbox.agent_image import AgentImageFailed, agent_config, on_task, read_agent_recipe
from skill2env.sandbox.build import Builder, Ground, Progress, Stack
from skill2env.sandbox.context import Context
from skill2env.sandbox.dockerfile import parse
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.instructions import BuildFailed
from skill2env.sandbox.layers import Layer
from skill2env.sandbox.recipe import DEFAULT_PATH, ImageConfig, Recipe
from skill2env.sandbox.resolving import resolve
from skill2env.sandbox.rootfs import BaseImage, architecture, ensure_base, export_base, stored_base

__all__ = [
    "BaseImage",
    "BuildFailed",
    "BuiltImage",
    "ImageConfig",
    "add_agent",
    "build_image",
    "ensure_base",
    "export_base",
    "read_recipe",
    "resolve_image",
]

_NO_MAP: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """An image that exists on this machine."""

    key: str
    """Digest of base, instructions and copied files; the same on every machine that has the same base."""
    base: BaseImage
    layers: tuple[Path, ...]
    """Folders of the overlay, bottom first; the base's root file system comes first."""
    config: ImageConfig
    tag: str = ""
    """Name of the image in the engine that built it; empty where `layers` are what it is."""
    stacked: int = 0
    """How many layers an engine put on the base."""

    @property
    def height(self) -> int:
        """How many layers lie on the base."""
        return max(len(self.layers) - 1, self.stacked)


def read_recipe(context: Path, *, dockerfile: str = "Dockerfile") -> Recipe:
    """Read and resolve a Dockerfile without building anything.

    Raises:
        BuildFailed: it is missing, malformed, or uses what is not supported.
    """
    path = context / dockerfile
    try:
        if not path.resolve().is_relative_to(context.resolve()):
            raise BuildFailed("reading", f"{dockerfile} leads out of the build context")
        text = path.read_bytes().decode()
    except OSError as error:
        raise BuildFailed("reading", f"{dockerfile}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BuildFailed("reading", f"{dockerfile} is not UTF-8 text") from error
    return resolve(parse(text), architecture=architecture())


def build_image(
    context: Path,
    *,
    dockerfile: str = "Dockerfile",
    image_map: Mapping[str, str] = _NO_MAP,
    timeout_sec: float = 600,
    progress: Progress | None = None,
) -> BuiltImage:
    """Build a Dockerfile; layers that exist already cost milliseconds.

    A reference to a catalog base is served by the base on this machine. When it names a digest that this machine does
    not have, the image is still built on the base that it has, and `BuiltImage.base` says what it really stands on:
    comparing the two is the caller's gate.

    Args:
        context: folder with the Dockerfile and what it copies.
        dockerfile: its name, relative to `context`.
        image_map: image references of other people -> names of our catalog.
        timeout_sec: for all commands of this build together.
        progress: told one line per step that is not cached.

    Raises:
        BuildFailed: the Dockerfile is at fault: unreadable, a missing source, a failing command.
        InfraError: the base image is not known here, or the network, the disk or the sandbox failed.
    """
    tell = progress or _silent
    recipe = read_recipe(context, dockerfile=dockerfile)
    bases: dict[str, BaseImage] = {}

    def base_of(reference: str) -> Ground:
        base = bases[reference] = _base(reference, image_map, tell)
        return _ground(base)

    builder = Builder(
        Context(context, dockerfile=dockerfile),
        base_of,
        current_identity(),
        timeout_sec=timeout_sec,
        progress=tell,
    )
    stack = builder.build(recipe)
    config = recipe.config
    return BuiltImage(_key(stack, config), bases[recipe.base], stack.folders, config)


def add_agent(
    image: BuiltImage,
    file: Path,
    *,
    image_map: Mapping[str, str] = _NO_MAP,
    timeout_sec: float = 600,
    progress: Progress | None = None,
) -> BuiltImage:
    """Build an agent's Dockerfile on top of a task's image: see `agent_image`.

    Args:
        image: of the task.
        file: the Dockerfile, which ends with a stage ``FROM task``; its folder is the build context.
        image_map: for its other stages, as in `build_image`.
        timeout_sec: for all its commands together.
        progress: told one line per step that is not cached.

    Raises:
        AgentImageFailed: the agent's Dockerfile is at fault.
        InfraError: the network, the disk or the sandbox failed.
    """
    tell = progress or _silent
    recipe, context = read_agent_recipe(file, image.config, architecture=architecture())

    def base_of(reference: str) -> Ground:
        return _ground(_base(reference, image_map, tell))

    layers = tuple(Layer("", folder.parent) for folder in image.layers[1:])
    below = Stack(_ground(image.base), image.key, layers)
    builder = Builder(
        context, base_of, current_identity(), timeout_sec=timeout_sec, progress=tell, known=on_task(below)
    )
    try:
        stack = builder.build(recipe)
    except BuildFailed as error:
        raise AgentImageFailed(file, error.message) from error
    config = agent_config(recipe, image.config)
    return BuiltImage(_key(stack, config), image.base, stack.folders, config)


def _ground(base: BaseImage) -> Ground:
    return Ground(base.rootfs, base.digest, catalog.lookup(base.name).suite)


def _key(stack: Stack, config: ImageConfig) -> str:
    return digest_of(
        {"layers": stack.key, "env": dict(config.env), "workdir": config.workdir, "user": config.user}
    )


def resolve_image(
    reference: str, *, image_map: Mapping[str, str] = _NO_MAP, progress: Progress | None = None
) -> BuiltImage:
    """The image that a reference means, with nothing on top.

    Raises:
        InfraError: the reference means no base of the catalog, or building the base failed.
    """
    base = _base(reference, image_map, progress or _silent)
    config = ImageConfig({"PATH": DEFAULT_PATH}, "/", "")
    return BuiltImage(digest_of({"base": base.digest}), base, (base.rootfs,), config)


def _silent(_: str) -> None:
    """Tell nobody."""


def _base(reference: str, image_map: Mapping[str, str], tell: Progress) -> BaseImage:
    """The base that a reference means: of its own digest where this machine has that one."""
    name = _catalog_name(reference, image_map)
    digest = reference.partition("@")[2]
    return (stored_base(name, digest) if digest else None) or ensure_base(name, progress=tell)


def _catalog_name(reference: str, image_map: Mapping[str, str]) -> str:
    name = catalog.catalog_name(reference, image_map)
    if name is None:
        raise InfraError(
            Boundary.BUILD,
            f"the image {reference!r} is not in the catalog of base images",
            hint=f"Map it to one of ours (--image-map {reference}=debian-bookworm), or run with `--sandbox docker`.",
            transient=False,
        )
    return name
