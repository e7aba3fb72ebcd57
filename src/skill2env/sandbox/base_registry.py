"""Base images and registries: bring ours to any registry, and ask what digest a public image has."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from skill2env.records import digest_bytes
from skill2env.sandbox import catalog, oci
from skill2env.sandbox.base_store import BaseImage
from skill2env.sandbox.logins import Login
from skill2env.sandbox.references import Location, locate
from skill2env.sandbox.registry import Registry
from skill2env.sandbox.rootfs import packed_base

_TAG_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Pushed:
    """Where a base went."""

    reference: str
    """With its digest, as Dockerfiles name it."""
    tag: str
    bytes_sent: int
    """0 when the registry had everything already."""


def default_tag(base: BaseImage) -> str:
    """The tag under which a base is brought when none is named; it never moves to other bytes."""
    return f"{base.architecture}-{base.digest.removeprefix('sha256:')[:_TAG_DIGITS]}"


def push_base(
    base: BaseImage,
    registry: str,
    *,
    tag: str = "",
    login: Login | None = None,
    progress: Callable[[str], None] | None = None,
) -> Pushed:
    """Bring a base to a registry; what is there already is not sent again.

    Args:
        base: it must be on this machine.
        registry: host and prefix; the repository is ``REGISTRY/NAME``.
        tag: also brought under it, because registries clean up what has none; empty means `default_tag`.
        login: None looks into docker's configuration file.
        progress: told a line for each thing that is done.

    Raises:
        UserError: the registry's name is no such name, or this login may not write there.
        InfraError: the registry cannot be reached (``network``), or the base was changed on disk (``storage``).
    """
    tell = progress or _silent
    tag = tag or default_tag(base)
    place = locate(f"{registry.rstrip('/')}/{base.name}:{tag}")
    with Registry(place, login=login) as remote:
        tell(f"{base.name}: packing")
        with packed_base(base) as (archive, layer):
            tell(f"{base.name}: sending {layer.size / 1e6:.0f} MB to {place.host}")
            sent = _send(remote, archive, layer, base.architecture, tag)
    return Pushed(f"{place.host}/{place.repository}@{base.digest}", tag, sent)


def _silent(_: str) -> None:
    """Tell nobody."""


def _send(remote: Registry, archive: Path, layer: oci.Layer, architecture: str, tag: str) -> int:
    """Layer, configuration, and at last the manifest that names them; returns the bytes that were sent."""
    digest, body, config = oci.manifest(layer, architecture)
    sent = layer.size if remote.put_blob(archive, layer.digest) else 0
    with tempfile.NamedTemporaryFile() as file:
        file.write(config)
        file.flush()
        sent += len(config) if remote.put_blob(Path(file.name), digest_bytes(config)) else 0
    remote.put_manifest(body, oci.MANIFEST_TYPE, digest)
    remote.put_manifest(body, oci.MANIFEST_TYPE, tag)
    return sent


def resolve(reference: str, *, login: Login | None = None) -> Location:
    """Ask a registry which digest a reference has now.

    Args:
        reference: a catalog name means the public image that it is bound to.
        login: None looks into docker's configuration file.

    Raises:
        UserError: it is no reference, there is no such image, or it may not be read.
        InfraError: the registry cannot be reached; boundary ``network``.
    """
    public = catalog.CATALOG[reference].public if reference in catalog.CATALOG else reference
    place = locate(public)
    with Registry(place, login=login) as remote:
        return Location(place.host, place.repository, place.tag, remote.digest())
