import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skill2env.errors import InfraError, UserError
from skill2env.harbor.dataset import changed_tasks, read_dataset_toml
from skill2env.harbor.digest import task_digest
from skill2env.harbor.task_toml import Provenance, render_task_toml
from skill2env.publish.dataset import read_state, require_state
from skill2env.publish.entry import read_manifest
from skill2env.publish.integrity import problems
from skill2env.records import Asset, Reason, StagedAsset


def test_a_dataset_has_tasks_indexes_and_notices(bench: Any, tmp_path: Path) -> None:
    dataset = tmp_path / "out"
    outcomes = bench.put(
        dataset, bench.make("b"), bench.make("a", skill="audio", licence="Apache-2.0", source="npm:audio@1"),
        ended={"rejected:lint": 2, "skipped:unsafe": 1},
    )  # fmt: skip
    assert [(o.folder, o.refused) for o in outcomes] == [("a", None), ("b", None)]
    names = sorted(path.name for path in dataset.iterdir())
    assert names == ["LICENSES", "README.md", "a", "b", "dataset.toml", "manifest.jsonl"]
    state = require_state(dataset)
    assert (state.name, state.version) == ("org/data", "1.0.0")
    assert state.digests == {"org/a": task_digest(dataset / "a"), "org/b": task_digest(dataset / "b")}
    manifest = read_dataset_toml(dataset)
    assert changed_tasks(dataset, manifest, [("org/a", "a"), ("org/b", "b")]) == ()
    entry = read_manifest(dataset)[0]
    assert (entry.name, entry.licence, entry.source, entry.findings) == (
        "org/a",
        "Apache-2.0",
        "npm:audio@1",
        ("odd",),
    )
    assert sorted(entry.gates) == ["nop", "static"]
    toml = tomllib.loads((dataset / "a/task.toml").read_text())
    assert [gate["gate"] for gate in toml["metadata"]["skill2env"]["gates"]] == ["static", "nop"]
    notices = dataset / "LICENSES" / entry.notices
    assert (notices / "LICENSE.txt").read_text() == "Apache-2.0 terms\n"
    assert json.loads((notices / "NOTICE.json").read_text())["source"] == "npm:audio@1"


def test_the_card_tells_counts_axes_gates_licences_and_reasons(bench: Any, tmp_path: Path) -> None:
    dataset = tmp_path / "out"
    bench.put(dataset, bench.make("b"), bench.make("a", licence=""), ended={"rejected:lint": 2})
    card = (dataset / "README.md").read_text()
    for line in (
        "license: other",
        "| data engineering | 2 |",
        "| repair | 2 |",
        "| nop | 2 |",
        "| MIT | 1 |",
        "| not stated | 1 |",
        "| odd | 2 |",
        "| published |  | 2 |",
        "| rejected | lint | 2 |",
        "| debian-bookworm@sha256:bb | 2 |",
        "harbor run -p . -a oracle",
    ):
        assert line in card


def test_same_candidates_in_any_order_give_the_same_bytes(bench: Any, tmp_path: Path) -> None:
    items = [bench.make(slug) for slug in "abcde"]
    bench.put(tmp_path / "one", *items)
    bench.put(tmp_path / "two", *reversed(items))
    bench.put(tmp_path / "two", *items)
    assert bench.tree(tmp_path / "one") == bench.tree(tmp_path / "two")
    for data in bench.tree(tmp_path / "one").values():
        assert str(tmp_path).encode() not in data[1]


def test_publishing_the_same_again_touches_nothing(bench: Any, tmp_path: Path) -> None:
    dataset = tmp_path / "out"
    item = bench.make("a")
    bench.put(dataset, item)
    before = {path: path.stat().st_mtime_ns for path in dataset.rglob("*") if path.is_file()}
    bench.put(dataset, item)
    assert {path: path.stat().st_mtime_ns for path in dataset.rglob("*") if path.is_file()} == before


def test_versions_follow_what_changed(bench: Any, tmp_path: Path) -> None:
    dataset = tmp_path / "out"
    bench.put(dataset, bench.make("a"))
    bench.put(dataset, bench.make("b"), identity="sha256:other")
    assert require_state(dataset).version == "1.1.0"
    assert len(read_manifest(dataset)) == 2
    bench.put(dataset, bench.make("a", text="changed"))
    assert require_state(dataset).version == "2.0.0"
    assert "changed" in (dataset / "a/instruction.md").read_text()
    bench.put(dataset, bench.make("a", text="changed"), ended={"rejected:lint": 1})
    assert require_state(dataset).version == "2.0.0"
    assert "| rejected | lint | 1 |" in (dataset / "README.md").read_text()


def test_a_twin_is_refused_whatever_the_order(bench: Any, tmp_path: Path) -> None:
    for name, order in (("one", (0, 1)), ("two", (1, 0))):
        items = [bench.make("a", text="same"), bench.make("b", text="same")]
        outcomes = bench.put(tmp_path / name, *(items[at] for at in order))
        assert [(o.folder, o.refused) for o in outcomes] == [("a", None), ("", Reason.DUPLICATE)]
        assert "org/a" in outcomes[1].detail
        assert "| rejected | duplicate | 1 |" in (tmp_path / name / "README.md").read_text()


def test_a_near_twin_is_refused_and_whoever_was_first_stays(bench: Any, tmp_path: Path) -> None:
    order = "Every shelf of the shop has a card. Copy the cards of {} shelves into a table, sorted by price, and add a"
    texts = [
        order.format(count) + f" last line with the sum of all {what}."
        for count, what in ((3, "ties"), (9, "hats"))
    ]
    dataset = tmp_path / "out"
    late, early = bench.make("b", text=texts[0]), bench.make("a", text=texts[1])
    assert [outcome.refused for outcome in bench.put(dataset, late)] == [None]
    for _ in range(2):
        outcomes = bench.put(dataset, early, late)
        assert [(outcome.folder, outcome.refused) for outcome in outcomes] == [
            ("", Reason.DUPLICATE),
            ("b", None),
        ]
        assert "near-duplicate of org/b" in outcomes[0].detail


def test_one_slug_of_two_organisations(bench: Any, tmp_path: Path) -> None:
    dataset = tmp_path / "out"
    bench.put(dataset, bench.make("a"), bench.make("a", organisation="z", text="z"))
    assert {e.name: e.folder for e in read_manifest(dataset)} == {"org/a": "a", "z/a": "z--a"}
    bench.put(dataset, bench.make("a", organisation="z", text="z"))
    assert len(read_manifest(dataset)) == 2


def test_a_damaged_task_folder_is_mended(bench: Any, tmp_path: Path) -> None:
    dataset = tmp_path / "out"
    item = bench.make("a")
    bench.put(dataset, item)
    whole = bench.tree(dataset)
    (dataset / "a/tests/test.sh").write_text("tampered")
    (dataset / "README.md").write_text("tampered")
    bench.put(dataset, item)
    assert bench.tree(dataset) == whole


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("manifest.jsonl", "{}\n", "manifest.jsonl:1 is not a manifest entry"),
        ("manifest.jsonl", "not json\n", "manifest.jsonl:1 is not a manifest entry"),
        ("dataset.toml", "= 1", "cannot read"),
        ("dataset.toml", "tasks = 3", "is not a dataset manifest"),
    ],
)
def test_damaged_indexes_are_named(bench: Any, tmp_path: Path, name: str, text: str, said: str) -> None:
    dataset = tmp_path / "out"
    bench.put(dataset, bench.make("a"))
    (dataset / name).write_text(text)
    with pytest.raises(UserError, match=said):
        read_state(dataset)
    with pytest.raises(UserError, match="is not a dataset folder"):
        require_state(tmp_path / "nowhere")


def test_a_held_dataset_is_not_touched(bench: Any, tmp_path: Path) -> None:
    dataset = tmp_path / "out"
    dataset.mkdir()
    holder = os.open(dataset, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    try:
        with pytest.raises(InfraError, match="another process is changing the dataset"):
            bench.put(dataset, bench.make("a"))
    finally:
        os.close(holder)
    assert not list(dataset.iterdir())


def test_a_full_disk_keeps_the_old_dataset(bench: Any, small_disk: Callable[[str], Path]) -> None:
    dataset = small_disk("size=1m") / "out"
    bench.put(dataset, bench.make("a"))
    before = bench.tree(dataset)
    with pytest.raises(InfraError, match="No space left"):
        bench.put(dataset, bench.make("b", text="x" * 2**21))
    assert bench.tree(dataset) == before


def test_a_read_only_dataset_is_reported(bench: Any, small_disk: Callable[[str], Path]) -> None:
    with pytest.raises(InfraError, match="Read-only") as caught:
        bench.put(small_disk("ro"), bench.make("a"))
    assert "--out" in caught.value.hint


PUBLISHER = """
import importlib.util, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("bench_conftest", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
bench = module.Bench(Path(sys.argv[2]))
items = [bench.make(slug) for slug in "abcdefgh"]
print("ready", flush=True)
bench.put(Path(sys.argv[3]), *items)
"""


def test_kill_at_any_moment_then_the_same_bytes(bench: Any, tmp_path: Path) -> None:
    rng = random.Random(3)
    bench.put(tmp_path / "clean", *(bench.make(slug) for slug in "abcdefgh"))
    command = [sys.executable, "-c", PUBLISHER, str(Path(__file__).parent / "conftest.py"), str(tmp_path)]
    for _ in range(6):
        child = subprocess.Popen([*command, str(tmp_path / "killed")], stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(rng.uniform(0.0, 0.6))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    bench.put(tmp_path / "killed", *(bench.make(slug) for slug in "abcdefgh"))
    assert bench.tree(tmp_path / "killed") == bench.tree(tmp_path / "clean")


def test_public_files_keep_their_notices(bench: Any, tmp_path: Path) -> None:
    dataset, text = tmp_path / "out", tmp_path / "licence"
    text.write_text("MIT License\n")
    asset = Asset(
        what="rates", url="https://example.org/rates.csv", revision="v1", licence="MIT",
        attribution="The rate office", paths=("environment/rates.csv",),
    )  # fmt: skip
    staged = StagedAsset(
        asset=asset,
        sha256="sha256:" + "ab" * 32,
        size=2,
        address=asset.url,
        licence="MIT",
        notice="sha256:cc",
    )
    made = bench.make("a")
    candidate = made.candidate.model_copy(
        update={
            "assets": (staged,),
            "contract": made.candidate.contract.model_copy(update={"assets": (asset,)}),
        }
    )
    item = replace(made, candidate=candidate, asset_texts={"sha256:cc": text})
    bench.put(dataset, item, bench.make("b"))
    kept = dataset / "LICENSES" / "asset-abababababab"
    assert (kept / "LICENSE.txt").read_text() == "MIT License\n"
    assert json.loads((kept / "NOTICE.json").read_text()) == {
        "asset": "rates", "digest": staged.sha256, "source": asset.url, "revision": "v1", "licence": "MIT",
        "attribution": "The rate office", "files": ["LICENSE.txt"],
    }  # fmt: skip
    assert [entry.assets for entry in read_manifest(dataset)] == [("asset-abababababab",), ()]
    assert problems(dataset) == []
    shutil.rmtree(kept)
    assert problems(dataset) == ["org/a: the notices of a public file in it are missing"]
    facts = tomllib.loads(
        render_task_toml(
            candidate.spec, candidate.contract, item.skill,
            Provenance(candidate.author, "sha256:ff", assets=(staged,), hosts=("files.example.org:443",)),
        )
    )["metadata"]["skill2env"]  # fmt: skip
    assert facts["author_hosts"] == ["files.example.org:443"]
    assert facts["assets"] == [
        {
            "what": "rates", "url": asset.url, "revision": "v1", "licence": "MIT", "attribution": "The rate office",
            "paths": ["environment/rates.csv"], "sha256": staged.sha256, "size": 2, "address": asset.url,
            "licence_used": "MIT", "notice": "sha256:cc",
        }
    ]  # fmt: skip
    bench.put(dataset, bench.make("a"), identity="sha256:later")
    assert not kept.exists(), "no task holds it any more"
