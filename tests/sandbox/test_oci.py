"""The identity of a layer: same files, same digest; and a layout that other tools read."""

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from skill2env.sandbox import oci


def tar_of(files: dict[str, bytes], *, mtime: int = 1000, uname: str = "root", gid: int = 0) -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.mtime, info.uname, info.gid, info.size, info.mode = mtime, uname, gid, len(data), 0o640
            tar.addfile(info, io.BytesIO(data))
        fifo = tarfile.TarInfo("./pipe")
        fifo.type = tarfile.FIFOTYPE
        tar.addfile(fifo)
    buffer.seek(0)
    return buffer


FILES = {"./etc/shadow": b"root:*:20000:0:99999:7:::\n", "./usr/bin/" + "x" * 150: os.urandom(70_000)}


def test_times_names_and_lost_groups_do_not_change_the_digest() -> None:
    groups = {"./etc/shadow": 42}
    ground = oci.normalise_layer(tar_of(FILES), None, epoch=500, groups=groups)
    later = oci.normalise_layer(tar_of(FILES, mtime=9999, uname="me"), None, epoch=500, groups=groups)
    owned = tar_of(FILES)
    assert later == ground
    assert oci.normalise_layer(owned, None, epoch=501, groups=groups) != ground
    assert oci.normalise_layer(tar_of(FILES), None, epoch=500, groups={}) != ground
    changed = {**FILES, "./etc/shadow": b"root:!:20000:0:99999:7:::\n"}
    assert oci.normalise_layer(tar_of(changed), None, epoch=500, groups=groups) != ground


def test_layer_is_a_plain_tar_of_what_belongs_in_an_image() -> None:
    target = io.BytesIO()
    layer = oci.normalise_layer(
        tar_of(FILES),
        target,
        epoch=500,
        groups={"./etc/shadow": 42},
        change=lambda name, data: data.replace(b"20000", b"0"),
    )
    assert layer.size == len(target.getvalue())
    assert layer.digest == "sha256:" + hashlib.sha256(target.getvalue()).hexdigest()
    target.seek(0)
    with tarfile.open(fileobj=target) as tar:
        members = {member.name: member for member in tar}
        assert list(members) == list(FILES), "no pipes or devices"
        shadow = tar.extractfile("./etc/shadow")
        assert shadow is not None
        assert shadow.read() == b"root:*:0:0:99999:7:::\n"
        big = tar.extractfile("./usr/bin/" + "x" * 150)
        assert big is not None
        assert big.read() == FILES["./usr/bin/" + "x" * 150]
    assert members["./etc/shadow"].gid == 42


def test_architecture_is_part_of_the_digest() -> None:
    layer = oci.Layer("sha256:" + "0" * 64, 10)
    assert oci.manifest(layer, "amd64")[0] != oci.manifest(layer, "arm64")[0]


def test_layout_holds_every_blob_under_its_digest(tmp_path: Path) -> None:
    archive = tmp_path / "layer.tar"
    with archive.open("wb") as file:
        layer = oci.normalise_layer(tar_of(FILES), file, epoch=500, groups={})
    digest = oci.write_layout(tmp_path / "layout", archive, layer, "amd64", "registry.example/base:1")
    blobs = tmp_path / "layout/blobs/sha256"
    for blob in blobs.iterdir():
        assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name
    index = json.loads((tmp_path / "layout/index.json").read_text())
    assert [entry["digest"] for entry in index["manifests"]] == [digest]
    manifest = json.loads((blobs / digest.removeprefix("sha256:")).read_text())
    config = json.loads((blobs / manifest["config"]["digest"].removeprefix("sha256:")).read_text())
    assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]] == [layer.digest]
    assert json.loads((tmp_path / "layout/oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}


def test_damaged_archive_is_an_error() -> None:
    data = tar_of(FILES).getvalue()
    with pytest.raises(tarfile.TarError):
        oci.normalise_layer(io.BytesIO(data[: len(data) // 2]), None, epoch=1, groups={})
