from pathlib import Path

from skill2env.ingest import notices_around


def skill(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: a\n---\n")
    return folder


def test_a_repository(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    root = skill(repository / "skills/a")
    (repository / ".git").mkdir()
    for name in ("LICENSE", "NOTICE", "README.md"):
        (repository / name).write_text(name)
    (repository / "skills/COPYING").symlink_to("/etc/passwd")
    (root / "LICENSE").write_text("its own, copied from the inventory")
    (tmp_path / "LICENSE").write_text("above the repository")
    assert notices_around(root, "SKILL.md") == [
        ("LICENSE", repository / "LICENSE"),
        ("NOTICE", repository / "NOTICE"),
    ]


def test_a_wheel(tmp_path: Path) -> None:
    root = skill(tmp_path / "wheel/package/skills/a")
    info = tmp_path / "wheel/package-1.dist-info"
    (info / "licenses").mkdir(parents=True)
    (info / "METADATA").write_text("Name: package\nVersion: 1\nLicense: MIT\n\nText")
    (info / "RECORD").write_text("package/skills/a/SKILL.md,,\n")
    (info / "LICENSE").write_text("MIT")
    (info / "licenses/NOTICE.txt").write_text("notice")
    assert notices_around(root, "SKILL.md") == [
        ("package-1.dist-info__LICENSE", info / "LICENSE"),
        ("package-1.dist-info__licenses__NOTICE.txt", info / "licenses/NOTICE.txt"),
    ]


def test_nothing_around(tmp_path: Path) -> None:
    assert notices_around(skill(tmp_path / "alone"), "SKILL.md") == []
