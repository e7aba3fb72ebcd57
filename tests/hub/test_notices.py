"""Notices of strangers: only texts of their own source are kept, under names that say nothing else."""

import json
from pathlib import Path

import pytest
from tests.hub.conftest import make_skill

from skill2env.hub.export import export_skills
from skill2env.hub.folder import Hub
from skill2env.hub.queries import Filter
from skill2env.hub.sources.corpus import read_index
from skill2env.hub.store import Store

SECRET = "KEY=not for everybody"


def indexed(folder: Path, notices: dict[str, str], name: str = "sums") -> Path:
    """A corpus whose index names notices."""
    make_skill(folder / name, name)
    line = {"path": f"{name}/SKILL.md", "origin": "o/r", "license": "MIT", "license_evidence": "front_matter",
            "notices": notices}  # fmt: skip
    (folder / "index.jsonl").write_text(json.dumps(line) + "\n")
    return folder


def kept(hub: Hub) -> list[str]:
    store = Store(hub.store)
    return [store.notice(digest).read_text() for digest in store.notices()]


def test_no_link_of_a_corpus_leads_to_a_file_of_the_host(tmp_path: Path, hub: Hub, synced) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host/environ").write_text(SECRET)
    corpus = indexed(
        tmp_path / "corpus",
        {"LICENSE": "x/environ", "NOTICE": "y", "COPYING": "t/ok", "AUTHORS": "p/environ"},
    )
    (corpus / "x").symlink_to(tmp_path / "host")
    (corpus / "y").symlink_to(tmp_path / "host/environ")
    (corpus / "p").symlink_to("/proc/self")
    (corpus / "t").mkdir()
    (corpus / "t/ok").write_text("MIT")
    assert synced(corpus).sources[0].skills == 1
    assert kept(hub) == ["MIT"]
    export_skills(hub, tmp_path / "out", Filter())
    texts = [path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not [text for text in texts if SECRET in text or "PATH=" in text]


def test_linked_licence_folders_of_a_wheel_are_not_followed(tmp_path: Path, hub: Hub, synced) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host/LICENSE").write_text(SECRET)
    folder = tmp_path / "src"
    make_skill(folder / "pack/sums")
    info = folder / "pack-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pack\nVersion: 1\n\n")
    (info / "RECORD").write_text("pack/sums/SKILL.md,,\n")
    (info / "LICENSE").write_text("MIT")
    (info / "licenses").symlink_to(tmp_path / "host")
    synced(folder)
    assert kept(hub) == ["MIT"]


@pytest.mark.parametrize(
    "name",
    ["a/b", "skill2env-origin.json", "Skill2env-Origin.json", "index.jsonl", "SKILL.md", "..", ".tmp-x",
     "x\\y", "x\n", "x" * 250, "\ud800"],
)  # fmt: skip
def test_notices_have_plain_names(name: str, tmp_path: Path) -> None:
    corpus = indexed(tmp_path / "corpus", {name: "LICENSE", "LICENSE": "LICENSE"})
    entries, _ = read_index(corpus / "index.jsonl")
    assert entries["sums"].notices == (("LICENSE", "LICENSE"),)


def test_a_notice_called_like_a_skill_stays_beside_it(tmp_path: Path, hub: Hub, synced) -> None:
    corpus = indexed(tmp_path / "corpus", {"sums": "LICENSE"})
    (corpus / "LICENSE").write_text("MIT")
    synced(corpus)
    assert export_skills(hub, tmp_path / "out", Filter()).skills == 1
    (group,) = (tmp_path / "out/skills").iterdir()
    assert (group / "sums").read_text() == "MIT"
    assert [path.parent.name[:5] for path in group.glob("*/SKILL.md")] == ["sums-"]
