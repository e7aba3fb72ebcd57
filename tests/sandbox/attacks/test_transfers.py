"""Files that come out of a sandbox, and files that go in: names, links, kinds, depth, number, size and change."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from skill2env.sandbox.command import ExecOutcome
from skill2env.sandbox.session import Sandbox
from skill2env.sandbox.transfer import TransferRefused

pytestmark = pytest.mark.sandbox

# {what: (program that fills /out, what must be refused ("") or come out)}
TREES: dict[str, tuple[str, set[str] | None]] = {
    "links that lead out": (
        ("for n, t in enumerate(['/etc/passwd', '../../../etc/passwd', '/', '..', 'a/../../x', '/proc/self/root', "
        "'/proc/1/cwd', '//etc', './../..']): os.symlink(t, f'/out/l{n}')\nopen('/out/f', 'w').close()"),
        {"f"},
    ),
    "a link where the folder should be": (
        "os.rmdir('/out'); os.symlink('/etc/apt', '/out')",
        None,  # what it leads to is inside, and comes out as files
    ),
    "links in a chain": (
        ("os.mkdir('/out/d'); os.symlink('.', '/out/d/here'); os.symlink('here/../..', '/out/d/up')\n"
        "os.symlink('d/here/here', '/out/chain')"),
        {"d", "d/here", "chain"},
    ),
    "hard links to what is outside": (
        ("os.link('/etc/hostname-x', '/out/x') if os.path.exists('/etc/hostname-x') else None\n"
        "open('/out/a', 'w').write('a'); os.link('/out/a', '/out/b')"),
        {"a", "b"},
    ),
    "fifos, sockets, devices": (
        "os.mkfifo('/out/fifo'); socket.socket(socket.AF_UNIX).bind('/out/s')\nopen('/out/f', 'w').close()",
        {"f"},
    ),
    "set-id files and closed folders": (
        ("open('/out/f', 'w').close(); os.chmod('/out/f', 0o7777); os.mkdir('/out/d'); open('/out/d/g', 'w').close()\n"
        "os.chmod('/out/d/g', 0); os.chmod('/out/d', 0)"),
        {"f", "d", "d/g"},
    ),
    "odd names": (
        ("for n in [b'new\\nline', b'\\xff\\xfe', b'-rf', b' ', b'..x', b'$(id)', b'a;b', b'\\x1b[2J', b'CON', b'~', "
        "b'\\xe2\\x80\\xae', b'x' * 255]: open(b'/out/' + n, 'w').close()"),
        {
            "new\nline", "\udcff\udcfe", "-rf", " ", "..x", "$(id)", "a;b", "\x1b[2J", "CON", "~", "\u202e", "x" * 255,
        },
    ),
    "folders without end": (
        "os.chdir('/out')\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')",
        set(),
    ),
    "a huge sparse file": ("os.truncate(os.open('/out/s', 66), 2**41)", set()),
    "many sparse files": ("for n in range(50): os.truncate(os.open(f'/out/s{n}', 66), 2**30)", set()),
    "kernel files": ("os.rmdir('/out'); os.symlink('/proc/self', '/out')", set()),
}  # fmt: skip


@pytest.mark.parametrize("name", TREES)
def test_download(
    fresh: Callable[..., Sandbox], in_fresh: Callable[..., ExecOutcome], tmp_path: Path, name: str
) -> None:
    program, wanted = TREES[name]
    box = fresh()
    done = in_fresh(box, "os.mkdir('/out')\n" + program)
    assert done.return_code == 0, done.stderr
    target = tmp_path / "target"
    refused = False
    try:
        box.get("/out", target, links=True, limit_bytes=200 * 2**20)
    except TransferRefused:
        refused = True
    if wanted == set():
        assert refused or name == "kernel files"
    elif wanted is not None:
        found = {os.fsdecode(os.fsencode(path.relative_to(target))) for path in target.rglob("*")}
        assert found == wanted
    for path in target.rglob("*"):
        assert path.resolve().is_relative_to(target.resolve()), path
        if not path.is_symlink():
            assert path.is_file() or path.is_dir()
            assert path.stat().st_mode & 0o7000 == 0
            assert path.stat().st_nlink == 1 or path.is_dir()
            assert path.stat().st_uid == os.geteuid()
    assert {path.name for path in tmp_path.iterdir()} <= {"target", "precious"}


def test_download_of_a_folder_that_changes(
    fresh: Callable[..., Sandbox], in_fresh: Callable[..., ExecOutcome], tmp_path: Path
) -> None:
    """Files grow, shrink, vanish, and become links and folders while they are read."""
    box = fresh()
    churn = (
        "import random, shutil\nr = random.Random(1)\nos.makedirs('/out', exist_ok=True)\nend = time.time() + 60\n"
        "while time.time() < end and not os.path.exists('/stop'):\n"
        "  p = f'/out/{r.randrange(20)}'\n  try:\n"
        "    if os.path.islink(p) or os.path.isfile(p): os.unlink(p)\n    elif os.path.isdir(p): shutil.rmtree(p)\n"
        "    elif os.path.lexists(p): os.unlink(p)\n"
        "    k = r.randrange(4)\n"
        "    if k == 0: open(p, 'wb').write(b'x' * r.randrange(300000))\n"
        "    if k == 1: os.symlink('/etc', p)\n"
        "    if k == 2: os.makedirs(p + '/d/e'); open(p + '/d/e/f', 'w').write('x')\n"
        "    if k == 3: os.mkfifo(p)\n  except OSError: pass\n"
    )
    thread = threading.Thread(target=in_fresh, args=(box, churn))
    thread.start()
    time.sleep(0.5)
    came = 0
    for n in range(15):
        target = tmp_path / f"t{n}"
        try:
            box.get("/out", target, links=True)
            came += 1
        except TransferRefused:
            pass
        assert not (target / "passwd").exists()
        assert all(path.resolve().is_relative_to(target.resolve()) for path in target.rglob("*"))
        assert not any(path.name == "passwd" for path in target.rglob("*")), "it walked through a link"
    box.exec(["touch", "/stop"])
    thread.join(60)
    assert came >= 10


@pytest.mark.slow
@pytest.mark.vast
def test_hundred_thousand_levels_and_millions_of_files(
    fresh: Callable[..., Sandbox], in_fresh: Callable[..., ExecOutcome], tmp_path: Path
) -> None:
    box = fresh()
    folder = box._scratch.folder  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]
    deep = "os.makedirs('/deep')\nos.chdir('/deep')\nfor _ in range(100_000): os.mkdir('d'); os.chdir('d')"
    assert in_fresh(box, deep, timeout_sec=240).return_code == 0
    wide = "os.makedirs('/wide')\nfor n in range(300_000): open(f'/wide/{n}', 'w').close()"
    assert in_fresh(box, wide, timeout_sec=240).return_code == 0
    with pytest.raises(TransferRefused, match="deep"):
        box.get("/deep", tmp_path / "deep")
    with pytest.raises(TransferRefused, match="200000 files"):
        box.get("/wide", tmp_path / "wide")
    box.stop()
    assert not folder.exists()


def test_upload_over_what_an_agent_left(fresh: Callable[..., Sandbox], tmp_path: Path) -> None:
    """Links, hard links and folders in the way are replaced, never followed or written through."""
    box = fresh()
    script = (
        "mkdir -p /t/f3 /safe; echo keep > /safe/a; echo keep > /safe/b; ln -s /safe/a /t/f1; ln /safe/b /t/f2; "
        "touch /t/f3/x; ln -s /safe /t/d; mkfifo /t/f4; ln -s /nowhere/new /t/f5; chmod -R 777 /t"
    )
    box.exec(["sh", "-c", script])
    (tmp_path / "in/d").mkdir(parents=True)
    for name in ("f1", "f2", "f3", "f4", "f5", "d/a"):
        (tmp_path / "in" / name).write_text("ours")
    box.put(tmp_path / "in", "/t")
    look = box.exec(
        ["sh", "-c", "cat /safe/a /safe/b; cd /t; cat f1 f2 f3 f4 f5 d/a; find . -type l; ls /nowhere"]
    )
    assert look.stdout == b"keep\nkeep\n" + b"ours" * 6


def test_folders_are_emptied_against_resistance(
    fresh: Callable[..., Sandbox], in_fresh: Callable[..., ExecOutcome], tmp_path: Path
) -> None:
    """A process of the agent fills the folder while it is emptied: it ends, and nothing outside is touched."""
    box = fresh()
    box.exec(["sh", "-c", "mkdir -p /keep && echo x > /keep/f"])
    filler = (
        "os.makedirs('/logs/v/sub', exist_ok=True); os.chmod('/logs/v', 0o777)\nend = time.time() + 30\n"
        "while time.time() < end and not os.path.exists('/stop'):\n  for p in ('/logs/v/sub/x', '/logs/v/y'):\n"
        "    try: os.makedirs(os.path.dirname(p), exist_ok=True); open(p, 'w').close(); os.symlink('/keep', p + 'l')\n"
        "    except OSError: pass\n"
    )
    thread = threading.Thread(target=in_fresh, args=(box, filler))
    thread.start()
    time.sleep(0.5)
    for _ in range(5):
        try:
            box.empty_folders(["/logs/v"])
        except Exception as error:
            assert "filled while" in str(error) or "moved while" in str(error), error  # noqa: PT017
    box.exec(["touch", "/stop"])
    thread.join(60)
    assert box.exec(["cat", "/keep/f"]).stdout == b"x\n"
    box.empty_folders(["/logs/v"])
    assert box.exec(["ls", "-A", "/logs/v"]).stdout == b""
