"""Archives with something wrong in them: the rest is read, and what is not is named."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable

import pytest

from skill2env import packed
from skill2env.packed import Member, members

TEXT = b"words that no compression makes much of: " + bytes(range(33, 126)) * 40


def zipped(*names: str, packing: int = zipfile.ZIP_DEFLATED) -> bytearray:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", packing) as archive:
        for name in names:
            archive.writestr(name, name.encode() + TEXT)
    return bytearray(stream.getvalue())


def tarred(*names: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name in names:
            data = name.encode() + TEXT
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def found(data: bytes | bytearray) -> dict[str, Member]:
    return {member.name: member for member in members("x/file.gz", bytes(data))}


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_damaged_member_leaves_the_others_readable(packing: int) -> None:
    data = zipped("a", "b", "c", packing=packing)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        info = archive.getinfo("b")
    data[info.header_offset + 31 + info.compress_size // 2] ^= 0xFF
    got = found(data)
    assert [got[name].data for name in "ac"] == [b"a" + TEXT, b"c" + TEXT]
    assert [bool(got[name].problem) for name in "abc"] == [False, True, False]


def test_a_wrong_check_sum_hides_nothing() -> None:
    data = zipped("a", "b")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        check = archive.getinfo("a").CRC.to_bytes(4, "little")
    bad = bytes(data).replace(check, b"\1\2\3\4")
    got = found(bad)
    assert got["a"].data == b"a" + TEXT
    assert "damaged" in got["a"].problem
    assert got["b"] == Member("b", b"b" + TEXT)


def test_members_that_nobody_opens_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    data = zipped("a", "b")
    flagged = bytes(data).replace(b"PK\1\2\x14\x03\x14\0\0\0", b"PK\1\2\x14\x03\x14\0\1\0", 1)
    assert flagged != data
    got = found(flagged)
    assert got["a"].problem, "encrypted"
    assert not got["b"].problem
    monkeypatch.setattr(packed, "MEMBERS_LIMIT", 1)
    assert [(m.name, bool(m.problem)) for m in members("x", bytes(data))] == [("a", False), ("", True)]
    assert [(m.name, bool(m.problem)) for m in members("x", tarred("a", "b"))] == [("a", False), ("", True)]
    monkeypatch.setattr(packed, "MEMBER_LIMIT_BYTES", 100)
    for archive in (zipped("a"), tarred("a"), gzip.compress(TEXT)):
        (large,) = members("x", bytes(archive))
        assert "has more than" in large.problem
        assert len(large.data) <= 100


def test_a_folder_of_a_zip_that_holds_something_is_a_member() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.mkdir("empty")
        archive.writestr("full/", "words")
    assert [(m.name, m.data) for m in members("x", stream.getvalue())] == [("full/", b"words")]


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files_and_their_ends(compress: Callable[[bytes], bytes]) -> None:
    data = compress(TEXT)
    assert found(data) == {"file": Member("file", TEXT)}
    assert found(data + compress(b"second"))["file"].data == TEXT + b"second", (
        "a second stream is no hiding place"
    )
    assert found(data[:-12])["file"].problem
    tar = compress(tarred("a", "b"))
    assert found(tar) == {"a": Member("a", b"a" + TEXT), "b": Member("b", b"b" + TEXT)}


def test_a_tar_that_ends_too_early() -> None:
    whole = tarred("a", "b")
    cut = whole[: len(whole) // 2 + 200]
    got = list(members("x", cut))
    assert got[0] == Member("a", b"a" + TEXT)
    assert got[-1].problem


def test_other_data_holds_nothing() -> None:
    assert list(members("x", b"plain words")) == []
    assert list(members("x", b"")) == []
