"""Files in and out: honest trees survive, hostile streams write nothing outside the target."""

import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skill2env.errors import InfraError
from skill2env.sandbox.guest_files import HEAD
from skill2env.sandbox.session import PathKind, Sandbox
from skill2env.sandbox.transfer import TransferRefused, Unpacker, pack, stays_inside


def entry(
    kind: bytes, name: str | bytes, body: bytes = b"", *, mode: int = 0o644, size: int | None = None
) -> bytes:
    raw = os.fsencode(name)
    numbers = (mode, 4), (0, 8), (len(body) if size is None else size, 8), (len(raw), 2)
    return kind + b"".join(value.to_bytes(width, "big") for value, width in numbers) + raw + body


END = entry(b"z", "")


def unpack(data: bytes, target: Path, **limits: object) -> None:
    with Unpacker(target, **limits) as unpacker:  # pyright: ignore[reportArgumentType]
        unpacker.feed(memoryview(data))
        assert unpacker.finished


def listing(top: Path) -> list[tuple[str, str, object]]:
    found: list[tuple[str, str, object]] = []
    for path in sorted(top.rglob("*")):
        name = str(path.relative_to(top))
        mode = oct(stat.S_IMODE(path.lstat().st_mode))
        if path.is_symlink():
            found.append((name, "link", os.readlink(path)))
        else:
            found.append((name, mode, path.read_bytes() if path.is_file() else "folder"))
    return found


# ---------------------------------------------------------------------------------------- the host's reader


def test_head_size() -> None:
    assert len(END) == HEAD


def test_a_tree_round_trip(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "a/b").mkdir(parents=True)
    (source / "empty").mkdir()
    (source / "a/b/run.sh").write_text("#!/bin/sh\n")
    (source / "a/b/run.sh").chmod(0o755)
    (source / "a/secret").write_bytes(b"\0\xff" * 100_000)
    (source / "a/secret").chmod(0o600)
    (source / "\udcff odd\n").write_text("x")
    (source / "link").symlink_to("a/b/run.sh")
    os.link(source / "a/secret", source / "second")
    os.mkfifo(source / "pipe")
    data = b"".join(pack(source))
    unpack(data, tmp_path / "target", links=True)
    wanted = [row for row in listing(source) if row[0] != "pipe"]
    assert listing(tmp_path / "target") == wanted


def test_a_single_file_becomes_the_target(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("x")
    unpack(b"".join(pack(tmp_path / "source")), tmp_path / "new" / "name")
    assert (tmp_path / "new" / "name").read_text() == "x"


@settings(max_examples=60, deadline=None)
@given(st.integers(min_value=1, max_value=40))
def test_pieces_of_any_size(tmp_path_factory: pytest.TempPathFactory, step: int) -> None:
    target = tmp_path_factory.mktemp("pieces")
    data = entry(b"d", "") + entry(b"f", "a/b", b"hello") + entry(b"l", "c", b"a/b") + END
    with Unpacker(target, links=True) as unpacker:
        for at in range(0, len(data), step):
            unpacker.feed(memoryview(data[at : at + step]))
        assert unpacker.finished
    assert (target / "c").read_text() == "hello"


@pytest.mark.parametrize("name", ["../x", "/x", "a/../x", "a//x", "./x", "a/.", "x\0y", ".."])
def test_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(TransferRefused):
        unpack(entry(b"d", "") + entry(b"f", name, b"evil") + END, tmp_path / "t" / "target")
    assert not list(tmp_path.rglob("x*"))


@pytest.mark.parametrize(
    "links", [["/etc"], [".."], ["../.."], ["b/.."], ["s/../../x", "../../../z"], ["", "."], ["x" * 5000]]
)
def test_links_that_lead_out_are_left_out(tmp_path: Path, links: list[str]) -> None:
    body = entry(b"d", "") + b"".join(entry(b"l", f"l{n}", link.encode()) for n, link in enumerate(links))
    if len(links[0]) > 4096:
        with pytest.raises(TransferRefused):
            unpack(body + END, tmp_path / "target", links=True)
        return
    unpack(body + END, tmp_path / "target", links=True)
    kept = [os.readlink(path) for path in (tmp_path / "target").iterdir()]
    assert kept in ([], ["."])


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target = tmp_path / "target"
    target.mkdir()
    (target / "way").symlink_to(outside)  # left by somebody else
    (target / "file").symlink_to(outside / "precious")
    (outside / "precious").write_text("precious")
    with pytest.raises(TransferRefused):
        unpack(entry(b"d", "") + entry(b"f", "way/x", b"evil") + END, target)
    with pytest.raises(TransferRefused):
        unpack(entry(b"d", "") + entry(b"d", "way") + END, target)
    unpack(entry(b"d", "") + entry(b"f", "file", b"evil") + END, target)
    assert (target / "file").read_text() == "evil"
    assert not (target / "file").is_symlink()
    assert (outside / "precious").read_text() == "precious"
    assert [path.name for path in outside.iterdir()] == ["precious"]
    # A link of the stream itself is no way either.
    with pytest.raises(TransferRefused):
        unpack(
            entry(b"d", "") + entry(b"l", "in", b"way2") + entry(b"f", "in/x", b"evil") + END,
            target,
            links=True,
        )


def test_modes_lose_what_is_dangerous_and_stay_usable(tmp_path: Path) -> None:
    body = entry(b"d", "") + entry(b"f", "suid", b"x", mode=0o6755) + entry(b"f", "closed", b"x", mode=0)
    unpack(body + entry(b"d", "dir", mode=0o1000) + entry(b"f", "dir/f", b"x") + END, tmp_path / "t")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "t").iterdir()}
    assert modes == {"suid": 0o755, "closed": 0o400, "dir": 0o700}


@pytest.mark.parametrize(
    "data",
    [
        entry(b"q", "x"),
        entry(b"c", "device"),
        entry(b"f", "big", size=2**40),
        entry(b"f", "x" * 5000),
        entry(b"f", "/".join(["d"] * 300)),
        entry(b"l", "x", size=2**20),
    ],
)
def test_damage_and_excess_are_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(TransferRefused):
        unpack(entry(b"d", "") + data + END, tmp_path / "t", links=True)


@pytest.mark.parametrize(
    "data",
    [
        entry(b"f", "", b"x") + entry(b"f", "sibling", b"evil"),  # beside the target instead of below it
        entry(b"f", "", b"x") + entry(b"f", "", b"y"),  # each would cost the host a descriptor
        entry(b"d", "") + entry(b"f", "", b"x"),
        entry(b"d", "") + entry(b"f", "x" * 256, b"x"),
        entry(b"d", "") + entry(b"d", "\u00e9" * 128),
    ],
)
def test_nothing_follows_a_single_file_and_names_fit(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(TransferRefused):
        unpack(data + END, tmp_path / "in" / "target")
    assert {path.name for path in (tmp_path / "in").iterdir()} <= {"target"}


def test_limit_of_bytes_and_a_folder_in_the_way(tmp_path: Path) -> None:
    with pytest.raises(TransferRefused, match="more than 1 MiB"):
        unpack(
            entry(b"d", "") + entry(b"f", "x", b"x" * (2**20 + 1)) + END, tmp_path / "t", limit_bytes=2**20
        )
    (tmp_path / "u" / "x").mkdir(parents=True)
    with pytest.raises(TransferRefused, match="where a folder is"):
        unpack(entry(b"d", "") + entry(b"f", "x", b"x") + END, tmp_path / "u")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_noise_never_escapes(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    top = tmp_path_factory.mktemp("noise")
    with contextlib.suppress(TransferRefused, AssertionError, OSError, ValueError):
        unpack(noise, top / "in" / "target", links=True, limit_bytes=1000)
    assert {path.name for path in top.iterdir()} <= {"in"}
    assert {path.name for path in (top / "in").iterdir()} <= {"target"} if (top / "in").exists() else True


_NAME = st.sampled_from(["a", "b", "c"])
_PATH = st.lists(_NAME, min_size=1, max_size=4).map("/".join)
_LINK = st.lists(st.sampled_from(["a", "b", "c", "..", "."]), min_size=1, max_size=5).map("/".join)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(_PATH, _LINK), max_size=6))
def test_kept_links_resolve_inside_whatever_else_is_there(
    tmp_path_factory: pytest.TempPathFactory, links: list[tuple[str, str]]
) -> None:
    top = (tmp_path_factory.mktemp("links") / "top").resolve()
    top.mkdir()
    for name, link in links:
        path = top / name
        if not stays_inside(name, link):
            continue
        try:
            if path.parent.resolve() != path.parent:
                continue  # below another link, where the reader never writes
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(link)
        except (OSError, RuntimeError):
            continue
    for path in top.rglob("*"):
        if path.is_symlink():
            try:
                resolved = path.resolve(strict=False)
            except (OSError, RuntimeError):
                continue
            assert resolved.is_relative_to(top), (path, os.readlink(path))


# ---------------------------------------------------------------------------------------- both ends


@pytest.mark.sandbox
def test_put_and_get(box: Sandbox, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub/data").write_bytes(os.urandom(500_000))
    (source / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (source / "run.sh").chmod(0o750)
    (source / "run.sh").touch()
    os.utime(source / "sub/data", (1_000_000_000, 1_000_000_000))
    (source / "link").symlink_to("sub/data")
    (source / "out").symlink_to("/etc/passwd")
    box.put(source, "/data/in")
    assert box.exec(["/data/in/run.sh"]).stdout == b"ran\n"
    look = box.exec(["stat", "-c", "%n %a %U %Y", "sub/data"], cwd="/data/in").stdout
    assert look == b"sub/data 644 root 1000000000\n"
    assert box.exec(["readlink", "/data/in/out"]).stdout == b"/etc/passwd\n"
    box.get("/data/in", tmp_path / "back", links=True)
    assert listing(tmp_path / "back") == [row for row in listing(source) if row[0] != "out"]
    assert int((tmp_path / "back/sub/data").stat().st_mtime) == 1_000_000_000
    box.get("/data/in", tmp_path / "plain")
    assert not (tmp_path / "plain/link").exists()
    box.put(source / "run.sh", "/data/new/name.sh")
    box.get("/data/new/name.sh", tmp_path / "one/name")
    assert (tmp_path / "one/name").read_text() == (source / "run.sh").read_text()
    assert stat.S_IMODE((tmp_path / "one/name").stat().st_mode) == 0o750


@pytest.mark.sandbox
def test_put_for_another_user(box: Sandbox, tmp_path: Path) -> None:
    if not box.identity.several_users:
        pytest.skip("one uid")
    (tmp_path / "in/d").mkdir(parents=True)
    (tmp_path / "in/d/f").write_text("x")
    box.put(tmp_path / "in", "/owned", owner="nobody")
    assert box.exec(["stat", "-c", "%U", "/owned/d", "/owned/d/f"]).stdout == b"nobody\nnobody\n"


@pytest.mark.sandbox
def test_put_overwrites_and_never_follows(box: Sandbox, tmp_path: Path) -> None:
    script = (
        "mkdir -p /t/dir/old; echo x > /t/dir/old/f; echo keep > /precious; "
        "ln -s /precious /t/file; ln -s / /t/sub"
    )
    box.exec(["sh", "-c", script])
    (tmp_path / "in/sub").mkdir(parents=True)
    (tmp_path / "in/file").write_text("new")
    (tmp_path / "in/dir").write_text("a file now")
    (tmp_path / "in/sub/inner").write_text("inner")
    box.put(tmp_path / "in", "/t")
    assert box.exec(["sh", "-c", "cat /precious /t/file /t/dir /t/sub/inner; ls /inner"]).stdout == (
        b"keep\nnewa file nowinner"
    )


@pytest.mark.sandbox
def test_get_of_a_hostile_tree(box: Sandbox, tmp_path: Path) -> None:
    script = """
mkdir -p /h/d /h/closed && cd /h && echo x > d/f && chmod 4755 d/f && mkfifo fifo
ln -s /etc abs; ln -s ../.. up; ln -s loop loop; ln -s d/f good; ln d/f hard
python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('/h/sock')"
truncate -s 300M sparse; touch "$(printf 'new\\nline')" -- "-rf"; echo y > closed/y; chmod 0 closed/y closed
"""
    assert box.exec(["bash", "-c", script]).return_code == 0
    with pytest.raises(TransferRefused, match="200 MiB"):
        box.get("/h", tmp_path / "big", limit_bytes=200 * 2**20, links=True)
    box.exec(["rm", "/h/sparse"])
    box.get("/h", tmp_path / "out", links=True)
    assert listing(tmp_path / "out") == [
        ("-rf", "0o644", b""),
        ("closed", "0o700", "folder"),
        ("closed/y", "0o400", b"y\n"),
        ("d", "0o755", "folder"),
        ("d/f", "0o755", b"x\n"),
        ("good", "link", "d/f"),
        ("hard", "0o755", b"x\n"),
        ("loop", "link", "loop"),
        ("new\nline", "0o644", b""),
    ]


@pytest.mark.sandbox
def test_get_what_is_not_there(box: Sandbox, tmp_path: Path) -> None:
    box.exec(["sh", "-c", "mkfifo /pipe; ln -s /nowhere /dangling"])
    for path in ("/no/such", "/pipe", "/dangling", "/dev/zero"):
        with pytest.raises(FileNotFoundError):
            box.get(path, tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        box.put(tmp_path / "missing", "/x")
    assert not (tmp_path / "x").exists()


@pytest.mark.sandbox
def test_get_of_a_tree_without_end(box: Sandbox, tmp_path: Path) -> None:
    script = (
        "import os\nos.mkdir('/deep')\nos.chdir('/deep')\nfor _ in range(400): os.mkdir('d'); os.chdir('d')"
    )
    assert box.exec(["python3", "-c", script]).return_code == 0
    with pytest.raises(TransferRefused, match="deep"):
        box.get("/deep", tmp_path / "x")


@pytest.mark.sandbox
def test_emptying_folders_without_end(box: Sandbox) -> None:
    script = (
        "import os\nos.makedirs('/deeper/x')\nos.chdir('/deeper/x')\n"
        "for _ in range(20_000): os.mkdir('d'); os.chdir('d')\n"
        "open('f', 'w').close(); os.symlink('/etc', 'link')"
    )
    assert box.exec(["python3", "-c", script]).return_code == 0
    box.empty_folders(["/deeper"])
    assert box.exec(["sh", "-c", "ls -A /deeper; test -s /etc/passwd"]).stdout == b""


@pytest.mark.sandbox
def test_put_on_a_full_disk(new_box: Callable[..., Sandbox], tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(2**20))
    box = new_box()
    box.exec(["sh", "-c", "head -c 300M /dev/zero > /run/fill 2>&1"])
    with pytest.raises(Exception, match="No space left"):
        box.put(tmp_path / "big", "/run/more")


@pytest.mark.sandbox
def test_folders_and_kinds(box: Sandbox) -> None:
    box.make_folders({"/made/a": 0o777, "/made/b/c": None, "/tmp": None})
    assert box.exec(["stat", "-c", "%a", "/made/a", "/made/b/c", "/tmp"]).stdout == b"777\n755\n1777\n"
    box.exec(
        [
            "sh",
            "-c",
            "cd /made/a && mkdir -p d/e && touch .hidden d/e/f && ln -s /etc/passwd out && ln -s a ../link",
        ]
    )
    box.empty_folders(["/made/a", "/made/link", "/made/new/one", "/made/b/c"])
    where = "/made/a /made/link /made/new/one"
    look = f"find /made -type l; find /made -type f; stat -c '%a %F' {where}; test -s /etc/passwd"
    done = box.exec(["sh", "-c", look])
    assert (done.stdout, done.return_code) == (b"777 directory\n" * 3, 0)
    kinds = [box.kind(path) for path in ("/etc", "/etc/passwd", "/dev/null", "/no/such", "/bin")]
    assert kinds == [PathKind.FOLDER, PathKind.FILE, PathKind.OTHER, PathKind.OTHER, PathKind.FOLDER]
    with pytest.raises(InfraError, match=r"Not a directory|File exists"):
        box.make_folders({"/etc/passwd/x": None})
    with pytest.raises(InfraError, match="emptying /proc/self/x"):
        box.empty_folders(["/proc/self/x"])
