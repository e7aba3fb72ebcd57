"""Sources -> store -> index, with the real thing throughout."""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from tests.hub.conftest import BODY, make_skill

from skill2env.errors import InfraError, UserError
from skill2env.hub.database import Database
from skill2env.hub.explain import explain
from skill2env.hub.folder import Hub, register
from skill2env.hub.integrity import verify_hub
from skill2env.hub.queries import Filter, find, stats
from skill2env.hub.records import SourceStatus
from skill2env.hub.sources import spec_of
from skill2env.hub.store import Store
from skill2env.hub.update import scan_hub, sync_hub


def listed(hub: Hub, **wanted: object) -> list[str]:
    with Database.read(hub.index) as database:
        return [row["name"] for row in find(database, Filter(**wanted))]  # type: ignore[arg-type]


def places(hub: Hub) -> dict[str, str]:
    with Database.read(hub.index) as database:
        rows = database.rows("SELECT source, path, digest FROM origins ORDER BY source, path")
        return {f"{row['source']}:{row['path']}": row["digest"] for row in rows}


def left_out(hub: Hub, source: str) -> list[tuple[str, str]]:
    with Database.read(hub.index) as database:
        told = database.value("SELECT diagnostics FROM sources WHERE id = ?", (source,))
    return [(item["code"], item["where"]) for item in json.loads(told)]


def test_a_folder_is_stored_indexed_and_judged(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "src/a/sums", "sums", scripts__run_py="#!/usr/bin/env python3\nprint(1)\n")
    make_skill(tmp_path / "src/b", "other", body=BODY.replace("amount", "price") * 2)
    done = synced(tmp_path / "src")
    assert [(s.id, s.status, s.skills) for s in done.sources] == [("src", SourceStatus.FRESH, 2)]
    assert (done.new, done.removed) == (2, 0)
    assert set(places(hub)) == {"src:a/sums", "src:b"}
    stored = Store(hub.store).skill(places(hub)["src:a/sums"])
    assert (stored / "SKILL.md").read_bytes() == (tmp_path / "src/a/sums/SKILL.md").read_bytes()
    assert os.access(stored / "scripts/run.py", os.X_OK)
    with Database.read(hub.index) as database:
        found = stats(database)
    assert (found["skills"], found["allowed"], found["by_verdict"]) == (2, 2, {"compile": 2})


def test_nothing_changed_is_noticed_without_reading(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "src/a")
    synced(tmp_path / "src")
    manifest = hub.manifest.stat().st_mtime_ns
    again = synced()
    assert [(s.unchanged, s.skills) for s in again.sources] == [(True, 0)]
    assert not again.scan.decided
    assert hub.manifest.stat().st_mtime_ns == manifest


def test_changed_and_removed_skills_follow(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "src/a", "first")
    make_skill(tmp_path / "src/b", "second")
    synced(tmp_path / "src")
    before = places(hub)
    make_skill(tmp_path / "src/a", "third")
    (tmp_path / "src/b/SKILL.md").unlink()
    done = synced()
    assert (done.new, done.removed) == (1, 2)
    assert listed(hub) == ["third"]
    assert listed(hub, words="second") == []
    assert [Store(hub.store).skill(digest).exists() for digest in before.values()] == [False, False]


def test_one_content_may_have_many_places_and_a_name_many_contents(tmp_path: Path, hub: Hub, synced) -> None:
    for place in ("one/sums", "two/sums"):
        make_skill(tmp_path / place)
    make_skill(tmp_path / "two/changed", body=BODY + "More.\n")
    synced(tmp_path / "one", tmp_path / "two")
    found = places(hub)
    assert found["one:sums"] == found["two:sums"] != found["two:changed"]
    (known,) = explain(hub, found["one:sums"])
    assert [place["place"] for place in known["places"]] == ["one:sums", "two:sums"]
    assert len(explain(hub, "sums")) == 2


def test_a_source_that_fails_does_not_stop_the_others(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "good/a")
    (tmp_path / "bad.zip").write_bytes(b"no archive")
    make_skill(tmp_path / "gone/a", "gone")
    register(hub, [spec_of(hub, str(tmp_path / name)) for name in ("bad.zip", "gone", "good")])
    (tmp_path / "gone").rename(tmp_path / "moved")
    done = synced()
    assert [s.status.value for s in done.sources] == ["failed", "failed", "fresh"]
    assert done.failed
    assert "source bad: bad.zip is refused" in done.sources[0].error
    assert listed(hub) == ["sums"]


def test_what_a_failing_source_brought_before_is_kept(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "src/a")
    synced(tmp_path / "src")
    (tmp_path / "src").rename(tmp_path / "away")
    assert synced().failed
    assert listed(hub) == ["sums"]
    (tmp_path / "away").rename(tmp_path / "src")
    assert not synced().failed


def test_a_source_that_is_registered_no_more_is_forgotten(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "a/x", "first")
    make_skill(tmp_path / "b/x", "second")
    synced(tmp_path / "a", tmp_path / "b")
    text = hub.config_file.read_text()
    hub.config_file.write_text(text[: text.rindex("[[source]]")])
    assert synced().removed == 1
    assert listed(hub) == ["first"]


def test_archives_are_read_and_what_was_refused_is_told(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "src/a")
    with tarfile.open(tmp_path / "skills.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "src", "pack")
        info = tarfile.TarInfo("../../evil/SKILL.md")
        info.size = 4
        archive.addfile(info, io.BytesIO(b"evil"))
    synced(tmp_path / "skills.tar.gz")
    assert set(places(hub)) == {"skills:pack/a"}
    assert ("refused-member", "../../evil/SKILL.md") in left_out(hub, "skills")
    assert not list(tmp_path.rglob("evil"))


def test_an_archive_must_be_the_pinned_one(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "src/a")
    with tarfile.open(tmp_path / "skills.tar", "w") as archive:
        archive.add(tmp_path / "src", "pack")
    register(hub, [spec_of(hub, str(tmp_path / "skills.tar"), sha256="0" * 64)])
    (outcome,) = synced().sources
    assert "not the pinned" in outcome.error


def test_licences_around_an_archive_do_not_count(tmp_path: Path, hub: Hub, synced) -> None:
    """A hub inside somebody's repository must not lend its licence to what is unpacked there."""
    (tmp_path / "LICENSE").write_text(
        "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy"
    )
    make_skill(tmp_path / "src/a", licence="")
    with tarfile.open(tmp_path / "skills.tar", "w") as archive:
        archive.add(tmp_path / "src", "pack")
    synced(tmp_path / "skills.tar")
    (known,) = explain(hub, "skills:pack/a")
    assert known["licence"]["spdx"] == ""
    assert not known["licence"]["allowed"]


def test_a_collections_licence_is_weak_evidence(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "src/a", licence="")
    (tmp_path / "src/LICENSE").write_text(
        "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy"
    )
    (tmp_path / "src/.git").mkdir()
    register(hub, [spec_of(hub, str(tmp_path / "src"), collection=True)])
    synced()
    (known,) = explain(hub, "sums")
    assert (known["licence"]["evidence"], known["licence"]["allowed"]) == ("aggregator", False)
    hub.config_file.write_text(hub.config_file.read_text().replace("collection = true", "collection = false"))
    synced()
    (known,) = explain(hub, "sums")
    assert (known["licence"]["evidence"], known["licence"]["allowed"]) == ("repository", True)


def test_the_strongest_evidence_speaks_and_a_refusal_wins_a_tie(tmp_path: Path, hub: Hub, synced) -> None:
    text = "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy"
    for name, terms in (("open", text), ("closed", "All rights reserved. Proprietary."), ("none", "")):
        make_skill(tmp_path / name / "sums", licence="")
        (tmp_path / name / ".git").mkdir()
        if terms:
            (tmp_path / name / "LICENSE").write_text(terms)
    synced(tmp_path / "none", tmp_path / "open")
    assert explain(hub, "sums")[0]["licence"]["allowed"]
    synced(tmp_path / "closed")
    (known,) = explain(hub, "sums")
    assert (known["licence"]["spdx"], known["licence"]["allowed"]) == ("LicenseRef-Proprietary", False)
    assert [place["speaks"] for place in known["places"]] == [True, False, False]


def test_policy_changes_are_decided_by_scan_alone(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "src/a", licence="GPL-3.0-only")
    synced(tmp_path / "src")
    assert listed(hub, allowed=True) == []
    hub.config_file.write_text(
        hub.config_file.read_text().replace("format = 1\n", 'format = 1\n[policy]\nallow = ["copyleft"]\n')
    )
    outcome = scan_hub(hub, workers=1)
    assert (outcome.decided, outcome.examined) == (True, 0)
    assert listed(hub, allowed=True) == ["sums"]
    assert not scan_hub(hub, workers=1).decided
    assert scan_hub(hub, workers=1, again=True).examined == 1


def test_fixtures_and_nested_skills_are_known_as_such(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "src/tests/fixtures/sums", "fixture")
    make_skill(tmp_path / "src/outer", "outer")
    make_skill(tmp_path / "src/outer/skills/inner", "inner", body=BODY * 2)
    synced(tmp_path / "src")
    (fixture,) = explain(hub, "fixture")
    assert fixture["places"][0]["fixture"]
    assert (
        any(item["code"] == "test-fixture" for item in fixture["diagnostics"])
        or fixture["screening"]["flags"]
    )
    with Database.read(hub.index) as database:
        record = database.value("SELECT record FROM origins WHERE path = 'outer/skills/inner'")
    assert json.loads(record)["nested"]


def test_names_never_become_paths(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "src/a", "../../../escape")
    make_skill(tmp_path / "src/b", "/etc/passwd", body=BODY * 2)
    done = synced(tmp_path / "src")
    assert done.sources[0].skills == 2
    assert not list(tmp_path.rglob("*escape*"))


def test_include_and_exclude(tmp_path: Path, hub: Hub, synced) -> None:
    for name in ("a", "a/deep", "ab", "b"):
        make_skill(tmp_path / "src" / name, name.replace("/", "-"), body=BODY + name)
    register(hub, [spec_of(hub, str(tmp_path / "src"), include=("a", "b/"), exclude=("a/deep",))])
    synced()
    assert set(places(hub)) == {"src:a", "src:b"}


def test_huge_and_crowded_skills(tmp_path: Path, hub: Hub, synced) -> None:
    crowd = {f"references__{number}.md": f"note {number}\n" for number in range(2_000)}
    make_skill(tmp_path / "src/crowd", "crowd", **crowd)
    make_skill(tmp_path / "src/heavy", "heavy", assets__blob_bin=os.urandom(31 * 2**20), body=BODY * 2)
    synced(tmp_path / "src")
    assert listed(hub) == ["crowd", "heavy"]
    assert len(list(Store(hub.store).skill(places(hub)["src:crowd"]).rglob("*.md"))) == 2_001
    assert not verify_hub(hub, workers=1).problems


def test_a_flipped_bit_is_found_and_repaired(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "src/a", licence="")
    (tmp_path / "src/LICENSE").write_text("MIT License")
    (tmp_path / "src/.git").mkdir()
    synced(tmp_path / "src")
    file = Store(hub.store).skill(places(hub)["src:a"]) / "SKILL.md"
    data = bytearray(file.read_bytes())
    data[5] ^= 1
    file.write_bytes(data)
    (notice,) = Store(hub.store).notices()
    Store(hub.store).notice(notice).write_bytes(b"MIT Licence")
    found = verify_hub(hub, workers=1)
    assert [(item.what, "digest" in item.why) for item in found.problems] == [
        ("skill", True),
        ("notice", True),
    ]
    verify_hub(hub, repair=True, workers=1)
    assert [item.why for item in verify_hub(hub, workers=1).problems] == [
        "it is not in the store",
        "No such file or directory",
    ]
    synced()
    assert not verify_hub(hub, workers=1).problems


def test_two_syncs_at_once(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "src/a")
    synced(tmp_path / "src")
    with hub.locked(), pytest.raises(InfraError, match="another process"):
        sync_hub(hub, workers=1)
    assert sync_hub(hub, workers=1).sources[0].unchanged


def test_the_store_bears_two_writers(tmp_path: Path, hub: Hub) -> None:
    """Without the lock: whoever comes second finds the content there."""
    from skill2env.ingest import load_skill

    folder = make_skill(tmp_path / "a", scripts__x_py="x = 1\n")
    store = Store(hub.store)
    store.prepare()
    skill = load_skill(folder)
    assert store.put(skill, folder) == store.put(skill, folder)
    assert store.check(skill.digest) is None
    assert list(store.digests()) == [skill.digest]


def test_a_killed_sync_leaves_nothing_half_made(tmp_path: Path, hub: Hub) -> None:
    for number in range(150):
        make_skill(
            tmp_path / f"src/s{number}",
            f"skill-{number}",
            body=BODY + f"{number}\n",
            scripts__a_py=f"a = {number}\n",
        )
    register(hub, [spec_of(hub, str(tmp_path / "src"))])
    code = (
        "import sys; from pathlib import Path; from skill2env.hub.folder import Hub;"
        "from skill2env.hub.update import sync_hub; sync_hub(Hub(Path(sys.argv[1])), workers=2)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(hub.path)])
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and sum(1 for _ in Store(hub.store).digests()) < 20:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    store = Store(hub.store)
    assert all(store.check(digest) is None for digest in list(store.digests()))
    done = sync_hub(hub, workers=2)
    assert done.sources[0].skills == 150
    assert not list(hub.path.rglob(".tmp-*"))
    assert not verify_hub(hub, workers=1).problems


def test_a_file_that_changes_while_it_is_read_is_told(
    tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    from skill2env.hub import take
    from skill2env.ingest import load_skill

    folder = make_skill(tmp_path / "src/a")
    Store(hub.store).prepare()

    def late(path: Path, **options: object):
        skill = load_skill(path)
        (folder / "SKILL.md").write_text("other")
        return skill

    monkeypatch.setattr(take, "load_skill", late)
    work = take.Work(hub.store, "src", tmp_path / "src", "", "", bounded=True, collection=False)
    taken = take.take(work, take.Job("a"))
    assert taken.failed is not None
    assert taken.failed.code == "changed"
    assert list(Store(hub.store).digests()) == []


def test_links_inside_a_skill_are_kept_and_others_are_not(tmp_path: Path, hub: Hub, synced) -> None:
    folder = make_skill(tmp_path / "src/a", references__x_md="x")
    (folder / "inside").symlink_to("references/x.md")
    (folder / "outside").symlink_to("/etc/passwd")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe")
    synced(tmp_path / "src")
    stored = Store(hub.store).skill(places(hub)["src:a"])
    assert sorted(path.name for path in stored.iterdir()) == ["SKILL.md", "inside", "references"]
    assert (stored / "inside").readlink() == Path("references/x.md")
    assert not verify_hub(hub, workers=1).problems


def test_an_index_of_another_version_is_a_message(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "src/a")
    synced(tmp_path / "src")
    hub.index.write_bytes(b"SQLite format 3\0" + bytes(100))
    with pytest.raises(InfraError, match="index"):
        synced()
    hub.index.unlink()
    for extra in hub.path.glob("index.sqlite-*"):
        extra.unlink()
    assert synced().sources[0].skills == 1


def test_the_shipped_example_loads(hub: Hub) -> None:
    hub.path.mkdir()
    example = Path(__file__).parents[2] / "configs/hub.toml"
    hub.config_file.write_text(example.read_text())
    assert [source.id for source in hub.config().source] == ["mine", "clawbio", "gathered"]


def test_hub_toml_mistakes_are_messages(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no hub"):
        hub.config()
    hub.path.mkdir()
    for text, words in (
        ("format = 2", "format 2"),
        ("nonsense", "cannot read"),
        ('[[source]]\nid = "A B"\nkind = "folder"\nlocation = "x"', "source.0.id"),
        ('[[source]]\nid = "a"\nkind = "ftp"\nlocation = "x"', "kind"),
        ('[[source]]\nid = "a"\nkind = "folder"\nlocation = "x"\n' * 2, "several sources are called a"),
        ('[policy]\nallow = ["no-such-licence"]', "policy"),
    ):
        hub.config_file.write_text(text)
        with pytest.raises(UserError, match=words):
            hub.config()
    with pytest.raises(UserError, match="is no source"):
        spec_of(hub, str(tmp_path / "missing"))


def test_a_folder_whose_name_is_not_utf8_is_left_out(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "src/good")
    make_skill(Path(os.fsdecode(os.fsencode(tmp_path / "src") + b"/caf\xe9")), "other", body=BODY * 2)
    done = synced(tmp_path / "src")
    assert (done.sources[0].status, done.sources[0].skills, done.sources[0].left_out) == (
        SourceStatus.FRESH,
        1,
        1,
    )
    assert ("name-not-utf8", "caf\\udce9") in left_out(hub, "src")
    assert hub.manifest.read_bytes()


def test_odd_members_of_an_archive_do_not_end_the_sync(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "src/a")
    make_skill(tmp_path / "next/b", "second", body=BODY * 2)
    with tarfile.open(tmp_path / "skills.tar", "w") as archive:
        archive.add(tmp_path / "src", "pack")
        for name, target in (("empty", ""), ("long", "x/" * 2500), ("n" * 300, None), ("pack/a", None)):
            info = tarfile.TarInfo(name)
            if target is not None:
                info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    done = synced(tmp_path / "skills.tar", tmp_path / "next")
    assert [(s.status, s.skills) for s in done.sources] == [(SourceStatus.FRESH, 1)] * 2
    refused = [where for code, where in left_out(hub, "skills") if code == "refused-member"]
    assert refused == ["empty", "long", "n" * 300, "pack/a"]
