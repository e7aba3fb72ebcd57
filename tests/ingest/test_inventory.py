import os
import shutil
import time
from pathlib import Path

import pytest

from skill2env.authors.staging import stage_source
from skill2env.ingest import IngestLimits, load_skill
from skill2env.records import FileKind, Skill, digest_bytes

TEXT = "---\nname: sums\ndescription: Adds numbers when a column has to be summed.\n---\nAdd, then report.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "one" / "sums"
    (place / "scripts").mkdir(parents=True)
    (place / "SKILL.md").write_text(TEXT)
    (place / "scripts/sum.py").write_text("print(1)\n")
    (place / "scripts/sum.py").chmod(0o755)
    (place / "data.bin").write_bytes(b"\0\1\2")
    (place / "guide.md").symlink_to("SKILL.md")
    return place


def kinds(skill: Skill) -> dict[str, str]:
    return {item.path: item.kind.value for item in skill.files}


def test_files_are_listed_with_sizes_and_digests(folder: Path) -> None:
    skill = load_skill(folder)
    assert kinds(skill) == {
        "SKILL.md": "text",
        "data.bin": "binary",
        "guide.md": "symlink",
        "scripts/sum.py": "text",
    }
    script = skill.files[-1]
    assert (script.size, script.executable, script.sha256) == (9, True, digest_bytes(b"print(1)\n"))
    assert skill.size == len(TEXT) + 9 + 3


def test_digest_ignores_place_time_mode_and_leftovers(folder: Path, tmp_path: Path) -> None:
    before = load_skill(folder).digest
    copy = tmp_path / "elsewhere" / "other-name"
    shutil.copytree(folder, copy, symlinks=True)
    os.utime(copy / "SKILL.md", (1, 1))
    (copy / "scripts/sum.py").chmod(0o644)
    (copy / "scripts/__pycache__").mkdir()
    (copy / "scripts/__pycache__/sum.pyc").write_bytes(b"\0")
    (copy / ".DS_Store").write_bytes(b"\0")
    (copy / ".git").mkdir()
    assert load_skill(copy).digest == before


@pytest.mark.parametrize("change", ["content", "name", "new", "link", "gone"])
def test_digest_sees_every_change(folder: Path, change: str) -> None:
    before = load_skill(folder).digest
    match change:
        case "content":
            (folder / "scripts/sum.py").write_text("print(2)\n")
        case "name":
            (folder / "data.bin").rename(folder / "data2.bin")
        case "new":
            (folder / "empty.txt").touch()
        case "link":
            (folder / "guide.md").unlink()
            (folder / "guide.md").symlink_to("data.bin")
        case _:
            (folder / "data.bin").unlink()
    assert load_skill(folder).digest != before


def test_links_out_and_special_files_are_refused_and_never_read(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("do not read")
    (folder / "absolute").symlink_to(secret)
    (folder / "upwards").symlink_to("../../secret.txt")
    (folder / "folder").symlink_to("..")
    (folder / "stairs").symlink_to("scripts/../../../secret.txt")
    (folder / "itself").symlink_to("itself")
    (folder / "scripts/up").symlink_to("..")
    os.mkfifo(folder / "pipe")
    refused = {item.path for item in load_skill(folder).files if item.kind is FileKind.REFUSED}
    assert refused == {"absolute", "upwards", "folder", "stairs", "itself", "scripts/up", "pipe"}


def test_a_link_through_a_link_may_not_leave(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "one" / "outside.txt").write_text("x")
    (folder / "scripts/door").symlink_to("../..")
    (folder / "sly").symlink_to("scripts/door/outside.txt")
    assert kinds(load_skill(folder))["sly"] == "refused"


def test_names_that_are_not_utf8_are_refused(folder: Path) -> None:
    (Path(os.fsdecode(os.fsencode(folder) + b"/bad\xff.txt"))).write_text("x")
    skill = load_skill(folder)
    assert kinds(skill)["bad\\xff.txt"] == "refused"
    assert Skill.model_validate_json(skill.model_dump_json()) == skill


def test_the_entry_is_kept_whatever_the_limits(folder: Path) -> None:
    skill = load_skill(folder, limits=IngestLimits(files=2, total_bytes=len(TEXT)))
    assert kinds(skill) == {"SKILL.md": "text", "data.bin": "refused"}
    assert "over-limit" in {item.code for item in skill.diagnostics}


def test_thirty_megabytes_in_two_thousand_files_are_fast(folder: Path) -> None:
    (folder / "assets").mkdir()
    for number in range(2000):
        (folder / f"assets/{number}.txt").write_bytes(b"line\n" * 3000)
    begun = time.process_time()
    skill = load_skill(folder)
    assert time.process_time() - begun < 5
    assert skill.size > 30_000_000
    assert "huge-folder" in {item.code for item in skill.diagnostics}


def test_what_is_taken_can_be_staged_for_an_author(folder: Path, tmp_path: Path) -> None:
    (folder / "out").symlink_to("/etc/passwd")
    (folder / "ü b.txt").write_text("x")
    skill = load_skill(folder)
    stage_source(skill, folder, tmp_path / "staged")
    staged = {
        path.relative_to(tmp_path / "staged").as_posix()
        for path in (tmp_path / "staged").rglob("*")
        if path.is_file()
    }
    assert staged == {item.path for item in skill.files if item.kind is not FileKind.REFUSED}
    assert not any(path.is_symlink() for path in (tmp_path / "staged").rglob("*"))
