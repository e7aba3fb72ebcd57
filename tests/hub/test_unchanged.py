"""One changed file of a source that is read in place costs one skill."""

import json
import os
import shutil
from pathlib import Path

import pytest
from tests.hub.conftest import make_skill

from skill2env.hub import unchanged
from skill2env.hub.database import Database
from skill2env.hub.folder import Hub, register
from skill2env.hub.sources import spec_of
from skill2env.hub.store import Store
from skill2env.hub.update import sync_hub
from skill2env.progress import Event, EventKind

NAMES = ("north", "south", "west")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    for name in NAMES:
        make_skill(root / "skills" / name, name, licence="", data_md=f"Notes about {name}.")
    (root / "LICENSE").write_text("MIT License\n\nPermission is hereby granted, free of charge")
    (root / "package.json").write_text('{"name": "p", "version": "1"}')
    return root


def read(hub: Hub, *, again: bool = False) -> int:
    """Sync; returns how many skills were read."""
    totals: list[int] = []

    def note(event: Event) -> None:
        if event.kind is EventKind.PHASE and event.subject == "source":
            totals.append(event.total)

    done = sync_hub(hub, again=again, workers=1, progress=note)
    assert not done.failed
    return sum(totals)


def records(hub: Hub) -> list[dict[str, object]]:
    with Database.read(hub.index) as database:
        return [
            json.loads(row["record"]) for row in database.rows("SELECT record FROM origins ORDER BY path")
        ]


def test_only_what_changed_is_read(source: Path, hub: Hub) -> None:
    register(hub, [spec_of(hub, str(source))])
    assert read(hub) == 3
    before = records(hub)
    (source / "skills/south/data.md").write_text("Other notes.")
    assert read(hub) == 1
    after = records(hub)
    assert [a["digest"] == b["digest"] for a, b in zip(before, after, strict=True)] == [True, False, True]
    assert len({str(record["revision"]) for record in after}) == 1  # all are of the source as it is now
    assert read(hub) == 0
    assert read(hub, again=True) == 3
    (source / "notes.txt").write_text("A file of no skill.")
    assert read(hub) == 0
    assert len(records(hub)) == 3


def test_new_and_removed_skills_follow(source: Path, hub: Hub) -> None:
    register(hub, [spec_of(hub, str(source))])
    read(hub)
    make_skill(source / "skills/east", "east")
    shutil.rmtree(source / "skills/west")
    assert read(hub) == 1
    assert [record["name"] for record in records(hub)] == ["east", "north", "south"]


@pytest.mark.parametrize("name", ["LICENSE", "package.json", "NOTICE"])
def test_what_is_said_around_skills_concerns_them_all(source: Path, hub: Hub, name: str) -> None:
    register(hub, [spec_of(hub, str(source))])
    read(hub)
    (source / name).write_text('{"name": "q", "version": "2", "license": "ISC"}')
    assert read(hub) == 3


def test_a_changed_registration_concerns_them_all(source: Path, hub: Hub) -> None:
    register(hub, [spec_of(hub, str(source))])
    read(hub)
    with hub.config_file.open("a") as file:
        file.write("collection = true\n")
    assert read(hub) == 3
    assert {str(record["licence"]["evidence"]) for record in records(hub)} == {"aggregator"}  # type: ignore[index]


def test_what_the_store_lost_is_read_again(source: Path, hub: Hub) -> None:
    register(hub, [spec_of(hub, str(source))])
    read(hub)
    north = records(hub)[0]
    shutil.rmtree(Store(hub.store).skill(str(north["digest"])))
    (source / "skills/south/data.md").write_text("Other notes.")
    assert read(hub) == 2
    notices = list((hub.store / "notices").glob("*/*"))
    assert notices
    notices[0].unlink()
    (source / "skills/south/data.md").write_text("Different notes.")
    assert read(hub) == 3


def test_a_file_of_the_same_size_and_time_of_change_is_still_another(source: Path, hub: Hub) -> None:
    register(hub, [spec_of(hub, str(source))])
    read(hub)
    notes = source / "skills/south/data.md"
    status = notes.stat()
    notes.write_text(notes.read_text().swapcase())
    os.utime(notes, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert read(hub) == 1  # the time of the inode's change cannot be set


def test_metadata_that_is_a_link_to_everything_is_not_walked(
    source: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[Path] = []
    state = unchanged.folder_state

    def noted(root: Path) -> str:
        walked.append(root)
        return state(root)

    monkeypatch.setattr(unchanged, "folder_state", noted)
    (source / "everything-1.dist-info").symlink_to("/")
    (source / "own-1.dist-info").mkdir()
    register(hub, [spec_of(hub, str(source))])
    assert read(hub) == 3
    assert source / "own-1.dist-info" in walked
    assert source / "everything-1.dist-info" not in walked
    (source / "own-1.dist-info/METADATA").write_text("Name: own\nVersion: 1\nLicense: ISC\n\n")
    assert read(hub) == 3
