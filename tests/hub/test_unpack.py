"""Archives of strangers: planted ones, each with one thing wrong."""

import gzip
import io
import lzma
import stat
import tarfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from skill2env.hub.safe_tree import SafeTree, UnpackLimits
from skill2env.hub.tar_stream import BadArchive
from skill2env.hub.unpack import unpack


def tar_of(path: Path, *members: tuple[tarfile.TarInfo | str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for member, data in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            if info.isreg():
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def typed(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zip_of(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., tuple[list[str], list[str]]]:
    """Unpacks into a fresh folder: files that are there, and members that were refused."""

    def run(archive: Path, **limits: int) -> tuple[list[str], list[str]]:
        root = tmp_path / "unpacked"
        root.mkdir()
        found = unpack(archive, root, UnpackLimits(**limits))
        files = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir())
        return files, [item.where for item in found]

    return run


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_every_tar_is_unpacked(mode: str, tmp_path: Path, opened) -> None:
    archive = tar_of(tmp_path / "a.bin", ("a/SKILL.md", b"x"), ("./a/b/c.py", b"#!"), mode=mode)
    assert opened(archive) == (["a/SKILL.md", "a/b/c.py"], [])


def test_executable_bits_survive(tmp_path: Path, opened) -> None:
    info = tarfile.TarInfo("run.sh")
    info.mode = 0o6777  # set-uid must not survive
    opened(tar_of(tmp_path / "a.tgz", (info, b"x"), ("plain", b"y")))
    modes = [stat.S_IMODE((tmp_path / "unpacked" / name).stat().st_mode) for name in ("run.sh", "plain")]
    assert modes[0] & 0o7111 == 0o111
    assert modes[1] & 0o7111 == 0


@pytest.mark.parametrize(
    "name",
    [
        "../out",
        "a/../../out",
        "/etc/out",
        "a\\..\\out",
        "a/\x1b[2J",
        "a/b\u202ec",
        "a /b",
        "a/.",
        "a./b",
        "x/" * 70 + "y",
    ],
)
@pytest.mark.parametrize("form", ["tar", "zip"])
def test_bad_names_cost_the_member_only(name: str, form: str, tmp_path: Path, opened) -> None:
    make = tar_of if form == "tar" else zip_of
    files, refused = opened(make(tmp_path / "a.bin", (name, b"x"), ("good/SKILL.md", b"y")))
    assert files == ["good/SKILL.md"]
    assert len(refused) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.LNKTYPE])
def test_devices_pipes_and_hard_links_are_refused(kind: bytes, tmp_path: Path, opened) -> None:
    archive = tar_of(tmp_path / "a.tar", (typed("odd", kind, "SKILL.md"), b""), ("SKILL.md", b"x"))
    assert opened(archive) == (["SKILL.md"], ["odd"])


def test_links_that_lead_out_are_refused_and_others_come_last(tmp_path: Path, opened) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    archive = tar_of(
        tmp_path / "a.tar",
        (typed("d", tarfile.SYMTYPE, str(outside)), b""),
        (typed("e", tarfile.SYMTYPE, "../outside"), b""),
        (typed("f", tarfile.SYMTYPE, "g"), b""),
        ("d/planted", b"x"),  # written through the link, it would land outside
        ("f/kept", b"y"),
        (typed("inside", tarfile.SYMTYPE, "f/kept"), b""),
    )
    files, refused = opened(archive)
    assert not list(outside.iterdir())
    assert files == ["d/planted", "f/kept", "inside"]
    assert refused == ["d", "e", "f"]


def test_links_in_zips_are_links_too(tmp_path: Path, opened) -> None:
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    files, refused = opened(zip_of(tmp_path / "a.zip", (info, b"/etc/passwd"), ("SKILL.md", b"x")))
    assert (files, refused) == (["SKILL.md"], ["link"])


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("twin", ["a/SKILL.md", "a/skill.MD", "A/SKILL.md", "a/SKILL.md/below"])
def test_the_first_of_colliding_names_is_kept(twin: str, tmp_path: Path, opened) -> None:
    files, refused = opened(zip_of(tmp_path / "a.zip", ("a/SKILL.md", b"one"), (twin, b"two")))
    assert files == ["a/SKILL.md"]
    assert refused == [twin]
    assert (tmp_path / "unpacked/a/SKILL.md").read_bytes() == b"one"


def test_accents_of_both_spellings_collide(tmp_path: Path, opened) -> None:
    files, refused = opened(zip_of(tmp_path / "a.zip", ("caf\u00e9", b"1"), ("cafe\u0301", b"2")))
    assert (len(files), len(refused)) == (1, 1)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"members": 2}, "more than 2 members"),
        ({"file_bytes": 10}, "more than 10 bytes"),
        ({"total_bytes": 20}, "more than 20 bytes"),
    ],
)
def test_what_cannot_be_bounded_is_refused_whole(
    limits: dict[str, int], words: str, tmp_path: Path, opened
) -> None:
    archive = tar_of(tmp_path / "a.tar", ("a", b"x" * 9), ("b", b"x" * 9), ("c", b"x" * 11))
    with pytest.raises(BadArchive, match=words):
        opened(archive, **limits)


def test_a_bomb_is_refused_by_its_ratio(tmp_path: Path) -> None:
    tree = SafeTree(tmp_path, UnpackLimits(ratio=10), packed_bytes=7 * 2**20)
    with pytest.raises(BadArchive, match="bomb"):
        tree.file("zeros", gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(bytes(80 * 2**20), 1))))


def test_a_sparse_giant_stops_early(tmp_path: Path, opened) -> None:
    info = tarfile.TarInfo("giant")
    info.size = 2**40
    path = tmp_path / "a.tar"
    path.write_bytes(info.tobuf() + bytes(1024))
    with pytest.raises(BadArchive, match="damaged"):
        opened(path)


@pytest.mark.parametrize("cut", [10, 100, 3000])
@pytest.mark.parametrize("form", ["tar", "zip"])
def test_damaged_archives_are_messages(cut: int, form: str, tmp_path: Path, opened) -> None:
    make = tar_of if form == "tar" else zip_of
    archive = make(tmp_path / "a.bin", ("SKILL.md", bytes(range(256)) * 40))
    archive.write_bytes(archive.read_bytes()[:-cut])
    with pytest.raises(BadArchive, match="refused"):
        opened(archive)


def test_flipped_bits_are_messages_or_found_by_the_checksum(tmp_path: Path, opened) -> None:
    archive = zip_of(tmp_path / "a.zip", ("SKILL.md", bytes(range(256)) * 40))
    data = bytearray(archive.read_bytes())
    data[60] ^= 0x40
    archive.write_bytes(data)
    with pytest.raises(BadArchive, match="damaged"):
        opened(archive)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"#!/bin/sh\necho hello\n", b"\x28\xb5\x2f\xfdzstd"])
def test_what_is_no_archive_is_a_message(data: bytes, tmp_path: Path, opened) -> None:
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(BadArchive):
        opened(tmp_path / "a.zip")


def test_encrypted_members_are_refused(tmp_path: Path, opened) -> None:
    archive = zip_of(tmp_path / "a.zip", ("secret", b"x"), ("SKILL.md", b"y"))
    data = bytearray(archive.read_bytes())
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + at] |= 1
    archive.write_bytes(data)
    assert opened(archive) == (["SKILL.md"], ["secret"])


def test_refusals_are_counted_but_not_listed_without_end(tmp_path: Path, opened) -> None:
    names = [(f"../{number}", b"") for number in range(300)]
    _, refused = opened(tar_of(tmp_path / "a.tar", *names))
    assert len(refused) == 201


def test_links_are_judged_by_where_they_lead_through_others(tmp_path: Path, opened) -> None:
    (tmp_path / "secret").write_text("host")
    archive = tar_of(
        tmp_path / "a.tar",
        ("d/f", b"x"),
        (typed("x", tarfile.SYMTYPE, "d/e/../secret"), b""),  # lexically d/secret
        (typed("d/e", tarfile.SYMTYPE, ".."), b""),
        (typed("loop", tarfile.SYMTYPE, "loop"), b""),
        (typed("fine", tarfile.SYMTYPE, "d/e/d/f"), b""),
    )
    files, refused = opened(archive)
    assert (files, refused) == (["d/f", "fine"], ["x", "loop"])
    root = (tmp_path / "unpacked").resolve()
    links = [path for path in root.rglob("*") if path.is_symlink()]
    assert len(links) == 2
    assert all(path.resolve().is_relative_to(root) for path in links)


@pytest.mark.parametrize("target", ["", "x" * 5000, "a\0b", "a\nb"])
def test_odd_link_targets_cost_the_link_only(target: str, tmp_path: Path) -> None:
    tree = SafeTree(tmp_path)
    tree.link("odd", target)
    tree.file("SKILL.md", io.BytesIO(b"x"))
    assert [item.where for item in tree.finish()] == ["odd"]
    assert (tmp_path / "SKILL.md").is_file()


def test_names_that_no_file_system_takes_cost_the_member_only(tmp_path: Path) -> None:
    tree = SafeTree(tmp_path)
    for name in ("n" * 300, "é" * 200, f"{'f' * 300}/x", "a/b", "a"):  # the last one: a folder stands there
        tree.file(name, io.BytesIO(b"x"))
    tree.link("c/d", "../a/b")
    tree.link("c", "a")
    refused = [item.where for item in tree.finish()]
    assert refused == ["n" * 300, "é" * 200, f"{'f' * 300}/x"[:300], "a", "c"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_headers_of_a_huge_size_are_not_read(kind: bytes, tmp_path: Path, opened) -> None:
    info = typed("long", kind)
    info.size = 2**33
    (tmp_path / "a.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(8 * 2**20))
    tracemalloc.start()
    with pytest.raises(BadArchive, match="header has more than"):
        opened(tmp_path / "a.tar")
    assert tracemalloc.get_traced_memory()[1] < 4 * 2**20
    tracemalloc.stop()


def test_chains_of_long_names_are_refused(tmp_path: Path, opened) -> None:
    info = typed("long", tarfile.GNUTYPE_LONGNAME)
    info.size = 1
    (tmp_path / "a.tar").write_bytes((info.tobuf(tarfile.GNU_FORMAT) + bytes(512)) * 10_000)
    with pytest.raises(BadArchive, match="refused"):
        opened(tmp_path / "a.tar")


@pytest.mark.parametrize("name", ["../out", "a/."])
def test_payloads_of_refused_members_count(name: str, tmp_path: Path, opened) -> None:
    archive = tar_of(tmp_path / "a.tar", *[(name, bytes(50_000))] * 5)
    with pytest.raises(BadArchive, match="more than 100,000 bytes and their headers"):
        opened(archive, total_bytes=100_000, members=10)


def test_payloads_of_refused_members_count_for_the_ratio(tmp_path: Path, opened) -> None:
    archive = tar_of(tmp_path / "a.tar", ("../out", bytes(80 * 2**20)))
    with pytest.raises(BadArchive, match="bomb"):
        opened(archive)


def test_folders_and_hard_links_are_members(tmp_path: Path, opened) -> None:
    members = [(typed(f"d{n}", tarfile.DIRTYPE), b"") for n in range(3)]
    archive = tar_of(tmp_path / "a.tar", *members, (typed("h", tarfile.LNKTYPE, "x"), b""))
    with pytest.raises(BadArchive, match="more than 3 members"):
        opened(archive, members=3)


def test_xz_may_not_ask_for_memory_without_end(tmp_path: Path, opened) -> None:

    small = lzma.compress(b"x")
    # The dictionary's size is one byte of the block's header, which a checksum follows.
    header = bytearray(small[12:20])
    header[4] = 36  # 1 GiB
    packed = small[:12] + bytes(header) + zlib.crc32(header).to_bytes(4, "little") + small[24:]
    (tmp_path / "a.tar.xz").write_bytes(packed)
    with pytest.raises(BadArchive, match=r"[Mm]emory"):
        opened(tmp_path / "a.tar.xz")


def test_xz_of_several_streams_is_read(tmp_path: Path, opened) -> None:
    whole = tar_of(tmp_path / "a.tar", ("SKILL.md", b"x" * 4000), mode="w").read_bytes()
    (tmp_path / "a.txz").write_bytes(lzma.compress(whole[:1000]) + bytes(8) + lzma.compress(whole[1000:]))
    assert opened(tmp_path / "a.txz") == (["SKILL.md"], [])
