"""Corpora with an index, exports, manifests and tables: what leaves a hub and comes back."""

import json
import shutil
import tarfile
from pathlib import Path

import pytest
from tests.hub.conftest import BODY, make_skill
from tests.hub.test_sync import left_out, places

from skill2env.cli.main import run
from skill2env.errors import UserError
from skill2env.hub.explain import explain
from skill2env.hub.export import export_skills
from skill2env.hub.folder import Hub, register
from skill2env.hub.manifest import read_manifest
from skill2env.hub.queries import Filter
from skill2env.hub.sources import spec_of
from skill2env.hub.sources.corpus import read_index
from skill2env.hub.tables import export_table
from skill2env.hub.update import sync_hub
from skill2env.ingest import find_skills, load_skill
from skill2env.records import LicenceEvidence, digest_bytes

LICENCE = "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy"
KEY = "sk-" + "a1B2c3D4e5F6g7H8" * 3
CHOSEN = Filter(verdicts=("compile",), allowed=True, copies=False)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """An index beside an archive, the second skill without a licence of its own, the third not as indexed."""
    folder = tmp_path / "corpus"
    lines: list[dict[str, object]] = []
    for name, terms in (("one", "frontmatter"), ("two", "ancestor:LICENSE"), ("three", "skill_file")):
        skill = make_skill(tmp_path / "raw/own__repo" / name, name, body=BODY + name, licence="")
        digest = digest_bytes((skill / "SKILL.md").read_bytes()).removeprefix("sha256:")
        lines.append({
            "path": f"own__repo/{name}/SKILL.md", "origin": "own/repo", "license": "MIT", "license_evidence": terms,
            "sha256": digest if name != "three" else "0" * 64,
        })  # fmt: skip
    folder.mkdir()
    with tarfile.open(folder / "skills.tar.xz", "w:xz") as archive:
        archive.add(tmp_path / "raw/own__repo", "own__repo")
    lines.append({"path": "own__repo/gone/SKILL.md"})
    (folder / "index.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_the_index_says_where_skills_are_from_and_on_what_terms(corpus: Path, hub: Hub, synced) -> None:
    done = synced(corpus)
    assert (done.sources[0].skills, done.sources[0].left_out) == (2, 1)
    (one,) = explain(hub, "one")
    assert (one["licence"]["evidence"], one["places"][0]["origin"]) == ("front_matter", "own/repo")
    (two,) = explain(hub, "two")
    assert (two["licence"]["evidence"], two["licence"]["allowed"]) == ("repository", True)
    assert ("not-as-indexed", "own__repo/three") in left_out(hub, "corpus")
    assert ("not-there", "own__repo/gone") in left_out(hub, "corpus")
    with pytest.raises(UserError, match="was left out of source corpus: the entry is not"):
        explain(hub, "corpus:own__repo/three")


def test_a_folder_with_an_index_is_read_in_place(corpus: Path, tmp_path: Path, hub: Hub, synced) -> None:
    shutil.copytree(tmp_path / "raw/own__repo", corpus / "own__repo")
    assert synced(corpus).sources[0].skills == 2
    assert synced().sources[0].unchanged
    (corpus / "own__repo/one/SKILL.md").write_text("changed")
    assert synced().sources[0].left_out == 2


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"path": 1}',
        '{"path": "../x/SKILL.md"}',
        '{"path": "/x"}',
        "[" * 5_000,
        '"' + "x" * 200_000,
    ],
)
def test_bad_lines_of_an_index_are_told(line: str, tmp_path: Path) -> None:
    good = '{"path": "a/SKILL.md", "license": "MIT", "license_evidence": "front_matter", "notices": {"../x": "/y"}}'
    (tmp_path / "index.jsonl").write_text(f"{line}\n\n{good}\n")
    entries, found = read_index(tmp_path / "index.jsonl")
    assert list(entries) == ["a"]
    assert entries["a"].notices == ()
    assert [item.where for item in found] == ["index.jsonl:1"]


@pytest.fixture
def exported(tmp_path: Path, hub: Hub, synced) -> Path:
    for name in ("alpha", "beta"):
        make_skill(
            tmp_path / "repo/skills" / name,
            name,
            licence="",
            body=BODY + name * 9,
            scripts__a_py=f"# {name}\n" * 40,
        )
    make_skill(
        tmp_path / "repo/skills/own", "own", licence="Apache-2.0", body=BODY.replace("amount", "sum") * 2
    )
    leak = f"\nexport TOKEN={KEY}\n"
    make_skill(
        tmp_path / "repo/skills/leaky", "leaky", licence="", body=BODY.replace("csv", "tsv"), notes_md=leak
    )
    make_skill(tmp_path / "repo/skills/closed", "closed", licence="Proprietary", body=BODY * 3)
    (tmp_path / "repo/skills/alpha/inside").symlink_to("scripts/a.py")
    (tmp_path / "repo/LICENSE").write_text(LICENCE)
    (tmp_path / "repo/NOTICE").write_text("made by somebody")
    (tmp_path / "repo/package.json").write_text('{"name": "pack", "version": "1.0.0", "license": "MIT"}')
    synced(tmp_path / "repo")
    export_skills(
        hub, tmp_path / "out", Filter(verdicts=("compile", "review", "drop"), allowed=True, copies=None)
    )
    return tmp_path / "out"


def test_an_export_keeps_terms_and_loses_secrets(exported: Path, hub: Hub) -> None:
    skills = {skill.name: skill for skill in map(load_skill, find_skills(exported).folders)}
    assert set(skills) == {"alpha", "beta", "leaky", "own"}
    assert {skill.origin for skill in skills.values()} == {"npm:pack@1.0.0"}
    assert (skills["alpha"].licence.spdx, skills["alpha"].licence.evidence) == (
        "MIT",
        LicenceEvidence.REPOSITORY,
    )
    assert (skills["own"].licence.spdx, skills["own"].licence.evidence) == (
        "Apache-2.0",
        LicenceEvidence.FRONT_MATTER,
    )
    assert KEY not in "".join(path.read_text() for path in exported.rglob("*") if path.is_file())
    records = {
        item["name"]: item for item in map(json.loads, (exported / "index.jsonl").read_text().splitlines())
    }
    assert records["leaky"]["redacted"] == ["notes.md"]
    assert records["leaky"]["digest"] != records["leaky"]["hub_digest"]
    assert records["alpha"]["digest"] == records["alpha"]["hub_digest"] == explain(hub, "alpha")[0]["digest"]
    notices = {path.name for path in exported.rglob("*") if path.name in ("LICENSE", "NOTICE")}
    assert notices == {"LICENSE", "NOTICE"}


def test_an_export_is_a_source_of_another_hub(exported: Path, hub: Hub, tmp_path: Path) -> None:
    other = Hub(tmp_path / "other")
    register(other, [spec_of(other, str(exported))])
    assert other.config().source[0].kind.value == "corpus"
    done = sync_hub(other, workers=1)
    assert (done.sources[0].skills, done.sources[0].left_out) == (4, 0)
    (before,) = explain(hub, "alpha")
    (after,) = explain(other, "alpha")
    assert after["digest"] == before["digest"]
    assert after["licence"] == before["licence"] | {"reason": after["licence"]["reason"]}
    assert set(after["places"][0]["notices"]) == {"LICENSE", "NOTICE"}
    assert after["places"][0]["origin"] == "npm:pack@1.0.0"


def test_exports_are_equal_and_replace_only_exports(exported: Path, hub: Hub, tmp_path: Path) -> None:
    def tree(root: Path) -> dict[str, bytes]:
        return {
            p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()
        }

    before = tree(exported)
    wanted = Filter(verdicts=("compile", "review", "drop"), allowed=True)
    export_skills(hub, exported, wanted)
    assert tree(exported) == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/x").touch()
    with pytest.raises(UserError, match="something else"):
        export_skills(hub, tmp_path / "mine", wanted)
    with pytest.raises(UserError, match="no skill passes"):
        export_skills(hub, tmp_path / "none", Filter(words="unheardof"))
    assert not (tmp_path / "none").exists()


def test_a_collection_stays_one_through_an_export(tmp_path: Path, hub: Hub) -> None:
    make_skill(tmp_path / "awesome/a", licence="")
    (tmp_path / "awesome/LICENSE").write_text(LICENCE)
    (tmp_path / "awesome/.git").mkdir()
    register(
        hub,
        [spec_of(hub, str(tmp_path / "awesome"), collection=True)],
        '[policy]\nminimum_evidence = "aggregator"\n',
    )
    sync_hub(hub, workers=1)
    export_skills(hub, tmp_path / "out", Filter(allowed=True))
    (folder,) = find_skills(tmp_path / "out").folders
    assert load_skill(folder).licence.evidence is LicenceEvidence.AGGREGATOR


def test_a_manifest_rebuilds_the_corpus(corpus: Path, tmp_path: Path, hub: Hub, synced) -> None:
    synced(corpus)
    copy = Hub(tmp_path / "copy")
    done = sync_hub(copy, locked=hub.manifest, workers=2)
    assert done.differences == ()
    assert places(copy) == places(hub)
    assert copy.manifest.read_bytes() == hub.manifest.read_bytes()
    pinned = read_manifest(hub.manifest)
    assert [spec.sha256 for spec in pinned.sources] == [
        digest_bytes((corpus / "skills.tar.xz").read_bytes())[7:]
    ]
    assert {pin.licence for pin in pinned.pins} == {"MIT"}


def test_what_a_manifest_does_not_pin_is_told(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "src/a", "first")
    make_skill(tmp_path / "src/b", "second", body=BODY * 2)
    synced(tmp_path / "src")
    old = tmp_path / "old.jsonl"
    old.write_bytes(hub.manifest.read_bytes())
    make_skill(tmp_path / "src/a", "changed")
    make_skill(tmp_path / "src/c", "third", body=BODY * 3)
    shutil.rmtree(tmp_path / "src/b")
    told = sync_hub(hub, locked=old, workers=1).differences
    assert [line.split(" ")[0] for line in told] == ["src:a", "src:b", "src:c"]
    assert run(["hub", "sync", "--hub", str(hub.path), "--locked", str(old), "--quiet"]) == 1


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[1]", '{"format": "x"}', '{"format":"skill2env-hub-manifest/1"}\n{"source":{}}', "\xff"],
)
def test_what_is_no_manifest_is_a_message(text: str, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError):
        read_manifest(tmp_path / "m")


def test_the_index_as_a_table(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "src/a", "first")
    make_skill(tmp_path / "src/b", "second", body="thin\n")
    synced(tmp_path / "src")
    assert export_table(hub, tmp_path / "all.jsonl") == 2
    records = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert {record["name"]: record["chosen"] for record in records} == {"first": True, "second": False}
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra 'parquet' is not installed")
    assert export_table(hub, tmp_path / "all.parquet") == 2
    assert parquet.read_table(tmp_path / "all.parquet").to_pylist() == records


def test_tables_leave_without_secrets(tmp_path: Path, hub: Hub, synced) -> None:
    make_skill(tmp_path / "src/a", "first", body=f"{BODY}\nexport TOKEN={KEY}\n")
    synced(tmp_path / "src")
    export_table(hub, tmp_path / "all.jsonl")
    assert KEY not in (tmp_path / "all.jsonl").read_text()
    (record,) = map(json.loads, (tmp_path / "all.jsonl").read_text().splitlines())
    assert "export TOKEN=[REDACTED]" in record["body"]
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra 'parquet' is not installed")
    export_table(hub, tmp_path / "all.parquet")
    assert parquet.read_table(tmp_path / "all.parquet").to_pylist() == [record]
