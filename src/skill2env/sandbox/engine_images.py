"""Images of an engine by name and by Dockerfile: what `images` does, where an engine stands in for the sandbox."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path

from skill2env.errors import Boundary, InfraError
from skill2env.records import digest_of
from skill2env.sandbox import catalog
from skill2env.sandbox.agent_image import AgentImageFailed, agent_config, on_task, read_agent_recipe
from skill2env.sandbox.base_store import BaseImage
from skill2env.sandbox.build import Ground, Stack
from skill2env.sandbox.context import Context
from skill2env.sandbox.debian import architecture
from skill2env.sandbox.engine import Engine, EngineError
from skill2env.sandbox.engine_bases import ensure_engine_base, tag_of
from skill2env.sandbox.engine_build import EngineBuilder, build_by_engine, image_config
from skill2env.sandbox.images import BuiltImage, read_recipe
from skill2env.sandbox.instructions import BuildFailed, NeedsDocker
from skill2env.sandbox.recipe import DEFAULT_PATH, ImageConfig, Recipe

Progress = Callable[[str], None]
_NO_MAP: Mapping[str, str] = {}
_PULL_TIMEOUT_SEC = 1800.0


class _Foreign(Exception):
    """A Dockerfile stands on an image that is none of ours."""


class EngineImages:
    """Images in one engine. Safe to use from several threads and processes."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def base(self, name: str, *, digest: str = "", progress: Progress | None = None) -> BaseImage:
        """See `ensure_engine_base`."""
        return ensure_engine_base(self.engine, name, digest=digest, progress=progress)

    def build(
        self,
        context: Path,
        *,
        dockerfile: str = "Dockerfile",
        image_map: Mapping[str, str] = _NO_MAP,
        timeout_sec: float = 600,
        progress: Progress | None = None,
    ) -> BuiltImage:
        """Build a Dockerfile; for arguments and errors see `images.build_image`.

        On bases of ours, in a form that we read, the result has the key that the namespace sandbox gives. Everything
        else is left to the engine.
        """
        try:
            recipe = read_recipe(context, dockerfile=dockerfile)
            return self._by_step(recipe, context, dockerfile, image_map, timeout_sec, progress or _silent)
        except (_Foreign, NeedsDocker):
            return self._by_engine(context, dockerfile, image_map, timeout_sec)

    def _ours(self, reference: str, image_map: Mapping[str, str]) -> str | None:
        """The base of ours that a reference means; None when the engine has the very image that it could stand for."""
        name = catalog.catalog_name(reference, image_map)
        if (
            name is None
            or catalog.lookup(name).stands_for == ()
            or any(reference.startswith(key) for key in image_map)
        ):
            return name
        called = reference.partition("@")[0].rpartition("/")[2].partition(":")[0]
        return name if called == name or self.engine.image_id(reference) is None else None

    def _by_step(
        self,
        recipe: Recipe,
        context: Path,
        dockerfile: str,
        image_map: Mapping[str, str],
        timeout_sec: float,
        progress: Progress,
    ) -> BuiltImage:
        bases: dict[str, BaseImage] = {}
        tags: dict[str, str] = {}

        def base_of(reference: str) -> Ground:
            name = self._ours(reference, image_map)
            if name is None:
                raise _Foreign
            base = bases[reference] = self.base(name, digest=reference.partition("@")[2], progress=progress)
            tags[base.digest] = tag_of(name, base.digest)
            return Ground(base.rootfs, base.digest, catalog.lookup(name).suite)

        files = Context(context, dockerfile=dockerfile)
        builder = EngineBuilder(self.engine, tags, files, base_of, timeout_sec=timeout_sec, progress=progress)
        stack, config = builder.build(recipe), recipe.config
        whole = digest_of(
            {"layers": stack.key, "env": dict(config.env), "workdir": config.workdir, "user": config.user}
        )
        return BuiltImage(
            whole, bases[recipe.base], (), config, builder.tag(stack), stacked=len(stack.layers)
        )

    def _by_engine(
        self, context: Path, dockerfile: str, image_map: Mapping[str, str], timeout_sec: float
    ) -> BuiltImage:
        tags, bases = self._tags_of(context / dockerfile, image_map)
        image = build_by_engine(
            self.engine, context, dockerfile=dockerfile, tags=tags, timeout_sec=timeout_sec
        )
        base = bases[0] if bases else _foreign(image)
        return BuiltImage(image, base, (), image_config(self.engine, image), image)

    def _tags_of(self, file: Path, image_map: Mapping[str, str]) -> tuple[dict[str, str], list[BaseImage]]:
        """Names in the engine of the bases of ours that FROM lines name."""
        tags: dict[str, str] = {}
        bases: list[BaseImage] = []
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            raise BuildFailed("reading", f"{file.name}: {error.strerror}") from error
        for line in lines:
            words = [word for word in line.split() if not word.startswith("--")]
            if len(words) < 2 or words[0].upper() != "FROM":
                continue
            name = self._ours(words[1], image_map)
            if name is not None and words[1] not in tags:
                base = self.base(name, digest=words[1].partition("@")[2])
                tags[words[1]] = tag_of(name, base.digest)
                bases.append(base)
        return tags, bases

    def add_agent(
        self,
        image: BuiltImage,
        file: Path,
        *,
        image_map: Mapping[str, str] = _NO_MAP,
        timeout_sec: float = 600,
    ) -> BuiltImage:
        """Build an agent's Dockerfile on top of a task's image, whoever made it; see `images.add_agent`.

        Raises:
            AgentImageFailed: the agent's Dockerfile is at fault.
            InfraError: the network or the engine failed.
        """
        recipe, context = read_agent_recipe(file, image.config, architecture=architecture())
        tags = {image.tag: image.tag}

        def base_of(reference: str) -> Ground:
            name = self._ours(reference, image_map)
            if name is None:
                raise AgentImageFailed(file, f"{reference!r} is no base image of the catalog")
            base = self.base(name, digest=reference.partition("@")[2])
            tags[base.digest] = tag_of(name, base.digest)
            return Ground(base.rootfs, base.digest, catalog.lookup(name).suite)

        suite = catalog.lookup(image.base.name or catalog.DEFAULT_BASE).suite
        below = Stack(Ground(image.base.rootfs, image.tag, suite), image.key)
        builder = EngineBuilder(
            self.engine, tags, context, base_of,
            timeout_sec=timeout_sec, progress=_silent, known=on_task(below),
        )  # fmt: skip
        try:
            stack = builder.build(recipe)
        except BuildFailed as error:
            raise AgentImageFailed(file, error.message) from error
        config, height = agent_config(recipe, image.config), image.stacked + len(stack.layers)
        return BuiltImage(stack.key, image.base, (), config, builder.tag(stack), stacked=height)

    def resolve(
        self, reference: str, *, image_map: Mapping[str, str] = _NO_MAP, progress: Progress | None = None
    ) -> BuiltImage:
        """The image that a reference means, with nothing on top; one that is none of ours is pulled if need be.

        Raises:
            InfraError: it cannot be had.
        """
        name = self._ours(reference, image_map)
        if name is not None:
            base = self.base(name, digest=reference.partition("@")[2], progress=progress)
            config = ImageConfig({"PATH": DEFAULT_PATH}, "/", "")
            return BuiltImage(digest_of({"base": base.digest}), base, (), config, tag_of(name, base.digest))
        image = self.engine.image_id(reference) or self._pull(reference)
        return BuiltImage(image, _foreign(image), (), image_config(self.engine, image), image)

    def _pull(self, reference: str) -> str:
        try:
            self.engine.call("pull", "--quiet", reference, timeout_sec=_PULL_TIMEOUT_SEC)
        except EngineError as error:
            raise error.infra(f"pulling {reference}", Boundary.NETWORK) from error
        found = self.engine.image_id(reference)
        if found is None:
            raise InfraError(Boundary.NETWORK, f"{self.engine.name} pulled {reference} and does not have it")
        return found


def _silent(_: str) -> None:
    """Tell nobody."""


def _foreign(image: str) -> BaseImage:
    """An image of somebody else in the place of a base: there is nothing below that we know."""
    return BaseImage("", image, Path("/nonexistent"), architecture())


@functools.cache
def engine_images(engine: Engine) -> EngineImages:
    """The images of an engine."""
    return EngineImages(engine)
