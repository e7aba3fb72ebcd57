"""The layers of an engine's image as data, in a container on its base."""

import json
import tarfile
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import IO

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.engine import LOAD_TIMEOUT_SEC, Engine, EngineError
from skill2env.sandbox.engine_bases import tag_of
from skill2env.sandbox.engine_box import EngineBox
from skill2env.sandbox.engine_spec import EngineSpec
from skill2env.sandbox.images import BuiltImage
from skill2env.sandbox.limits import ResourceLimits

_CHUNK_BYTES = 1 << 20


@contextmanager
def layers_as_data(
    engine: Engine, image: BuiltImage, *, limits: ResourceLimits, hostname: str
) -> Generator[tuple[EngineBox, list[str]]]:
    """See `containers.open_layers`. What a layer deletes is there as an empty file ``.wh.NAME``.

    Raises:
        InfraError: the engine cannot save the image or start the container.
    """
    spec = EngineSpec(
        tag_of(image.base.name, image.base.digest), limits=limits, entrypoint=(), hostname=hostname
    )
    with tempfile.NamedTemporaryFile(prefix="skill2env-layers-") as saved, EngineBox(engine, spec) as box:
        try:
            engine.call("save", "--output", saved.name, image.tag, timeout_sec=LOAD_TIMEOUT_SEC)
        except EngineError as error:
            raise error.infra("saving an image", Boundary.SANDBOX) from error
        places: list[str] = []
        with tarfile.open(saved.name) as archive:
            for number, name in enumerate(_layer_names(archive)[1:]):
                layer = archive.extractfile(name)
                if layer is None:
                    raise InfraError(
                        Boundary.SANDBOX, f"{engine.name} saved {image.tag} without its layer {name}"
                    )
                places.append(f"/mnt/layer-{number}")
                box.unpack(_pieces(layer), places[-1])
        yield box, places


def _layer_names(archive: tarfile.TarFile) -> list[str]:
    told = archive.extractfile("manifest.json")
    if told is None:
        raise InfraError(Boundary.SANDBOX, "the engine saved an image without a list of its layers")
    return [str(name) for name in json.load(told)[0]["Layers"]]


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(_CHUNK_BYTES):
        yield piece
