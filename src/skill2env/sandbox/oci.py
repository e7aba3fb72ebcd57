"""The identity of a base image: the digest of its OCI manifest, computed from a normalised layer archive.

The layer is stored uncompressed, so the digest depends on the files alone and on no compressor.
Format: OCI image specification 1.1 (layer ``tar``, config, manifest). Streams: memory does not grow with the image.
"""

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from skill2env.records import digest_bytes

ENV_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CHANGE_LIMIT_BYTES = 65536
"""Files above this size are never handed to `change`."""
_MEDIA = "application/vnd.oci.image."
MANIFEST_TYPE = f"{_MEDIA}manifest.v1+json"


@dataclass(frozen=True, slots=True)
class Layer:
    """What a layer archive is."""

    digest: str
    size: int
    """Bytes."""


class _Hashing:
    """A file to write to that digests everything on its way."""

    def __init__(self, target: BinaryIO | None) -> None:
        self._target = target
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        self.size += len(data)
        if self._target is not None:
            self._target.write(data)
        return len(data)


def normalise_layer(
    source: BinaryIO,
    target: BinaryIO | None,
    *,
    epoch: int,
    groups: Mapping[str, int],
    change: Callable[[str, bytes], bytes] | None = None,
) -> Layer:
    """Rewrite a tar stream so that equal file systems give equal bytes.

    Only files, folders, and symbolic and hard links are kept; user and group names and extended headers are not.

    Args:
        source: archive whose members are already in sorted order.
        target: where the layer is written; None to compute the digest only.
        epoch: later modification times become this (seconds since 1970).
        groups: names whose group is not root, and their group id: a namespace with one uid cannot keep them on disk.
        change: called with name and content of regular files up to `CHANGE_LIMIT_BYTES`; returns what to store.

    Raises:
        tarfile.TarError: the source is damaged.
    """
    sink = _Hashing(target)
    with (
        tarfile.open(fileobj=source, mode="r|") as read,
        tarfile.open(fileobj=cast("BinaryIO", sink), mode="w|", format=tarfile.PAX_FORMAT) as write,
    ):
        for member in read:
            member.mtime = min(int(member.mtime), epoch)
            member.uname = member.gname = ""
            member.gid = groups.get(member.name, member.gid)
            member.pax_headers = {}
            if member.isreg():
                file = cast("BinaryIO", read.extractfile(member))
                if change is not None and member.size <= CHANGE_LIMIT_BYTES:
                    data = change(member.name, file.read())
                    member.size = len(data)
                    file = io.BytesIO(data)
                write.addfile(member, file)
            elif member.isdir() or member.issym() or member.islnk():
                write.addfile(member)
    return Layer("sha256:" + sink.digest.hexdigest(), sink.size)


def _dump(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def manifest(layer: Layer, architecture: str) -> tuple[str, bytes, bytes]:
    """(manifest digest, manifest bytes, config bytes) of a one-layer image; `architecture` as Debian and Go name it."""
    config = _dump(
        {
            "architecture": architecture,
            "config": {"Cmd": ["/bin/bash"], "Env": [ENV_PATH], "StopSignal": "SIGKILL", "WorkingDir": "/"},
            "os": "linux",
            "rootfs": {"diff_ids": [layer.digest], "type": "layers"},
        }
    )
    body = _dump(
        {
            "config": {
                "digest": digest_bytes(config),
                "mediaType": f"{_MEDIA}config.v1+json",
                "size": len(config),
            },
            "layers": [{"digest": layer.digest, "mediaType": f"{_MEDIA}layer.v1.tar", "size": layer.size}],
            "mediaType": MANIFEST_TYPE,
            "schemaVersion": 2,
        }
    )
    return digest_bytes(body), body, config


def write_layout(folder: Path, archive: Path, layer: Layer, architecture: str, name: str) -> str:
    """Write an OCI image layout around a layer archive (copied); returns the manifest digest.

    Args:
        folder: receives ``oci-layout``, ``index.json`` and ``blobs/``.
        archive: the layer, uncompressed.
        layer: what `archive` is.
        architecture: of the image.
        name: reference under which tools list it.

    Raises:
        OSError: the folder cannot be written.
    """
    digest, body, config = manifest(layer, architecture)
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    for data in (body, config):
        (blobs / hashlib.sha256(data).hexdigest()).write_bytes(data)
    shutil.copyfile(archive, blobs / layer.digest.removeprefix("sha256:"))
    entry = {
        "annotations": {"org.opencontainers.image.ref.name": name},
        "digest": digest,
        "mediaType": MANIFEST_TYPE,
        "platform": {"architecture": architecture, "os": "linux"},
        "size": len(body),
    }
    index = {"manifests": [entry], "mediaType": f"{_MEDIA}index.v1+json", "schemaVersion": 2}
    (folder / "index.json").write_bytes(_dump(index))
    (folder / "oci-layout").write_bytes(_dump({"imageLayoutVersion": "1.0.0"}))
    return digest
