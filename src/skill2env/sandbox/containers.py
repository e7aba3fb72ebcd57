"""Where this process gets images and containers: the namespace sandbox, or an engine that stands in for it.

    image = build_image(Path("task/environment"))
    with open_box(image, limits=ResourceLimits(memory_mb=512)) as box:
        box.exec(["true"])

One choice for the whole process (`use`), because the same task must be built, scanned and run on the same images;
callers that know theirs say it (`kind`).
"""

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from skill2env.sandbox import catalog, images
from skill2env.sandbox.base_store import BaseImage
from skill2env.sandbox.box import Box
from skill2env.sandbox.build import Progress
from skill2env.sandbox.engine import ENGINES, Engine, engine
from skill2env.sandbox.images import BuiltImage
from skill2env.sandbox.limits import ResourceLimits
from skill2env.sandbox.session import Bind, Sandbox, SandboxSpec

_NO_MAP: Mapping[str, str] = {}
_DATA = "/mnt/layer-{}"
_lock = threading.Lock()
_chosen: dict[str, Engine] = {}


def use(kind: str) -> None:
    """From now on take containers of a kind.

    Args:
        kind: ``docker`` or ``podman``; anything else means the namespace sandbox.

    Raises:
        InfraError: the engine is not installed.
    """
    found = {kind: engine(kind)} if kind in ENGINES else {}
    with _lock:
        _chosen.clear()
        _chosen.update(found)


def engine_in_use(kind: str | None = None) -> Engine | None:
    """The engine that stands in for the namespace sandbox; None when none does.

    Args:
        kind: of the caller; None for the choice of the process.

    Raises:
        InfraError: the engine is not installed.
    """
    if kind is not None:
        return engine(kind) if kind in ENGINES else None
    with _lock:
        return next(iter(_chosen.values()), None)


def ensure_base(name: str = catalog.DEFAULT_BASE, *, progress: Progress | None = None) -> BaseImage:
    """A base of the catalog; see `images.ensure_base`.

    Raises:
        UserError: no such name.
        InfraError: it cannot be had.
    """
    chosen = engine_in_use()
    if chosen is None:
        return images.ensure_base(name, progress=progress)
    from skill2env.sandbox.engine_images import engine_images

    return engine_images(chosen).base(name, progress=progress)


def build_image(
    context: Path,
    *,
    dockerfile: str = "Dockerfile",
    image_map: Mapping[str, str] = _NO_MAP,
    timeout_sec: float = 600,
    progress: Progress | None = None,
    kind: str | None = None,
) -> BuiltImage:
    """Build a Dockerfile; see `images.build_image`. The same key whoever builds it on a base of ours.

    Raises:
        BuildFailed: the Dockerfile is at fault.
        InfraError: the machine is.
    """
    chosen = engine_in_use(kind)
    if chosen is None:
        builder = images.build_image
    else:
        from skill2env.sandbox.engine_images import engine_images

        builder = engine_images(chosen).build
    return builder(
        context, dockerfile=dockerfile, image_map=image_map, timeout_sec=timeout_sec, progress=progress
    )


def resolve_image(
    reference: str,
    *,
    image_map: Mapping[str, str] = _NO_MAP,
    progress: Progress | None = None,
    kind: str | None = None,
) -> BuiltImage:
    """The image that a reference means, with nothing on top.

    Raises:
        InfraError: it cannot be had.
    """
    chosen = engine_in_use(kind)
    if chosen is None:
        return images.resolve_image(reference, image_map=image_map, progress=progress)
    from skill2env.sandbox.engine_images import engine_images

    return engine_images(chosen).resolve(reference, image_map=image_map, progress=progress)


def open_box(image: BuiltImage, *, limits: ResourceLimits, hostname: str = "sandbox") -> Box:
    """A box on an image, without a network; use it as a context manager."""
    chosen = engine_in_use()
    if chosen is None:
        return Sandbox(SandboxSpec(layers=image.layers, limits=limits, hostname=hostname))
    from skill2env.sandbox.engine_box import EngineBox
    from skill2env.sandbox.engine_spec import EngineSpec

    return EngineBox(chosen, EngineSpec(image.tag, limits=limits, entrypoint=(), hostname=hostname))


@contextmanager
def open_layers(
    image: BuiltImage, *, limits: ResourceLimits, hostname: str = "sandbox", kind: str | None = None
) -> Generator[tuple[Box, list[str]]]:
    """A box on the base of an image that holds the layers above as data, so that they cannot change its tools.

    Yields:
        The box, and the folders inside that hold the layers, lowest first.

    Raises:
        InfraError: it cannot be started.
    """
    chosen = engine_in_use(kind)
    if chosen is None:
        places = [_DATA.format(number) for number in range(len(image.layers) - 1)]
        binds = tuple(Bind(layer, place) for layer, place in zip(image.layers[1:], places, strict=True))
        spec = SandboxSpec(layers=image.layers[:1], binds=binds, limits=limits, hostname=hostname)
        with Sandbox(spec) as box:
            yield box, places
        return
    from skill2env.sandbox.engine_layers import layers_as_data

    with layers_as_data(chosen, image, limits=limits, hostname=hostname) as found:
        yield found
