import os
import subprocess
from pathlib import Path

import pytest

from skill2env.sandbox import difference as module
from skill2env.sandbox.difference import Change, difference


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path, Path]:
    """(lowest layer, layer on it, upper)."""
    made = tuple(tmp_path / name for name in ("base", "layer", "upper"))
    for folder in made:
        folder.mkdir()
    return made  # type: ignore[return-value]


def write(root: Path, path: str, data: bytes = b"x\n") -> Path:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    return place


def test_added_and_changed_files_with_their_text(folders: tuple[Path, Path, Path]) -> None:
    base, layer, upper = folders
    write(base, "app/a.txt", b"old base\n")
    write(layer, "app/a.txt", b"one\ntwo\n")
    write(upper, "app/a.txt", b"one\n2\n")
    write(upper, "app/new/b.txt", b"fresh\n")
    write(upper, "app/blob", b"\0\1")
    write(upper, "tests/t.sh")
    write(upper, "logs/verifier/reward.txt")
    found = difference(upper, (base, layer))
    assert [(entry.path, entry.change, entry.size_before, entry.size) for entry in found.entries] == [
        ("/app/a.txt", Change.CHANGED, 8, 6),
        ("/app/blob", Change.ADDED, None, 2),
        ("/app/new", Change.ADDED, None, 0),
        ("/app/new/b.txt", Change.ADDED, None, 6),
    ]
    assert found.entries[0].text.splitlines()[2:] == ["@@ -1,2 +1,2 @@", " one", "-two", "+2"]
    assert found.entries[1].text == ""
    assert found.entries[3].text.endswith("+fresh")


def test_links_are_never_followed(folders: tuple[Path, Path, Path], tmp_path: Path) -> None:
    base, layer, upper = folders
    secret = tmp_path / "host"
    write(secret, "inside.txt", b"secret of the host\n")
    (base / "app").symlink_to(secret)  # in the image a link, in the container a folder now
    write(upper, "app/inside.txt", b"mine\n")
    (upper / "out").symlink_to(secret)
    found = difference(upper, (base, layer))
    assert "secret of the host" not in found.model_dump_json()
    assert [(entry.path, entry.kind) for entry in found.entries] == [
        ("/app", "folder"),
        ("/app/inside.txt", "file"),
        ("/out", "link"),
    ]
    assert found.entries[2].target == str(secret)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make whiteouts by hand")
def test_what_was_removed(folders: tuple[Path, Path, Path]) -> None:
    base, layer, upper = folders
    write(base, "app/a.txt", b"12345")
    write(base, "app/gone/deep.txt")
    os.mknod(layer / "gone-below", 0o20000, os.makedev(0, 0))
    (upper / "app").mkdir()
    try:
        os.mknod(upper / "app" / "a.txt", 0o20000, os.makedev(0, 0))
        os.mknod(upper / "app" / "never", 0o20000, os.makedev(0, 0))
    except PermissionError:
        pytest.skip("this machine forbids device nodes")
    write(base, "gone-below")
    write(upper, "gone-below", b"again\n")
    found = difference(upper, (base, layer))
    assert [(entry.path, entry.change, entry.size_before) for entry in found.entries] == [
        ("/app/a.txt", Change.REMOVED, 5),
        ("/gone-below", Change.ADDED, None),
    ]


def test_everything_is_bounded(folders: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    base, layer, upper = folders
    monkeypatch.setattr(module, "MAX_ENTRIES", 3)
    monkeypatch.setattr(module, "MAX_FILE_BYTES", 100)
    monkeypatch.setattr(module, "MAX_TEXT_CHARS", 60)
    for name in "abcd":
        write(upper, name, b"text\n" * 3)
    write(upper, "aa", b"y" * 101)
    found = difference(upper, (base, layer))
    assert [entry.path for entry in found.entries] == ["/a", "/aa", "/b"]
    assert found.left_out == 2
    assert found.texts_shortened
    assert [bool(entry.text) for entry in found.entries] == [True, False, False]
    os.mkfifo(upper / "a-pipe")
    assert difference(upper, (base, layer)).entries[1].kind == "other"


def test_depth_has_no_limit(folders: tuple[Path, Path, Path]) -> None:
    base, layer, upper = folders
    place = upper
    for _ in range(1100):
        place /= "a"
        place.mkdir()
    found = difference(upper, (base, layer))
    assert len(found.entries) + found.left_out == 1100
    subprocess.run(["rm", "-rf", str(upper)], check=True)  # pytest's own clean-up knows no such depth


def test_beyond_the_limit_nothing_is_looked_at(
    folders: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    base, layer, upper = folders
    for number in range(30):
        write(upper, f"app/{number:02}.txt")
    monkeypatch.setattr(module, "MAX_ENTRIES", 5)
    looked: list[str] = []
    real = Path.lstat

    def lstat(path: Path) -> os.stat_result:
        looked.append(path.name)
        return real(path)

    monkeypatch.setattr(Path, "lstat", lstat)
    found = difference(upper, (base, layer))
    assert (len(found.entries), found.left_out) == (5, 26)
    assert "20.txt" not in looked
