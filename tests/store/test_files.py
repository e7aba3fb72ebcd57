import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.store import files


def test_write_replaces_and_leaves_no_temporary(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    files.write_json(target, {"b": 1, "a": "ü"})
    files.write_json(target, {"b": 2, "a": "ü"})
    assert target.read_text() == '{\n  "a": "ü",\n  "b": 2\n}\n'
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert target.stat().st_mode & 0o777 == 0o644


def test_failed_write_keeps_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a"
    files.write_bytes(target, b"old")

    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(InfraError) as caught:
        files.write_bytes(target, b"new")
    assert caught.value.boundary is Boundary.STORAGE
    assert "cache prune" in caught.value.hint
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_full_disk_writes_nothing_by_half(small_disk: Callable[[str], Path]) -> None:
    folder = small_disk("size=256k")
    files.write_bytes(folder / "kept", b"k" * 1000)
    with pytest.raises(InfraError, match="No space left"):
        files.write_bytes(folder / "kept", b"x" * 2**20)
    assert (folder / "kept").read_bytes() == b"k" * 1000
    assert [path.name for path in folder.iterdir()] == ["kept"]


def test_read_only_folder_is_found_before_work_starts(small_disk: Callable[[str], Path]) -> None:
    folder = small_disk("ro,size=64k")
    with pytest.raises(InfraError, match="Read-only file system") as caught:
        files.check_writable(folder / "out")
    assert "--out" in caught.value.hint
    assert not caught.value.transient


def test_staged_folder_moves_and_replaces(tmp_path: Path) -> None:
    for text in ("one", "two"):
        with files.staged_folder(tmp_path) as staged:
            (staged / "deep").mkdir()
            (staged / "deep/file").write_text(text)
            files.move_into_place(staged, tmp_path / "final")
    assert (tmp_path / "final/deep/file").read_text() == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["final"]


def test_staged_folder_is_removed_when_its_maker_fails(tmp_path: Path) -> None:
    def fail() -> None:
        with files.staged_folder(tmp_path) as staged:
            (staged / "file").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not list(tmp_path.iterdir())


def test_copy_takes_regular_files_with_plain_modes(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "run.sh").write_text("x")
    (source / "run.sh").chmod(0o4777)
    (source / "sub/data").write_text("y")
    (source / "sub/data").chmod(0o600)
    (source / "link").symlink_to("/etc/passwd")
    os.mkfifo(source / "pipe")
    files.copy_tree(source, tmp_path / "copy")
    found = {
        p.relative_to(tmp_path / "copy").as_posix(): p.stat().st_mode & 0o7777
        for p in (tmp_path / "copy").rglob("*")
    }
    assert found["run.sh"] == 0o755
    assert found["sub/data"] == 0o644
    assert sorted(found) == ["run.sh", "sub", "sub/data"]


def test_sweep_removes_only_unfinished(tmp_path: Path) -> None:
    (tmp_path / ".tmp-abc").mkdir()
    (tmp_path / ".tmp-abc/x").write_text("")
    (tmp_path / ".tmp-file").write_text("")
    (tmp_path / "kept").write_text("")
    assert files.sweep(tmp_path) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert files.sweep(tmp_path / "absent") == 0


WRITER = """
import sys
from pathlib import Path
from skill2env.store.files import write_bytes
print("ready", flush=True)
turn = 0
while True:
    turn += 1
    write_bytes(Path(sys.argv[1]), bytes([turn % 256]) * 200_000)
"""


def test_kill_leaves_a_whole_file(tmp_path: Path) -> None:
    target = tmp_path / "data"
    rng = random.Random(1)
    for _ in range(5):
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(target)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(rng.uniform(0.02, 0.2))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        if target.exists():
            data = target.read_bytes()
            assert len(data) == 200_000
            assert len(set(data)) == 1
    assert target.exists()


def test_what_utf8_cannot_hold_is_escaped(tmp_path: Path) -> None:
    files.write_json(tmp_path / "a.json", {"name\udcff": 1})
    assert json.loads((tmp_path / "a.json").read_bytes()) == {"name\udcff": 1}


def test_a_file_where_a_folder_should_be_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file/below"):
        with pytest.raises(UserError, match="file is no folder"):
            files.check_writable(path)
