"""The identity of a base image: the digest of its OCI manifest, computed from a normalised layer archive.

The layer is stored uncompressed, so the digest depends on the files alone and on no compressor.
Format: OCI image specification 1.1 (layer ``tar``, config, manifest).
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

_CHUNK_BYTES = 1 << 20
ENV_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class _Hashing:
    """Write-through digest of everything written."""

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
) -> tuple[str, int]:
    """Rewrite a tar stream so that equal file systems give equal bytes.

    Args:
        source: archive whose members are already in sorted order.
        target: where the layer is written; None to compute the digest only.
        epoch: later modification times become this.
        groups: names whose group is not root, and their group id: a namespace with one uid cannot keep them on disk.
        change: called with name and content of small regular files (under 64 KiB) and returns what to store.

    Returns:
        (digest with prefix, size in bytes).
    """
    sink = _Hashing(target)
    with (
        tarfile.open(fileobj=source, mode="r|") as read,
        tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT) as write,  # type: ignore[arg-type]
    ):
        for member in read:
            member.mtime = min(int(member.mtime), epoch)
            member.uname = member.gname = ""
            member.gid = groups.get(member.name, member.gid)
            member.pax_headers = {}
            if member.isreg():
                file = read.extractfile(member)
                assert file is not None
                if change is not None and member.size < 65536:
                    data = change(member.name, file.read())
                    member.size = len(data)
                    write.addfile(member, io.BytesIO(data))
                else:
                    write.addfile(member, file)
            elif member.isdir() or member.issym() or member.islnk():
                write.addfile(member)
    return "sha256:" + sink.digest.hexdigest(), sink.size


def _dump(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def manifest(layer_digest: str, layer_size: int, architecture: str) -> tuple[str, bytes, bytes]:
    """(manifest digest, manifest bytes, config bytes) of a one-layer image."""
    config = _dump(
        {
            "architecture": architecture,
            "config": {"Cmd": ["/bin/bash"], "Env": [ENV_PATH], "StopSignal": "SIGKILL", "WorkingDir": "/"},
            "os": "linux",
            "rootfs": {"diff_ids": [layer_digest], "type": "layers"},
        }
    )
    body = _dump(
        {
            "config": {
                "digest": "sha256:" + hashlib.sha256(config).hexdigest(),
                "mediaType": "application/vnd.oci.image.config.v1+json",
                "size": len(config),
            },
            "layers": [
                {
                    "digest": layer_digest,
                    "mediaType": "application/vnd.oci.image.layer.v1.tar",
                    "size": layer_size,
                }
            ],
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "schemaVersion": 2,
        }
    )
    return "sha256:" + hashlib.sha256(body).hexdigest(), body, config


def write_layout(folder: Path, layer: Path, layer_digest: str, architecture: str, name: str) -> str:
    """Write an OCI image layout around a layer archive (hard-linked or copied); returns the manifest digest."""
    size = layer.stat().st_size
    digest, body, config = manifest(layer_digest, size, architecture)
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    for data in (body, config):
        (blobs / hashlib.sha256(data).hexdigest()).write_bytes(data)
    target = blobs / layer_digest.removeprefix("sha256:")
    with layer.open("rb") as source, target.open("wb") as file:
        while piece := source.read(_CHUNK_BYTES):
            file.write(piece)
    (folder / "oci-layout").write_bytes(_dump({"imageLayoutVersion": "1.0.0"}))
    (folder / "index.json").write_bytes(
        _dump(
            {
                "manifests": [
                    {
                        "annotations": {"org.opencontainers.image.ref.name": name},
                        "digest": digest,
                        "mediaType": "application/vnd.oci.image.manifest.v1+json",
                        "platform": {"architecture": architecture, "os": "linux"},
                        "size": len(body),
                    }
                ],
                "schemaVersion": 2,
            }
        )
    )
    return digest
