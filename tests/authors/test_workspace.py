import os
import shutil
import socket
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skill2env.authors.staging import lay_out, read_inside, stage_source
from skill2env.authors.workspace import CollectLimits, collect, name_problem, path_problem
from skill2env.errors import Boundary, InfraError
from skill2env.records import FileKind, Reason, Skill, SkillFile, digest_bytes


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "a/b").mkdir(parents=True)
    (folder / "a/b/file.txt").write_bytes(b"data")
    (folder / "run.sh").write_bytes(b"#!/bin/sh\n")
    (folder / "run.sh").chmod(0o700)
    return folder


def refusals(source: Path, limits: CollectLimits | None = None) -> list[tuple[Reason, str]]:
    target = source.parent / "target"
    shutil.rmtree(target, ignore_errors=True)
    taken = collect(source, target, limits or CollectLimits())
    return [(item.reason, item.message) for item in taken.refusals]


def test_regular_files_and_modes(source: Path, tmp_path: Path) -> None:
    (source / "a/b/file.txt").chmod(0o600)
    (source / "empty").mkdir()
    (source / "a/__pycache__").mkdir()
    (source / "a/__pycache__/link").symlink_to("/etc/passwd")
    taken = collect(source, tmp_path / "out")
    assert taken.refusals == ()
    assert {path: item.executable for path, item in taken.files.items()} == {
        "a/b/file.txt": False,
        "run.sh": True,
    }
    assert taken.files["a/b/file.txt"].digest == digest_bytes(b"data")
    assert stat.S_IMODE((tmp_path / "out/a/b/file.txt").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "out/run.sh").stat().st_mode) == 0o755
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a", "run.sh"]


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "a/b/file.txt", "loop", "missing", "."])
def test_links_are_refused_whatever_they_point_to(source: Path, target: str) -> None:
    (source / "loop").symlink_to(target)
    assert refusals(source) == [(Reason.UNSAFE_FILE, "loop: symbolic link; only regular files are taken")]


def test_link_to_a_folder_is_not_walked(source: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("s")
    (source / "a/door").symlink_to(tmp_path / "outside")
    taken = collect(source, tmp_path / "out")
    assert [item.path for item in taken.refusals] == ["a/door"]
    assert not any("secret" in path for path in taken.files)


def test_special_files(source: Path) -> None:
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(source)  # the path of a socket has a short limit
        try:
            server.bind("sock")
        finally:
            os.chdir(here)
    (source / "run.sh").chmod(0o4755)
    assert [message for _, message in refusals(source)] == [
        "pipe: FIFO; only regular files are taken",
        "run.sh: set-user-id or set-group-id bit",
        "sock: socket; only regular files are taken",
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make devices and chroot-like owners")
def test_device(source: Path) -> None:
    try:
        os.mknod(source / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("this root may not make devices")
    assert refusals(source) == [(Reason.UNSAFE_FILE, "null: character device; only regular files are taken")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file(source: Path) -> None:
    (source / "run.sh").chmod(0)
    assert refusals(source) == [(Reason.UNSAFE_FILE, "run.sh: cannot be read (Permission denied)")]


@pytest.mark.parametrize(
    "name",
    [
        b"new\nline",
        b"esc\x1b[2J",
        b"\xff\xfe",
        b"back\\slash",
        b" lead",
        b"trail ",
        b"dot.",
        "zero\u200bwidth".encode(),
    ],
)
def test_odd_names(source: Path, name: bytes) -> None:
    (Path(os.fsdecode(bytes(source))) / os.fsdecode(name)).write_bytes(b"x")
    ((reason, message),) = refusals(source)
    assert reason is Reason.UNSAFE_FILE
    assert message.isprintable()


def test_names_that_differ_only_in_case_or_encoding(source: Path) -> None:
    (source / "Makefile").write_text("a")
    (source / "makefile").write_text("b")
    (source / "caf\u00e9").write_text("a")
    (source / "cafe\u0301").write_text("b")
    assert [reason for reason, _ in refusals(source)] == [Reason.UNSAFE_FILE] * 2


def test_limits(source: Path) -> None:
    (source / "big").write_bytes(b"0" * 11)
    assert [reason for reason, _ in refusals(source, CollectLimits(max_file_bytes=10))] == [Reason.TOO_LARGE]
    assert "together exceed" in refusals(source, CollectLimits(max_total_bytes=20))[0][1]
    assert "more than 3" in refusals(source, CollectLimits(max_files=3))[0][1]
    assert "nested deeper" in refusals(source, CollectLimits(max_depth=2))[0][1]
    assert "path longer" in refusals(source, CollectLimits(max_path_bytes=10))[0][1]
    assert (
        refusals(source, CollectLimits(max_file_bytes=11, max_total_bytes=25, max_files=5, max_depth=3)) == []
    )


def test_sparse_giant_is_not_read(source: Path) -> None:
    with (source / "sparse").open("wb") as stream:
        stream.truncate(2**40)
    assert refusals(source) == [
        (Reason.TOO_LARGE, f"sparse: larger than {CollectLimits().max_file_bytes} bytes")
    ]


def test_many_folders_and_many_refusals_end(source: Path) -> None:
    for number in range(300):
        (source / f"link{number}").symlink_to("x")
    assert len(refusals(source)) == 100
    for number in range(3000):
        (source / f"d{number}").mkdir()
    assert any(reason is Reason.TOO_LARGE for reason, _ in refusals(source))


def test_missing_and_replaced_folder(tmp_path: Path) -> None:
    assert collect(tmp_path / "nothing", tmp_path / "a").files == {}
    (tmp_path / "link").symlink_to("/etc")
    assert [item.path for item in collect(tmp_path / "link", tmp_path / "b").refusals] == ["."]
    (tmp_path / "plain").write_text("x")
    assert [item.path for item in collect(tmp_path / "plain", tmp_path / "c").refusals] == ["."]


def test_full_or_closed_target_is_an_infra_failure(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InfraError) as caught:
        collect(source, tmp_path / "file" / "below")
    assert caught.value.boundary is Boundary.STORAGE


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tree=st.dictionaries(
        st.lists(st.text("abcXYZ09._-é", min_size=1, max_size=8), min_size=1, max_size=3).map("/".join),
        st.tuples(st.binary(max_size=30), st.booleans()),
        max_size=8,
    )
)
def test_collect_then_lay_out_round_trips(tmp_path: Path, tree: dict[str, tuple[bytes, bool]]) -> None:
    for name in ("src", "got", "laid", "again"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
    (tmp_path / "src").mkdir()
    for path, (data, executable) in tree.items():
        try:
            (tmp_path / "src" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "src" / path).write_bytes(data)
        except OSError:
            continue  # the name is taken by a folder, or the other way round
        (tmp_path / "src" / path).chmod(0o755 if executable else 0o644)
    taken = collect(tmp_path / "src", tmp_path / "got")
    lay_out(taken.files, tmp_path / "got", tmp_path / "laid")
    assert collect(tmp_path / "laid", tmp_path / "again").files == taken.files
    for path, item in taken.files.items():
        assert digest_bytes((tmp_path / "src" / path).read_bytes()) == item.digest
        assert not path_problem(path)


@given(st.text())
def test_paths_from_documents(path: str) -> None:
    if not path_problem(path):
        assert not path.startswith("/")
        assert not {"", ".", ".."} & set(path.split("/"))
        assert "\0" not in path
        assert all(not name_problem(part) for part in path.split("/"))


@pytest.mark.parametrize(
    "path", ["", "/etc", "..", "a/../b", "a//b", "./a", "a\0b", "a/", "a\\b", "a\nb", "x" * 300]
)
def test_bad_paths(path: str) -> None:
    assert path_problem(path)


def test_read_inside(source: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (source / "door").symlink_to(tmp_path)
    (source / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(source / "pipe")
    assert read_inside(source, "a/b/file.txt") == b"data"
    for path in ("door/secret", "link", "pipe", "a", "missing"):
        with pytest.raises(OSError, match=r".+"):
            read_inside(source, path)
    with pytest.raises(OSError, match="larger than 3"):
        read_inside(source, "a/b/file.txt", limit=3)


def test_stage_source_writes_links_out_and_skips_what_was_refused(source: Path, tmp_path: Path) -> None:
    files = (
        SkillFile(path="a/b/file.txt", kind=FileKind.TEXT, size=4, sha256=digest_bytes(b"data")),
        SkillFile(path="a/alias.txt", kind=FileKind.SYMLINK, size=0, sha256="", target="b/file.txt"),
        SkillFile(path="out", kind=FileKind.SYMLINK, size=0, sha256="", target="../../etc/passwd"),
        SkillFile(path="pipe", kind=FileKind.REFUSED, size=0, sha256=""),
    )
    skill = Skill(name="s", slug="s", description="", body="", files=files, digest=digest_bytes(b""))
    stage_source(skill, source, tmp_path / "staged")
    assert (tmp_path / "staged/a/alias.txt").read_bytes() == b"data"
    assert not (tmp_path / "staged/a/alias.txt").is_symlink()
    assert sorted(path.name for path in (tmp_path / "staged").rglob("*")) == [
        "a",
        "alias.txt",
        "b",
        "file.txt",
    ]
