"""Files in and out: names, sizes, modes, links, and what must not come out."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from skill2env.sandbox.box_environment import BoxEnvironment

Use = Callable[..., None]
NAMES = (
    "plain",
    "with space",
    "new\nline",
    "-rf",
    "--",
    "*",
    "ünï-✓",
    "'quote\"",
    "back\\slash",
    "$(touch x)",
    "trailing ",
    ".hidden",
    "l" * 200,
    os.fsdecode(b"not-utf8-\xff\xfe"),
)


def tree(folder: Path) -> Path:
    folder.mkdir()
    for number, name in enumerate(NAMES):
        (folder / name).write_bytes(b"%d" % number)
    deep = folder / "/".join(f"d{n}" for n in range(30))
    deep.mkdir(parents=True)
    (deep / "bottom").write_text("deep")
    (folder / "empty-folder").mkdir()
    (folder / "empty-file").touch()
    (folder / "large").write_bytes(os.urandom(3_000_001))
    (folder / "link").symlink_to("plain")
    (folder / "linked-folder").symlink_to("d0/d1")
    os.link(folder / "plain", folder / "hard-link")
    for name, mode in (("with space", 0o640), ("ünï-✓", 0o755), ("empty-file", 0o600)):
        (folder / name).chmod(mode)
    return folder


def described(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(place, name)
            inner = str(path.relative_to(folder))
            if path.is_symlink():
                found[inner] = str(path.readlink())
            elif path.is_dir():
                found[inner] = "folder"
            else:
                found[inner] = (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
    return found


def test_there_and_back(use: Use, tmp_path: Path) -> None:
    source = tree(tmp_path / "in")

    async def work(env: BoxEnvironment) -> None:
        await env.upload_dir(source, "/deep/er/target")
        assert (await env.exec("ls -A /deep/er/target | wc -l")).stdout != "0\n"
        assert (await env.exec("stat -c '%U %a' '/deep/er/target/with space'")).stdout == "root 640\n"
        await env.download_dir("/deep/er/target", tmp_path / "out")

    use(work)
    assert described(tmp_path / "out") == described(source)


@pytest.mark.parametrize("name", NAMES)
def test_single_files(use: Use, tmp_path: Path, name: str, kind: str) -> None:
    if kind != "namespace" and "\udcff" in name:
        pytest.skip("engines take arguments as Unicode; inside folders such names are carried")
    (tmp_path / "in").write_bytes(b"content")

    async def work(env: BoxEnvironment) -> None:
        await env.upload_file(tmp_path / "in", f"/new folder/{name}")
        assert await env.is_file(f"/new folder/{name}")
        assert not await env.is_dir(f"/new folder/{name}")
        await env.download_file(f"/new folder/{name}", tmp_path / "out")

    use(work)
    assert (tmp_path / "out").read_bytes() == b"content"


def test_replacing(use: Use, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("new")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/a").write_text("new")

    async def work(env: BoxEnvironment) -> None:
        await env.exec(
            "mkdir /t; echo old > /t/other; ln -s /t/other /t/a; echo old > /outside; ln -s /outside /file"
        )
        await env.upload_dir(tmp_path / "folder", "/t")
        await env.upload_file(tmp_path / "file", "/file")
        told = await env.exec(
            "cat /t/a /t/other /file /outside; test -L /t/a || test -L /file || echo no links"
        )
        assert told.stdout == "newold\nnewold\nno links\n"

    use(work)


def test_what_is_not_there(use: Use, tmp_path: Path) -> None:
    async def work(env: BoxEnvironment) -> None:
        for load in (env.download_file, env.download_dir):
            with pytest.raises(FileNotFoundError):
                await load("/no/such", tmp_path / "none")
        assert not await env.is_file("/no/such")
        assert not await env.is_dir("/no/such")

    use(work)


def test_only_files_come_out(use: Use, tmp_path: Path) -> None:
    async def work(env: BoxEnvironment) -> None:
        await env.exec(
            "mkdir -p /t/sub && cd /t && ln -s /etc/passwd absolute && ln -s ../../etc up && ln -s sub inside && "
            "mkfifo p && python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('s')\"; echo x > sub/f; "
            "chmod 4755 sub/f"
        )
        await env.download_dir("/t", tmp_path / "out")

    use(work)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["inside", "sub"]
    assert stat.S_IMODE((tmp_path / "out/sub/f").stat().st_mode) == 0o755


def test_too_much_comes_out(use: Use, tmp_path: Path) -> None:
    async def work(env: BoxEnvironment) -> None:
        await env.exec("truncate -s 1200M /sparse")
        with pytest.raises(RuntimeError, match="more than 1024 MiB"):
            await env.download_file("/sparse", tmp_path / "out")

    use(work)


def test_emptying_and_making_folders(use: Use) -> None:
    async def work(env: BoxEnvironment) -> None:
        await env.exec("mkdir -p /d/x/y; touch /d/.h /d/..odd '/d/a b' /d/-f; ln -s / /l; echo keep > /kept")
        await env.empty_dirs(["/d", "/l", "/new"])
        told = await env.exec("ls -A /d /l /new; stat -c %a /d /new; test -L /l || cat /kept")
        assert told.stdout == "/d:\n\n/l:\n\n/new:\n777\n777\nkeep\n"
        await env.ensure_dirs(["/e/f g", "/d"])
        assert (await env.exec("stat -c %a '/e/f g'")).stdout == "777\n"

    use(work)


def test_filtered_downloads(use: Use, tmp_path: Path) -> None:
    async def work(env: BoxEnvironment) -> None:
        await env.exec("mkdir /t; touch /t/a.log /t/b.txt")
        await env.download_dir_with_exclusions(
            source_dir="/t", target_dir=tmp_path / "less", exclude=["*.log"]
        )
        await env.download_dir_filtered(source_dir="/t", target_dir=tmp_path / "only", include=["*.log"])

    use(work)
    assert os.listdir(tmp_path / "less") == ["b.txt"]
    assert os.listdir(tmp_path / "only") == ["a.log"]
